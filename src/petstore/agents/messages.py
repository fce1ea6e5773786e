"""JSON-RPC messages as they arrive: what is refused before the SDK sees it, and what is logged."""

import re

import msgspec
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError

# A batch of animals with the longest names, every character escaped, is smaller.
MAX_MESSAGE = 512 * 1024
"""The maximum size of a message, in bytes."""

_NOTHING = msgspec.Raw()
_ID = re.compile(rb'"|-?[0-9]+\Z')
_NAME = re.compile(rb'"([A-Za-z_/]{1,64})"')
_CALL = "tools/call"


class InvalidMessage(Exception):
    """A text is no message of MCP; the message says why, and ``code`` is that of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def error(self) -> JSONRPCError:
        """What its sender gets. Nobody knows to which request it belongs."""
        error = ErrorData(code=self.code, message=str(self))
        return JSONRPCError(jsonrpc="2.0", id=None, error=error)


class _Params(msgspec.Struct):
    name: msgspec.Raw = _NOTHING


class _Message(msgspec.Struct):
    id: msgspec.Raw = _NOTHING
    method: msgspec.Raw = _NOTHING
    params: _Params | None = None


_decoder = msgspec.json.Decoder(_Message)


def read_operation(text: bytes) -> str | None:
    """Return the name of the tool that a message calls, else its method, if it has a usable one.

    Raises:
        InvalidMessage: it is not one JSON object, or a request whose ``id`` is neither a string nor
            an integer. The SDK takes that for a notification, and does not respond.
    """
    try:
        message = _decoder.decode(text)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidMessage(INVALID_REQUEST, f"expected one JSON-RPC message: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidMessage(PARSE_ERROR, "expected JSON in UTF-8") from None
    sent_id = bytes(message.id)
    if message.method != _NOTHING and sent_id and not _ID.match(sent_id):
        raise InvalidMessage(INVALID_REQUEST, "id: expected a string or an integer")
    method = _name(message.method)
    return method if method != _CALL or message.params is None else _name(message.params.name)


def _name(text: msgspec.Raw) -> str | None:
    name = _NAME.fullmatch(bytes(text))
    return None if name is None else name[1].decode("ascii")
