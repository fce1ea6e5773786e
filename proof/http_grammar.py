"""HTTP messages from a grammar, with bytes changed, as hostile or careless clients send them."""

from collections.abc import Iterator
from itertools import product
from random import Random

_METHODS = (b"GET", b"POST", b"HEAD", b"PUT", b"DELETE", b"PATCH", b"OPTIONS")
_TARGETS = (
    *(b"/", b"/v1/pets", b"/v1/pets?limit=5&status=sold", b"/a%20b?c=%41", b"*", b"/x;y=1"),
    *(b"http://petstore/v1/pets?limit=1", b"/%7e", b"//a", b"/?", b"/a?b?c", b"/v1/pets/7#x"),
)
_FIELDS = (
    *(b"Accept: */*", b"X-Empty:", b"X-Empty: ", b"X-Tab:\tvalue\t", b"X-Text: \xe4\xff", b"x: y"),
    *(b"Connection: keep-alive", b"Connection: close", b"Connection: x, close", b"A: 1", b"A: 2"),
    *(b"User-Agent: a (b; c) d/1", b"Content-Type: application/json", b"X-Long: " + b"v" * 40),
)
_ODD_FIELDS = (
    *(b"Content-Length: 5", b"Content-Length: 0", b"Content-Length: 5, 5", b"Content-Length: +5"),
    *(b"Content-Length: 05", b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
    *(b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: Chunked", b"Host: other"),
    *(b"Upgrade: h2c", b"Connection: upgrade", b"Expect: 100-continue", b" folded: 1", b"X : 1"),
    *(b"X\x00: 1", b"X: \x00", b"X: a\rb", b": nameless", b"nocolon", b"X: a\x7fb", b"X: a\x01b"),
)
_BYTES = b"\r\n \t:,;/?#%0159aAzZ\x00\x01\x7f\x80\xff"
_SNIPPETS = (
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b": ",
    b"0\r\n\r\n",
    b"HTTP/1.1",
    b"5",
)
_BODY = b'{"name":"Rex","categoryId":1}'


_CONNECTIONS = (
    *(b"", b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Connection: Upgrade\r\n"),
    *(b"Connection: Upgrade, close\r\n", b"Connection: keep-alive\r\nConnection: close\r\n"),
    *(b"Connection: Proxy-Connection, Keep-Alive\r\n", b"Connection: x\r\n"),
)
_PROXY_CONNECTIONS = (
    *(b"", b"Proxy-Connection: close\r\n", b"Proxy-Connection: keep-alive\r\n"),
    *(b"proxy-connection: Upgrade, Close\r\n", b"Proxy-Connection: x\r\n"),
)
_UPGRADES = (b"", b"Upgrade: h2c\r\n", b"Upgrade: websocket, TLS/1.0\r\n")
_KEEP_ALIVES = (b"", b"Keep-Alive: timeout=5, max=1\r\n")
_BODIES = (
    *(b"\r\n", b"Content-Length: 0\r\n\r\n", b"Content-Length: 2\r\n\r\nhi"),
    *(b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",),
)


def lasting_requests() -> Iterator[bytes]:
    """Yield a request for every combination of what may decide whether its connection stays."""
    lines = product(_METHODS, (b"1.1", b"1.0"))
    fields = product(_CONNECTIONS, _PROXY_CONNECTIONS, _UPGRADES, _KEEP_ALIVES, _BODIES)
    for (method, version), rest in product(lines, fields):
        yield b"%b / HTTP/%b\r\nHost: petstore\r\n%b" % (method, version, b"".join(rest))


def message(random: Random) -> bytes:
    """Return one to three messages in a row, most of them with some bytes changed."""
    one = b"".join(_message(random) for _ in range(random.choice((1, 1, 1, 2, 3))))
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        one = _changed(random, one)
    return one


def _message(random: Random) -> bytes:
    version = b"HTTP/1.0" if random.random() < 0.1 else b"HTTP/1.1"
    lines = [b"%b %b %b" % (random.choice(_METHODS), random.choice(_TARGETS), version)]
    if random.random() < 0.97:
        lines.append(b"Host: petstore")
    lines += random.sample(_FIELDS, random.choice((0, 0, 1, 2)))
    if random.random() < 0.15:
        lines.append(random.choice(_ODD_FIELDS))
    body = b""
    framing = random.random()
    if framing < 0.3:
        body = _BODY[: random.randrange(len(_BODY) + 1)]
        lines.append(b"Content-Length: %d" % len(body))
    elif framing < 0.6:
        lines.append(b"Transfer-Encoding: chunked")
        body = _chunked(random, _BODY[: random.randrange(len(_BODY) + 1)])
    return b"\r\n".join((*lines, b"", body))


def _chunked(random: Random, body: bytes) -> bytes:
    chunks = []
    while body:
        size = random.randrange(1, len(body) + 1)
        written = b"%x" % size if random.random() < 0.8 else b"%03X" % size
        extension = random.choice((b"", b"", b"", b";a", b";a=b", b';a="b;c"', b" ;a"))
        chunks.append(written + extension + b"\r\n" + body[:size] + b"\r\n")
        body = body[size:]
    trailer = random.choice((b"", b"", b"", b"X-Trailer: 1\r\n", b"Content-Length: 3\r\n"))
    return b"".join((*chunks, b"0\r\n", trailer, b"\r\n"))


def _changed(random: Random, data: bytes) -> bytes:
    """Return the message with a byte or a snippet inserted, removed, replaced or doubled."""
    at = random.randrange(len(data) + 1)
    piece = random.choice(_SNIPPETS) if random.random() < 0.4 else bytes([random.choice(_BYTES)])
    length = random.choice((1, 1, 1, 2, 5))
    how = random.randrange(4)
    if how == 0:
        return data[:at] + piece + data[at:]
    if how == 1:
        return data[:at] + data[at + length :]
    if how == 2:
        return data[:at] + piece + data[at + len(piece) :]
    return data[: at + length] + data[at:]
