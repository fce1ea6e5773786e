"""Attackers send what they say they send, and count what they see."""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from time import monotonic

import pytest

import attackers
from attackers import Caller, Kind, Target, address, attack, attacking, costly, pipeline
from petstore.domain.api_keys import is_token
from support.served import Echo, served
from support.servers import StartServer

UNLIMITED, LIMITED = "unlimited", "limited"


def seen_by(kind: Kind, app: Echo, callers: int = 1, seconds: float = 0.3) -> Counter[str]:
    """Return what clients see of a service that echoes what it receives."""
    with served(app) as server:
        target = Target(server.port, 0, UNLIMITED, LIMITED)
        return asyncio.run(attack(kind, target, callers, callers, seconds))


@contextmanager
def listening() -> Iterator[tuple[socket.socket, Target]]:
    """Listen, and never respond."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener, Target(listener.getsockname()[1], 0, UNLIMITED, LIMITED)


def sent_by(kind: Kind, seconds: float = 0.3) -> bytes:
    """Return everything that one caller sends to a service that only reads."""
    sent = b""
    with listening() as (listener, target), attacking(kind, target, 1, 1, seconds):
        caller, _ = listener.accept()
        with caller, suppress(ConnectionResetError):
            while piece := caller.recv(2**16):
                sent += piece
    return sent


def test_a_pipeline_is_256_kib_of_requests() -> None:
    one = b"GET / HTTP/1.1\r\n\r\n"
    sent = sent_by(pipeline("GET / HTTP/1.1"))
    assert 2**18 - len(one) < len(sent) <= 2**18
    assert sent == one * (len(sent) // len(one))


@pytest.mark.parametrize(
    ("kind", "authorization"),
    [(attackers.pipeline_and_read, None), (attackers.limited_pipeline, b"Bearer limited")],
)
def test_a_pipeline_that_is_read_goes_on(kind: Kind, authorization: bytes | None) -> None:
    app = Echo()
    assert seen_by(kind, app)["200"] > 100
    assert {request.fields.get(b"authorization") for request in app.seen} == {authorization}


def test_chunks_are_65_000_of_one_byte_and_whole() -> None:
    sent = sent_by(attackers.chunks, seconds=2)
    head, _, body = sent.partition(b"\r\n\r\n")
    assert head.startswith(b"POST ")
    assert b"\r\n" + body == b"\r\n1\r\n " * 65_000 + b"\r\n0\r\n\r\n"


def test_a_head_is_60_kb_and_has_no_end() -> None:
    sent = sent_by(attackers.head)
    assert len(sent) == 60_000
    assert b"\r\n\r\n" not in sent


def test_an_idle_caller_sends_nothing() -> None:
    assert sent_by(attackers.idle) == b""


@pytest.mark.parametrize("kind", [attackers.drip_head, attackers.drip_body])
def test_one_that_drips_sends_a_byte_a_second(kind: Kind) -> None:
    sent = sent_by(kind, seconds=1.5)
    begun = sent.rstrip(b" ")
    assert begun.startswith((b"GET ", b"POST "))
    assert 1 <= len(sent.removeprefix(begun)) <= 3


def test_made_up_tokens_have_a_valid_checksum_and_mistyped_ones_have_none() -> None:
    assert len(set(attackers.made_up_tokens())) > 10
    for kind, is_valid in ((attackers.make_up_tokens, True), (attackers.mistype_tokens, False)):
        app = Echo()
        seen_by(kind, app)
        tokens = {request.fields[b"authorization"].removeprefix(b"Bearer ") for request in app.seen}
        assert {is_token(token, "production") for token in tokens} == {is_valid}


def test_the_limited_ask_with_their_key_on_one_connection_each() -> None:
    app = Echo()
    seen = seen_by(attackers.limited, app, callers=3)
    assert seen == {"connections": 3, "200": seen["200"]}
    assert {request.fields[b"authorization"] for request in app.seen} == {b"Bearer limited"}


def forwarded(sent: bytes) -> bytes:
    """Return the value of the first ``X-Forwarded-For``."""
    return sent.partition(b"X-Forwarded-For: ")[2].partition(b"\r\n")[0]


def test_hops_are_6_000_trusted_ones() -> None:
    hops = forwarded(sent_by(attackers.forward_hops)).split(b",")
    assert len(hops) == 6_001
    # A service that trusts them reads from the right, and so all of them.
    assert set(hops[1:]) == {b"127.0.0.1"}


def test_zones_are_large_and_no_two_the_same() -> None:
    addresses = {forwarded(sent_by(attackers.forward_zones)).decode() for _ in range(2)}
    assert len(addresses) == 2
    assert all(ip_address(one).is_link_local and len(one) > 60_000 for one in addresses)


def test_costly_requests_have_their_key_path_body_and_field() -> None:
    app = Echo()
    seen_by(costly("PATCH", "/v1/pets/7", "{}", "If-Match: ,,"), app)
    asked = app.seen[0]
    assert (asked.method, asked.path) == ("PATCH", "/v1/pets/7")
    assert asked.fields[b"if-match"] == b",,"
    assert asked.fields[b"authorization"] == b"Bearer unlimited"


def test_one_that_is_persistent_comes_again_when_its_connection_ends() -> None:
    kind = costly("GET", "/v1/pets", line="Connection: close")
    seen = seen_by(kind, Echo())
    assert seen["connections"] > seen["200"] - 1 > 1


def test_a_connection_that_ends_is_counted_where_nobody_comes_again() -> None:
    with listening() as (listener, target), attacking(attackers.idle, target, 1, 1, 40) as seen:
        started = monotonic()
        listener.accept()[0].close()
    assert seen == {"connections": 1, "cut": 1}
    assert monotonic() - started < 20


def test_a_slow_reader_reads_60_kb_a_second() -> None:
    app = Echo()
    app.size = 100_000
    seen = seen_by(attackers.read_slowly, app, seconds=1)
    assert 40_000 < seen["bytes read"] <= 60_000


def test_callers_have_addresses_of_their_own() -> None:
    app = Echo()
    seen_by(attackers.limited, app, callers=5)
    assert {request.client for request in app.seen} == {address(number) for number in range(5)}


def test_addresses_are_of_the_loopback_network_and_no_two_the_same() -> None:
    addresses = {ip_address(address(number)) for number in range(4_000)}
    assert len(addresses) == 4_000
    assert all(one.is_loopback for one in addresses)


def test_a_service_is_restarted_and_stopped_while_it_is_asked(start: StartServer) -> None:
    server = start()
    target = Target(server.port, server.process.pid, server.issue(), LIMITED)
    with attacking(attackers.restart, target, 3, 1, 1, after=10) as seen:
        assert server.process.wait(30) == 0
    assert seen["404"] > 10  # the store is empty
    assert seen["cut"] == 2


def test_an_attack_that_fails_itself_is_no_success(capfd: pytest.CaptureFixture[str]) -> None:
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


def test_files_are_sent_with_the_limited_key_as_large_as_they_may_be() -> None:
    app = Echo()
    with served(app) as server:
        target = Target(server.port, 0, UNLIMITED, LIMITED)
        asyncio.run(attack(attackers.work_on_files, target, 2, 2, 1))
    paths = {request.path for request in app.seen}
    assert paths == {"/console/sign-in", "/console/import", "/console/export/pets.csv"}
