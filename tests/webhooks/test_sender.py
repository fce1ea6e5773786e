"""One attempt, to receivers that behave and to others; all on real sockets."""

import asyncio
import socket
import ssl
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from petstore.webhooks import sender as sender_module
from petstore.webhooks.model import Address
from petstore.webhooks.sender import DeliveryFailed, EndpointResponse, Resolver, Sender
from support.receivers import OK, Behaviour, Request, Writer, receiving, reset, silent
from support.tls import self_signed_certificate

pytestmark = pytest.mark.anyio

LOOPBACK = [ip_network("127.0.0.0/8")]
BODY = b'{"id":"evt_1"}'
# The first piece that is read ends with it.
LONG_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Pad: ".ljust(4092, b"x") + b"\r\n\r\n"


def sender(seconds: float = 10) -> Sender:
    return Sender(Resolver(), LOOPBACK, "petstore/1.2.3", seconds=seconds)


async def post(behaviour: Behaviour | bytes, seconds: float = 10) -> EndpointResponse:
    async with receiving(behaviour) as receiver:
        return await sender(seconds).post(receiver.url, {}, BODY)


async def failure(behaviour: Behaviour | bytes, seconds: float = 10) -> str:
    with pytest.raises(DeliveryFailed) as failed:
        await post(behaviour, seconds)
    return str(failed.value)


async def failure_at(url: str, addresses: list[str] | None = None) -> str:
    async def resolved(_: str) -> list[Address]:
        return [*map(ip_address, addresses or [])]

    resolver = Resolver() if addresses is None else resolved
    with pytest.raises(DeliveryFailed) as failed:
        await Sender(resolver, LOOPBACK, "petstore").post(url, {}, BODY)
    return str(failed.value)


async def test_a_request_is_a_json_post_on_a_new_connection_without_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with receiving() as receiver, receiving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        url = f"{receiver.url}/a%20b?c=d e"
        response = await sender().post(url, {"webhook-id": "evt_1"}, BODY)
    assert response == EndpointResponse(204, None, "")
    assert proxy.connections == 0
    (request,) = receiver.requests
    assert request.line == "POST /hooks/a%20b?c=d%20e HTTP/1.1"
    assert request.body == BODY
    assert request.headers == {
        "host": f"127.0.0.1:{receiver.port}",
        "user-agent": "petstore/1.2.3",
        "content-type": "application/json",
        "content-length": "14",
        "connection": "close",
        "webhook-id": "evt_1",
    }


async def test_a_redirect_is_not_followed() -> None:
    async with receiving() as elsewhere:
        head = f"HTTP/1.1 307 Go\r\nLocation: {elsewhere.url}\r\nContent-Length: 0\r\n\r\n"
        assert (await post(head.encode())).status == 307
    assert elsewhere.connections == 0


async def test_at_most_one_kibibyte_of_a_response_is_read() -> None:
    async def endless(_: Request, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 1000)
                await writer.drain()
        except ConnectionError:
            closed.set()

    closed = asyncio.Event()
    async with receiving(endless) as receiver:
        assert await sender().post(receiver.url, {}, BODY) == EndpointResponse(
            200, None, "x" * 1024
        )
        async with asyncio.timeout(30):
            await closed.wait()


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (b"HTTP/1.1 429 No\r\nReTrY-aFtEr: 9\r\nContent-Length: 0\r\n\r\n", (429, "9", "")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", (200, None, "he")),
        (LONG_HEAD + b"hello", (200, None, "hello")),
        (b"HTTP/1.1 500 No\r\n\r\n\x1f\x8b\0ok", (500, None, "\x1f\ufffd\ufffdok")),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK, (204, None, "")),
        (b"HTTP/1.0 200 OK\r\n\r\nfine", (200, None, "fine")),
    ],
)
async def test_a_response_is_read_as_text_up_to_its_length(
    response: bytes, expected: tuple[int, str | None, str]
) -> None:
    assert await post(response) == EndpointResponse(*expected)


async def test_a_status_counts_even_if_the_body_drips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "_BODY_SECONDS", 0.05)

    async def stop(_: Request, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nx")
        await silent(_, writer)

    assert await post(stop) == EndpointResponse(200, None, "x")


async def drip(_: Request, writer: Writer) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nx-drop: ")
    while not writer.is_closing():
        writer.write(b"x")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("behaviour", [silent, drip])
async def test_a_receiver_that_does_not_respond_fails_at_the_timeout(behaviour: Behaviour) -> None:
    assert await failure(behaviour, 0.2) == "no response within 0.2 seconds"


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (reset, "Connection reset by peer"),
        (b"", "the connection was closed before a response"),
        (b"hello\r\n\r\n", "the response is not valid HTTP/1.1"),
        (b"HTTP/1.1 OK\r\n\r\n", "the response is not valid HTTP/1.1"),
        (
            b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
            "the response is not valid HTTP/1.1",
        ),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000, "the response is not valid HTTP/1.1"),
    ],
    ids=["a reset", "an end", "no HTTP", "no status", "an upgrade", "a head without end"],
)
async def test_an_attempt_without_a_valid_response_fails(
    behaviour: Behaviour | bytes, reason: str
) -> None:
    assert await failure(behaviour) == reason


async def test_a_refused_connection_or_an_unknown_host_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    failed = await failure_at(f"http://127.0.0.1:{port}/")
    assert "Connect call failed" in failed or failed == "Connection refused"
    for host in ("nobody", "a" * 64):
        assert (await failure_at(f"https://{host}.invalid/")).startswith("host not found (DNS): ")


async def test_a_certificate_must_be_trusted_and_match_the_host_of_the_url(tmp_path: Path) -> None:
    certificate, key = self_signed_certificate(tmp_path)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=certificate)

    async def resolve(_: str) -> list[Address]:
        return [ip_address("127.0.0.1")]

    async with receiving(tls=server) as receiver:
        failed = await failure_at(f"https://127.0.0.1:{receiver.port}/")
        assert failed == "no secure connection (TLS): self-signed certificate"
        assert receiver.requests == []
        trusted = Sender(resolve, LOOPBACK, "petstore", trusting)
        response = await trusted.post(f"https://127.0.0.1:{receiver.port}/", {}, BODY)
        assert response.status == 204
        with pytest.raises(DeliveryFailed, match=r"\(TLS\): Hostname mismatch.*'shop.example'"):
            await trusted.post(f"https://shop.example:{receiver.port}/", {}, BODY)


async def test_a_server_without_tls_fails_the_handshake() -> None:
    def refuse(_: asyncio.StreamReader, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 400 No\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        failed = await failure_at(f"https://127.0.0.1:{port}/")
        assert failed.startswith("no secure connection (TLS): ")


@pytest.mark.parametrize(
    ("url", "addresses", "reason"),
    [
        ("https://shop.example/", ["10.0.0.1"], "expected a public address"),
        ("http://shop.example:{port}/", ["1.1.1.1", "127.0.0.1"], "expected https and port 443"),
        ("http://shop.example:{port}/", ["127.0.0.1", "10.0.0.1"], "expected a public address"),
        ("https://[::1]:{port}/", ["::1"], "expected a public address"),
        ("https://shop.example/", [], "host not found (DNS): no address"),
    ],
)
async def test_nothing_is_sent_to_a_forbidden_address(
    url: str, addresses: list[str], reason: str
) -> None:
    async with receiving() as receiver:
        failed = await failure_at(url.format(port=receiver.port), addresses)
    assert failed.startswith(reason)
    assert receiver.connections == 0


async def test_the_connection_uses_the_address_that_was_checked() -> None:
    # The next of several addresses is tried.
    answers = iter([["127.0.0.1"], ["10.0.0.1"], ["127.0.0.2", "127.0.0.1"]])
    asked = []

    async def resolve(host: str) -> list[Address]:
        asked.append(host)
        return [ip_address(address) for address in next(answers)]

    async with receiving() as receiver:
        rebinding = Sender(resolve, LOOPBACK, "petstore")
        url = f"http://rebind.example:{receiver.port}/"
        assert (await rebinding.post(url, {}, BODY)).status == 204
        with pytest.raises(DeliveryFailed, match="expected a public address"):
            await rebinding.post(url, {}, BODY)
        assert (await rebinding.post(url, {}, BODY)).status == 204
    # Asked once for each attempt: nothing resolves the name again to connect.
    assert asked == ["rebind.example"] * 3
    assert receiver.requests[0].headers["host"] == f"rebind.example:{receiver.port}"


async def test_an_unresolved_host_fails_at_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "_CONNECT_SECONDS", 0.05)

    async def resolve(_: str) -> list[Address]:
        await asyncio.sleep(60)
        return []

    with pytest.raises(DeliveryFailed, match=r"no connection within 0\.05 seconds"):
        await Sender(resolve, LOOPBACK, "petstore").post("https://shop.example/", {}, BODY)


async def test_concurrent_requests_share_a_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    look_ups = []
    look_up = socket.getaddrinfo

    def counted(host: str, *arguments: object, **options: object) -> object:
        look_ups.append(host)
        return look_up(host, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", counted)
    resolver = Resolver()
    found = await asyncio.gather(*(resolver("localhost") for _ in range(8)))
    assert all(ip_address("127.0.0.1") in addresses for addresses in found)
    assert look_ups == ["localhost"]
    await resolver("localhost")
    assert look_ups == ["localhost"] * 2
