"""The requests that a service is sent, and how its store is put back afterwards."""

import re
from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner

from petstore.cli.main import main
from stage import SqliteStage
from stock import ANIMALS, CATEGORIES, MIXED, STATES, fill
from support.process import ServerProcess
from works import IDS, RESTORE, WORKS, Sources, Work, page_path, sources, work

GIVEN = Sources(
    tokens=[f"token{number}" for number in range(1_000)],
    lists=[page_path(status, category=one) for status, one in product(STATES, range(1, 31))],
    deep_cursors=["one", "two"],
)


@cache
def asked(name: str) -> Work:
    return work(name, GIVEN, seconds=1)


def start_lines(work: Work) -> list[str]:
    return [request.partition(b" HTTP")[0].decode() for request in work.requests]


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands in this process: to start one for each takes most of the time."""

    def petstore(*arguments: str, **_: object) -> str:
        ended = CliRunner().invoke(main, arguments)
        assert ended.exit_code == 0, ended.output
        return ended.stdout.strip()

    monkeypatch.setattr("stock.petstore", petstore)


@pytest.mark.parametrize("name", [name for name in WORKS if name != "same list"])
def test_each_request_has_a_placeholder_for_ids_and_one_of_many_keys(name: str) -> None:
    requests = asked(name).requests
    assert all(one.count(IDS) == 1 and b"\r\n" + IDS + b"\r\n" in one for one in requests)
    tokens = {match[1] for one in requests if (match := re.search(rb"Bearer (\w+)", one))}
    assert len(tokens) == 1_000


def test_the_lists_are_all_pages_of_each_status_and_category(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'petstore.db'}"
    fill(tmp_path, url, 2 * CATEGORIES * len(STATES) * 11)  # more than a page of each
    server = ServerProcess(tmp_path)
    try:
        server.wait_until_ready()
        walked = sources(server.url, [server.issue()])
    finally:
        server.stop()
    pages = Counter(path.partition("&limit")[0] for path in walked.lists)
    assert len(pages) == len(STATES) * CATEGORIES
    assert set(pages.values()) == {2}
    assert len(set(walked.lists)) == len(walked.lists)


def test_a_store_is_restored_after_writes(tmp_path: Path) -> None:
    stage = SqliteStage(tmp_path)
    fill(tmp_path, stage.url, 3)
    with stage.copy("peer") as environment:
        environment.run_sql(
            "INSERT INTO pets (id, name, category_id, status)"  # noqa: S608 - numbers of ours
            f" VALUES ({MIXED + 1}, 'ordered', 1, 'pending'), ({ANIMALS + 1}, 'new', 1, 'sold');"
            f" INSERT INTO orders (pet_id, status, placed_at) VALUES ({MIXED + 1}, 'placed', 0)"
        )
        environment.run_sql(RESTORE)
        animals = dict(environment.run_sql("SELECT id, status FROM pets"))
        orders = list(environment.run_sql("SELECT id FROM orders"))
    assert animals == {1: "available", 2: "pending", 3: "sold", MIXED + 1: "available"}
    assert orders == []
