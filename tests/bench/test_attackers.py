"""Attackers send what they say they send, and count what they see."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address

import pytest

import attackers
from attackers import Caller, Kind, Target, address, attack, attacking, costly, pipeline
from petstore.keys.model import is_token
from support.served import Echo, served
from support.servers import StartServer

UNLIMITED, LIMITED = "unlimited", "limited"
ONE = b"GET / HTTP/1.1\r\n\r\n"


class Enough(Exception):
    """The attack has sent what the test expects, and can end."""


def seen_by(kind: Kind, app: Echo, callers: int = 1) -> Counter[str]:
    """Return what clients see of a service that echoes what it receives."""
    with served(app) as server:
        target = Target(server.port, 0, UNLIMITED, LIMITED)
        return asyncio.run(attack(kind, target, callers, callers, 0.3))


@contextmanager
def listening() -> Iterator[tuple[socket.socket, Target]]:
    """Listen, and never respond."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener, Target(listener.getsockname()[1], 0, UNLIMITED, LIMITED)


def forwarded(sent: bytes) -> list[str]:
    """Return the addresses of the first ``X-Forwarded-For``."""
    return sent.partition(b"X-Forwarded-For: ")[2].partition(b"\r\n")[0].decode().split(",")


@pytest.mark.parametrize(
    ("kind", "is_expected"),
    [
        (pipeline("GET / HTTP/1.1"), lambda sent: sent == ONE * (2**18 // len(ONE))),
        (attackers.chunks, lambda sent: sent.count(b"\r\n1\r\n ") == 65_000),
        (attackers.head, lambda sent: len(sent) == 60_000 and b"\r\n\r\n" not in sent),
        (attackers.idle, lambda sent: sent == b""),
        (attackers.drip_head, lambda sent: sent.rstrip(b" ").endswith(b"Padding:")),
        (attackers.drip_body, lambda sent: sent.startswith(b"POST ") and len(sent) < 1_000),
        # A service that trusts the hops reads from the right, and so all of them.
        (attackers.forward_hops, lambda sent: forwarded(sent)[1:] == ["127.0.0.1"] * 6_000),
        (attackers.forward_zones, lambda sent: ip_address(forwarded(sent)[0]).is_link_local),
    ],
    ids=["pipeline", "chunks", "head", "idle", "drip head", "drip body", "hops", "zones"],
)
def test_an_attacker_sends_its_message(kind: Kind, is_expected: Callable[[bytes], bool]) -> None:
    sent, seconds = b"", 0.5 if kind is attackers.idle else 30
    with (
        suppress(ConnectionResetError, Enough),
        listening() as (listener, target),
        attacking(kind, target, 1, 1, seconds),
    ):
        caller, _ = listener.accept()
        with caller:
            while piece := caller.recv(2**16):
                sent += piece
                if is_expected(sent):
                    raise Enough
    assert is_expected(sent)


@pytest.mark.parametrize(
    ("kind", "authorization"),
    [
        (attackers.pipeline_and_read, {None}),
        (attackers.limited_pipeline, {b"Bearer limited"}),
        (attackers.limited, {b"Bearer limited"}),
        (costly("PATCH", "/v1/pets/7", "{}", "If-Match: ,,"), {b"Bearer unlimited"}),
    ],
)
def test_an_attacker_keeps_its_key_its_connection_and_its_address(
    kind: Kind, authorization: set[bytes | None]
) -> None:
    app = Echo()
    seen = seen_by(kind, app, callers=3)
    assert seen["connections"] == 3 < seen["200"]
    assert {request.fields.get(b"authorization") for request in app.seen} == authorization
    assert {request.client for request in app.seen} == {address(number) for number in range(3)}


@pytest.mark.parametrize(
    ("kind", "is_valid"), [(attackers.make_up_tokens, True), (attackers.mistype_tokens, False)]
)
def test_unknown_tokens_have_a_valid_checksum_and_mistyped_ones_do_not(
    kind: Kind, *, is_valid: bool
) -> None:
    app = Echo()
    seen_by(kind, app)
    tokens = {request.fields[b"authorization"].removeprefix(b"Bearer ") for request in app.seen}
    assert {is_token(token, "production") for token in tokens} == {is_valid}


def test_a_closed_connection_is_counted_and_a_persistent_attacker_replaces_it() -> None:
    with listening() as (listener, target), attacking(attackers.idle, target, 1, 1, 40) as cut:
        listener.accept()[0].close()
    assert cut == {"connections": 1, "cut": 1}
    seen = seen_by(costly("GET", "/v1/pets", line="Connection: close"), Echo())
    assert seen["connections"] > seen["200"] - 1 > 1


def test_a_service_is_stopped_under_load(start: StartServer) -> None:
    server = start()
    target = Target(server.port, server.process.pid, server.issue(), LIMITED)
    with attacking(attackers.stop, target, 3, 1, 1, after=10) as seen:
        assert server.process.wait(30) == 0
    assert seen["404"]  # the store is empty
    assert seen["cut"] == 2


def test_an_attack_that_raises_an_error_fails_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    async def broken(_: Caller) -> None:
        msg = "not what it should be"
        raise ValueError(msg)

    with (
        listening() as (_, target),
        pytest.raises(EOFError),
        attacking(broken, target, 1, 1, seconds=10),
    ):
        pass
    assert "not what it should be" in capfd.readouterr().err


def test_files_are_uploaded_and_exported_in_the_console() -> None:
    app, paths = Echo(), set[str]()
    while len(paths) < 3:  # while other programs work, one caller may get no turn
        seen_by(attackers.work_on_files, app, callers=2)
        paths = {request.path for request in app.seen}
    assert paths == {"/console/sign-in", "/console/import", "/console/export/pets.csv"}
