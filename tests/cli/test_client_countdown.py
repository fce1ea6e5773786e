"""A limit that is reached: what a person at a terminal sees of the wait."""

import signal
from pathlib import Path

import pytest

from support.odd_service import OddService, error, odd_service, response
from support.process import petstore
from support.terminal import Terminal


def at(service: OddService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PETSTORE_URL", service.url)
    monkeypatch.setenv("PETSTORE_KEY", "a-key")


def test_a_terminal_counts_down_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with odd_service(error(429, Retry_After=2), response(200, [])) as service:
        at(service, monkeypatch)
        with Terminal("pets", "list", cwd=tmp_path) as terminal:
            assert terminal.wait() == 0
    assert terminal.raw == (
        "\r\x1b[KThe limit is reached. Trying again in 2 s"
        "\r\x1b[KThe limit is reached. Trying again in 1 s"
        "\r\x1b[KNone found.\r\n"
    )


def test_elsewhere_the_wait_is_reported_once(tmp_path: Path) -> None:
    with odd_service(error(429, Retry_After=1), response(200, [])) as service:
        environment = {"PETSTORE_URL": service.url, "PETSTORE_KEY": "a-key"}
        result = petstore("pets", "list", cwd=tmp_path, env=environment)
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == "The limit is reached. Trying again in 1 s.\nNone found.\n"


def test_a_countdown_can_be_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with odd_service(error(429, Retry_After=600)) as service:
        at(service, monkeypatch)
        with Terminal("pets", "list", cwd=tmp_path) as terminal:
            terminal.wait_for("Trying again in 600 s")
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.wait() == 130
    assert terminal.raw.endswith("\r\x1b[K")
    assert "Traceback" not in terminal.text
