"""A limit that is reached: what a person at a terminal sees of the wait."""

import signal
from pathlib import Path

import pytest

from support.odd_service import error, odd_service, response
from support.shop import Shop
from support.terminal import Terminal, shown_on_terminal


def test_a_terminal_shows_a_countdown_in_one_line() -> None:
    with odd_service(error(429, Retry_After=2), response(200, [])) as service:
        shown = shown_on_terminal("pets", "list", **Shop(service.url, "a-key").environment)
    assert shown.status == 0
    assert shown.raw == (
        "\r\x1b[KThe limit is reached. Trying again in 2 s"
        "\r\x1b[KThe limit is reached. Trying again in 1 s"
        "\r\x1b[KNone found.\r\n"
    )


def test_a_countdown_can_be_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with odd_service(error(429, Retry_After=600)) as service:
        for name, value in Shop(service.url, "a-key").environment.items():
            monkeypatch.setenv(name, value)
        with Terminal("pets", "list", cwd=tmp_path) as terminal:
            terminal.wait_for("Trying again in 600 s")
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.wait() == 130
    assert terminal.raw.endswith("\r\x1b[K")
    assert "Traceback" not in terminal.text
