"""The check accepts this service, and rejects one that always gives the same response."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from compare import check
from peers.conformance import Keys, differences
from peers.contract import peer
from petstore.cli.main import main
from servers import free_port, running
from stage import SqliteStage

BENCH = Path(__file__).parent.parent.parent / "bench"
WORKS = ("list", "get", "create", "inventory", "order")


def petstore(*arguments: str) -> str:
    """Run a command in this process: to start one for each takes most of the time."""
    ended = CliRunner().invoke(main, arguments)
    assert ended.exit_code == 0, ended.output
    return ended.stdout.strip()


def test_this_service_conforms_to_the_interface(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("stock", "peers.conformance"):
        monkeypatch.setattr(f"{module}.petstore", lambda *words, **_: petstore(*words))
    ours = peer("petstore")._replace(does=WORKS)
    assert check(SqliteStage(tmp_path), [ours]) == {"petstore": []}


def test_a_service_with_one_response_for_everything_fails_each_check(tmp_path: Path) -> None:
    port = free_port()
    command = (sys.executable, str(BENCH / "bare.py"), str(port))
    with running(command, port, tmp_path / "log") as server:
        found = differences(server.url, "", Keys(*[""] * 7), ("list", "order"))
    assert [sentence.partition(":")[0] for sentence in found] == [
        "a page has the first pets of a status",
        "an order reserves its pet",
        "an order that is not as it must be is refused",
        "of many buyers one gets the pet",
    ]
