"""The messages of an agent on standard input, each a line. One that is wrong gets a response."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import BinaryIO

from anyio.to_thread import run_sync
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, jsonrpc_message_adapter
from pydantic import ValidationError

from petstore.agents.messages import MAX_MESSAGE, InvalidMessage, read_operation

_Send = Callable[[SessionMessage], Awaitable[None]]


class Lines:
    """Messages from ``stream``, for the SDK, which drops what is none: its sender would wait.

    ``send`` has to be set before the first one is read.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.send: _Send

    async def __aiter__(self) -> AsyncIterator[str]:
        """Give each valid message, until the end of the stream."""
        while line := await self._read():
            try:
                yield await self._checked(line)
            except InvalidMessage as error:
                await self.send(SessionMessage(error.error))

    async def _read(self) -> bytes:
        # Ended by the end of the process: a thread that reads cannot be cancelled.
        return await run_sync(self._stream.readline, MAX_MESSAGE + 1, abandon_on_cancel=True)

    async def _checked(self, line: bytes) -> str:
        if len(line) > MAX_MESSAGE:
            while line and not line.endswith(b"\n"):
                line = await self._read()
            msg = f"expected at most {MAX_MESSAGE} bytes"
            raise InvalidMessage(INVALID_REQUEST, msg)
        read_operation(line)
        try:
            jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            raise InvalidMessage(INVALID_REQUEST, "expected one JSON-RPC message") from None
        return line.decode()
