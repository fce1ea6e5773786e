"""``Idempotency-Key``: a repeated request takes effect once and gets the first response."""

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from petstore.api.authentication import bearer_token
from petstore.api.messages import error_response
from petstore.api.operation import Call
from petstore.databases.contract import Unit
from petstore.domain.sealing import seal, unseal
from petstore.errors import Conflict, InvalidParameter, ResponseSealed
from petstore.http.messages import Request, Response
from petstore.store.safe_retries import Attempt

T = TypeVar("T")

# What a parameter of an item is in structured fields, up to a length (RFC 8941 section 3.1.2).
_PARAMETER = (
    r"; {0,9}[a-z*][a-z0-9_.*-]{0,31}"
    r'(?:=(?:"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\]){0,64}"|[!#-+./0-9:=?A-Z^-z|~-]{1,64}))?'
)

# Bare, or as a string of structured fields (RFC 8941 section 3.3.3), whose parameters say nothing.
_KEY = re.compile(
    r"(?:[\x21\x23-\x7e][\x21-\x7e]{0,254}"
    rf'|"((?:[\x21\x23-\x5b\x5d-\x7e]|\\["\\]){{1,255}})"(?:{_PARAMETER}){{0,9}})\Z'
)
_ESCAPED = re.compile(r"\\(.)")
_REPLAYED = b"idempotent-replayed: true"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Response).decode


def idempotency_key(request: Request) -> str | None:
    """Return the Idempotency-Key of the request, if it has one.

    Quotes around it, and parameters behind them, do not matter.

    Raises:
        InvalidParameter: it is not 1 to 255 visible characters, or was sent twice.
    """
    field = request.fields.get(b"idempotency-key")
    if field is None:
        return None
    key = _KEY.match(field.decode("latin-1"))
    if b"idempotency-key" in request.repeated or key is None:
        msg = "Idempotency-Key: expected 1 to 255 visible ASCII characters, bare or quoted, once"
        raise InvalidParameter(msg)
    return key[0] if key[1] is None else _ESCAPED.sub(r"\1", key[1])


async def respond_once(
    call: Call[Any, Any],
    unit: Unit[T],
    response_of: Callable[[T], Response],
    *,
    sealed: bool = False,
) -> Response:
    """Run ``unit`` and return ``response_of`` its result; if it ran before, the response then.

    Conflicts are kept too, other errors are not. The record of a ``sealed`` response can be read
    only with the token of the client.

    Raises:
        IdempotencyKeyInUse: the first request is in progress.
        IdempotencyKeyReused: the first request was another one.
        ResponseSealed: it was made with another token of the same key.
        Unavailable: the database is unreachable, full or failing; nothing was acknowledged.
        PetstoreError: what ``unit`` raises.
    """
    if call.idempotency_key is None:
        return response_of(await call.services.store.write(unit))
    secret = bearer_token(call.request) if sealed else None
    record, is_replay = await call.services.retries.once(
        Attempt(call.key, call.idempotency_key, _digest(call)),
        _recorded(call, unit, response_of, secret),
    )
    response = _decode(record if secret is None else _opened(record, secret))
    if is_replay:
        response.headers.append(_REPLAYED)
    return response


def _recorded(
    call: Call[Any, Any],
    unit: Unit[T],
    response_of: Callable[[T], Response],
    secret: bytes | None,
) -> Unit[bytes]:
    try:
        response = response_of((yield from unit))
    except Conflict as error:  # raised before anything is changed
        response = error_response(error, call.root)
    text = _encode(response)
    return text if secret is None else seal(text, secret)


def _opened(record: bytes, secret: bytes) -> bytes:
    text = unseal(record, secret)
    if text is None:
        msg = "Idempotency-Key: only the token that sent the first request can read its response"
        raise ResponseSealed(msg)
    return text


def _digest(call: Call[Any, Any]) -> bytes:
    """Return a digest of the request: method, path and the decoded body."""
    # The order of a set differs from process to process.
    body = msgspec.json.encode(call.body, order="deterministic")
    return sha256(f"{call.request.method} {call.request.path}\n".encode() + body).digest()
