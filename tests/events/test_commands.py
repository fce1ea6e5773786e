"""``petstore events listen``: each event once, whatever happens to the service or the receiver."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import Result
from standardwebhooks import Webhook

from petstore.events.commands import forward
from petstore.webhooks.signing import secret_text
from support.observed import read_metrics
from support.odd_service import HANG_UP, SILENCE, error, odd_service, response
from support.process import StartServer, free_port
from support.shop import Shop
from support.waiting import within

SECONDS = 30
SECRET = secret_text(bytes(range(32)))
ADDRESS = "expected an address such as http://localhost:3000/webhooks, without user"
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


def listen(*events: dict[str, Any], options: tuple[str, ...] = ()) -> Result:
    """Listen to a service that has these events, and then refuses its key."""
    feed = response(200, list(events), Link='<?cursor=next>; rel="next"')
    with odd_service(feed, error(403, "missing_scope", "the key has changed")) as service:
        result = Shop(service.url, "a-key")("events", "listen", *options)
    assert result.exit_code == 5
    return result


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--forward-to", "localhost:3000"), ADDRESS),
        (("--forward-to", "http://u:s3cret@a"), ADDRESS),
        (("--forward-to", "http://a/?\udce9"), ADDRESS),
        (("--secret", "s3cret"), "expected whsec_ and the base64 of 24 to 64 bytes."),
        (("--type", "pet.eaten"), "type: expected one of 'pet.created'"),
        (("--type", "\udce9"), "Invalid value for '--type': '\\udce9': expected text in UTF-8."),
    ],
)
def test_an_invalid_option_is_refused(shop: Shop, options: tuple[str, ...], expected: str) -> None:
    words = shop.fail("events", "listen", *options, status=2)
    assert expected in words
    assert "s3cret" not in words


def test_an_event_is_printed_in_one_safe_line() -> None:
    text = {"description": "x" * 100}
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "status: pending -> none, name: Bella -> Bello ☃  by service"),
        (
            {"previous": None, "data": EVENT["data"] | text},
            f"name: Bello ☃, categoryId: 1, description: {'x' * 54}...  by service",
        ),
        ({"actor": {"type": "person", "id": 2}}, "☃  by person 2"),
        ({"actor": {"type": "key", "id": 3}, "requestId": "r-1"}, "☃  by key 3"),
        (
            {"data": EVENT["data"] | {"name": "\x1b[2J"}, "previous": {"name": "\n"}},
            "name: \\n -> \\x1b[2J  by service",
        ),
    )
    lines = listen(*(EVENT | changes for changes, _ in cases)).stdout.splitlines()
    for line, (_, ending) in zip(lines, cases, strict=True):
        assert line.startswith("2026-11-22T10:00:00.123Z  pet.updated       pet/7        ")
        assert line.endswith(ending)


def test_an_event_is_forwarded_like_a_webhook_delivery_whatever_became_of_the_last() -> None:
    events = [EVENT | {"id": f"evt_{number}"} for number in range(3)]
    with odd_service(*(response(status, b"") for status in (500, 302, 204))) as receiver:
        options = ("--forward-to", f"{receiver.url}/hooks?a=b", "--secret", SECRET)
        result = listen(*events, options=options)
    for delivery, event in zip(receiver.asked, events, strict=True):
        assert delivery.target == "/hooks?a=b"
        assert delivery.fields["webhook-id"] == event["id"]
        assert delivery.fields["content-type"] == "application/json"
        assert Webhook(SECRET).verify(delivery.body, delivery.fields) == event
    assert result.stderr.splitlines()[:4] == [
        "Listening for events; Ctrl-C ends it.",
        "  receiver: 500 Internal Server Error",
        "  receiver: 302 Found",
        "  receiver: 204 No Content",
    ]


@pytest.mark.parametrize(
    ("reaction", "outcome"),
    [
        (SILENCE, "no response within 0.05 s"),
        (HANG_UP, "Server disconnected without sending a response."),
        (b"HTTP/1.1 204\r\n\r\n", "204"),
    ],
)
def test_a_misbehaving_receiver_does_not_stop_it(reaction: bytes | None, outcome: str) -> None:
    with odd_service(reaction) as receiver, httpx2.Client(timeout=0.05) as client:
        assert forward(client, receiver.url, bytes(32), EVENT) == outcome


@contextmanager
def listening(folder: Path, shop: Shop, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Listen in a process, which prints to files of a folder, until the block ends."""
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "petstore", "events", "listen", *options],
            cwd=folder,
            env={**os.environ, **shop.environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_kill_of_the_service_loses_no_event(start: StartServer, tmp_path: Path) -> None:
    port = free_port()
    server = start("--metrics-port", str(port))
    shop = Shop(server.url, server.issue())
    shop.ask("pets", "add", "Before", "--category", 1)

    def lines(name: str) -> list[str]:
        return (tmp_path / name).read_text().splitlines()

    with (
        odd_service(then=response(204, b"")) as receiver,
        listening(tmp_path, shop, "--json", "--forward-to", receiver.url) as process,
    ):
        assert within(SECONDS, lambda: any("Listening" in line for line in lines("err")))
        shop.ask("pets", "add", "Rex", "--category", 1, "--status", "available")
        assert within(SECONDS, lambda: len(lines("out")) == 1), lines("err")
        assert within(SECONDS, lambda: read_metrics(port)["petstore_long_polls"] == 1)
        os.kill(server.worker, signal.SIGKILL)
        assert within(SECONDS, lambda: any("waiting" in line for line in lines("err")))
        shop.ask("orders", "place", 2)
        assert within(SECONDS, lambda: len(receiver.asked) == 3)
        assert within(SECONDS, lambda: len(lines("err")) == 7), lines("err")
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
    events = [json.loads(line) for line in lines("out")]
    assert [event["type"] for event in events] == ["pet.created", "order.placed", "pet.updated"]
    first, *notes = [line for line in lines("err") if "receiver:" not in line]
    secret = Webhook(first.removeprefix("Webhook signing secret: "))
    assert [secret.verify(each.body, each.fields) for each in receiver.asked] == events
    assert notes[::2] == ["Listening for events; Ctrl-C ends it.", "The service responds again."]
    assert re.fullmatch(rf"(no response from|cannot reach) {server.url}.*; waiting for.*", notes[1])
