"""``petstore events listen``: each event once, whatever happens to the service or the receiver."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from standardwebhooks import Webhook

from petstore.cli.output import printable
from petstore.events.commands import OutageNotice, Receiver
from petstore.webhooks.signing import secret_text
from petstore_client import NoResponse
from support.observed import read_metrics
from support.odd_service import HANG_UP, SILENCE, OddService, error, odd_service, response
from support.process import StartServer, free_port
from support.shop import Shop
from support.waiting import within

SECONDS = 30
SECRET = secret_text(bytes(range(32)))
NO_CONTENT = response(204, b"")
EVENT: dict[str, Any] = {
    "id": "evt_1",
    "type": "pet.updated",
    "timestamp": "2026-11-22T10:00:00.123Z",
    "resource": "pet/7",
    "sequence": 41,
    "data": {"id": 7, "name": "Bello ☃", "categoryId": 1},
    "previous": {"status": "pending", "name": "Bella"},
    "actor": {"type": "service"},
}


def feed(*events: dict[str, Any]) -> bytes:
    return response(200, list(events), Link='<?cursor=next>; rel="next"')


def listen(*events: dict[str, Any], options: tuple[str, ...] = (), **environment: str) -> Result:
    """Listen to a service that has these events, and then refuses its key."""
    refusal = error(403, "missing_scope", "the key has changed")
    with odd_service(feed(*events), refusal) as service:
        result = Shop(service.url, "a-key")("events", "listen", *options, **environment)
    assert result.exit_code == 5
    return result


class Listener:
    """``petstore events listen`` as a process."""

    def __init__(self, folder: Path, shop: Shop, *options: str) -> None:
        self._out, self._err = folder / "out", folder / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "petstore", "events", "listen", *options],
                cwd=folder,
                env={**os.environ, **shop.environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    @property
    def lines(self) -> list[str]:
        """What it printed so far."""
        return self._out.read_text().splitlines()

    @property
    def notes(self) -> list[str]:
        """What it said on standard error so far."""
        return self._err.read_text().splitlines()

    def wait_for(self, lines: int) -> None:
        """Wait until it has printed so many lines."""
        assert within(SECONDS, lambda: len(self.lines) >= lines), self.notes


@contextmanager
def listening(folder: Path, shop: Shop, *options: str) -> Iterator[Listener]:
    """Listen until the block ends."""
    listener = Listener(folder, shop, *options)
    try:
        assert within(SECONDS, lambda: any("Listening" in line for line in listener.notes))
        yield listener
    finally:
        listener.process.kill()
        listener.process.wait()


# Refusals


@pytest.mark.parametrize(
    "url",
    ["localhost:3000", "http://u:s3cret@a", "http://a/?\udce9"],
)
def test_an_invalid_address_is_refused(shop: Shop, url: str) -> None:
    words = shop.fail("events", "listen", "--forward-to", url, status=2)
    assert "expected an address such as http://localhost:3000/webhooks, without user" in words
    assert "s3cret" not in words


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--secret", "hush"), "expected whsec_ and the base64 of 24 to 64 bytes."),
        (("--type", "pet.eaten"), "type: expected one of 'pet.created'"),
        (
            ("--type", "\udce9"),
            "Invalid value for '--type': '\\udce9': expected text in UTF-8.",
        ),
    ],
)
def test_an_invalid_option_is_refused(shop: Shop, options: tuple[str, ...], expected: str) -> None:
    words = shop.fail("events", "listen", *options, status=2)
    assert expected in words
    assert "hush" not in words


# What it prints


@pytest.mark.parametrize(
    ("changes", "ending"),
    [
        ({}, "status: pending -> none, name: Bella -> Bello ☃  by service"),
        (
            {"previous": None, "data": EVENT["data"] | {"description": "x" * 100}},
            f"name: Bello ☃, categoryId: 1, description: {'x' * 54}...  by service",
        ),
        ({"actor": {"type": "person", "id": 2}}, "☃  by person 2"),
        ({"actor": {"type": "key", "id": 3}, "requestId": "r-1"}, "☃  by key 3"),
        ({"actor": {"type": "service"}}, "☃  by service"),
        (
            {"data": EVENT["data"] | {"name": "\x1b[2J"}, "previous": {"name": "\n"}},
            "name: \\n -> \\x1b[2J  by service",
        ),
    ],
)
def test_an_event_is_printed_in_one_safe_line(changes: dict[str, Any], ending: str) -> None:
    line = listen(EVENT | changes).stdout
    assert line.startswith("2026-11-22T10:00:00.123Z  pet.updated       pet/7        ")
    assert line.endswith(f"{ending}\n")


def test_an_outage_of_the_service_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    slept: list[float] = []
    absence = OutageNotice(slept.append)
    for seconds in (1, 2, 4):
        absence.wait(seconds, NoResponse("no"))
    for _ in range(2):
        absence.end()
    assert slept == [1, 2, 4]
    assert capsys.readouterr().err == (
        "The service does not respond. Waiting for the service.\nThe service responds again.\n"
    )


# What it forwards


def test_an_event_is_forwarded_like_a_webhook_delivery() -> None:
    with odd_service(NO_CONTENT) as receiver:
        options = ("--forward-to", f"{receiver.url}/hooks?a=b", "--secret", SECRET)
        result = listen(EVENT, options=options)
    (delivery,) = receiver.asked
    assert delivery.target == "/hooks?a=b"
    assert delivery.fields["webhook-id"] == EVENT["id"]
    assert delivery.fields["content-type"] == "application/json"
    assert Webhook(SECRET).verify(delivery.body, delivery.fields) == EVENT
    assert result.stderr.splitlines()[:2] == [
        "Listening for events; Ctrl-C ends it.",
        "  receiver: 204 No Content",
    ]


def outcomes(result: Result) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("  receiver: ")]


def test_a_failing_receiver_is_reported_and_gets_the_next_event() -> None:
    events = [EVENT | {"id": f"evt_{n}"} for n in range(3)]
    with odd_service(*(response(status) for status in (500, 302, 200))) as receiver:
        result = listen(*events, options=("--forward-to", receiver.url))
    assert [delivery.fields["webhook-id"] for delivery in receiver.asked] == [
        event["id"] for event in events
    ]
    assert outcomes(result) == [
        "  receiver: 500 Internal Server Error",
        "  receiver: 302 Found",
        "  receiver: 200 OK",
    ]


@pytest.mark.parametrize("name", ["a\r\nX: y", "\x1b[2J", "☃", "\xe9", "", "evt.1"])
def test_an_event_id_that_does_not_fit_a_header_is_skipped(name: str) -> None:
    with odd_service(NO_CONTENT) as receiver:
        options = ("--forward-to", receiver.url)
        result = listen(EVENT | {"id": name}, EVENT, options=options)
    expected = "  receiver: not sent: expected an id of visible characters without dots, not "
    assert outcomes(result) == [f"{expected}{printable(name)}", "  receiver: 204 No Content"]
    assert [each.fields["webhook-id"] for each in receiver.asked] == [EVENT["id"]]


@pytest.mark.parametrize(
    ("reaction", "outcome"),
    [
        (SILENCE, "no response within 0.05 s"),
        (HANG_UP, "broke the connection off, or does not speak HTTP"),
        (b"HTTP/1.1 204\r\n\r\n", "204"),
    ],
)
def test_a_misbehaving_receiver_does_not_stop_it(reaction: bytes | None, outcome: str) -> None:
    with odd_service(reaction) as receiver:
        assert Receiver(receiver.url, bytes(32), 0.05).send(EVENT) == outcome


# The whole


def secret_in(listener: Listener) -> str:
    return listener.notes[0].removeprefix("Webhook signing secret: ")


def verified(receiver: OddService, secret: str) -> list[dict[str, Any]]:
    return [Webhook(secret).verify(each.body, each.fields) for each in receiver.asked]


def test_a_kill_of_the_service_loses_no_event(start: StartServer, tmp_path: Path) -> None:
    port = free_port()
    server = start("--metrics-port", str(port))
    shop = Shop(server.url, server.issue())
    shop.ask("pets", "add", "Before", "--category", 1)
    with (
        odd_service(then=NO_CONTENT) as receiver,
        listening(tmp_path, shop, "--json", "--forward-to", receiver.url) as listener,
    ):
        shop.ask("pets", "add", "Rex", "--category", 1, "--status", "available")
        listener.wait_for(1)
        assert within(SECONDS, lambda: read_metrics(port)["petstore_long_polls"] == 1)
        os.kill(server.worker, signal.SIGKILL)
        assert within(SECONDS, lambda: any("Waiting" in note for note in listener.notes))
        shop.ask("orders", "place", 2)
        listener.wait_for(3)
        assert within(SECONDS, lambda: len(receiver.asked) == 3)
        assert within(SECONDS, lambda: len(listener.notes) == 7), listener.notes
        listener.process.send_signal(signal.SIGINT)
        assert listener.process.wait(SECONDS) == 130
        events = [json.loads(line) for line in listener.lines]
        assert [event["type"] for event in events] == ["pet.created", "order.placed", "pet.updated"]
        assert verified(receiver, secret_in(listener)) == events
        assert [note for note in listener.notes if "receiver:" not in note][1:] == [
            "Listening for events; Ctrl-C ends it.",
            "The service does not respond. Waiting for the service.",
            "The service responds again.",
        ]
