"""Lines of agents, and those that are no messages."""

from io import BytesIO

import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError

from petstore.agents.lines import Lines
from petstore.agents.messages import MAX_MESSAGE

pytestmark = pytest.mark.anyio

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
NESTED = b"[" * 900 + b"]" * 900


async def read(text: bytes) -> tuple[list[str], list[JSONRPCError]]:
    """Return the messages in a text, and what their sender gets for the others."""
    errors: list[JSONRPCError] = []

    async def send(sent: SessionMessage) -> None:
        assert isinstance(sent.message, JSONRPCError)
        errors.append(sent.message)

    lines = Lines(BytesIO(text))
    lines.send = send
    return [line async for line in lines], errors


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b"\x00\xff", -32700),
        (b"[" * 100_000, -32600),
        (b"[%b]" % PING.strip(), -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":%b}}' % NESTED, -32600),
        (b'"%b"' % (b"a" * 3 * MAX_MESSAGE), -32600),
    ],
    ids=["half", "empty", "bytes", "nested", "batch", "other version", "no id", "deep", "too long"],
)
async def test_a_line_that_is_no_message_gets_an_error_and_the_next_one_is_read(
    line: bytes, code: int
) -> None:
    """The SDK drops it, and an agent would wait for its response for ever."""
    messages, (error,) = await read(line + b"\n" + PING)
    assert messages == [PING.decode()]
    assert (error.id, error.error.code) == (None, code)


@pytest.mark.parametrize("end", [b'{"jsonrpc":"2.0","id":5,"met', b"a" * (MAX_MESSAGE + 1)])
async def test_the_end_within_a_line_ends_the_messages(end: bytes) -> None:
    messages, errors = await read(PING + end)
    assert messages == [PING.decode()]
    assert len(errors) == 1
