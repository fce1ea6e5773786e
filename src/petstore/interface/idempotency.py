"""``Idempotency-Key``: a repeated request takes effect once and gets the first response."""

import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from petstore.databases.contract import Unit
from petstore.errors import Conflict, InvalidParameter, SecretAlreadyShown
from petstore.http.messages import Request, Response
from petstore.interface.messages import error_response
from petstore.interface.operation import Context, IdempotentRequest, Result, encode_result

T = TypeVar("T")

# Bare, or as a string of structured fields (RFC 8941 section 3.3.3).
_KEY = re.compile(
    r'[\x21\x23-\x7e][\x21-\x7e]{0,254}\Z|"((?:[\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,255})"\Z'
)
_ESCAPED = re.compile(r"\\(.)")
_REPLAYED = {"Idempotent-Replayed": "true"}
_CONFLICTS: dict[str, type[Conflict]] = {error.code: error for error in Conflict.__subclasses__()}

# An annotation of an inner function is evaluated at each call of the outer one.
_RecordUnit: TypeAlias = Unit[bytes]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Response).decode


def idempotency_key(request: Request) -> str | None:
    """Quotes around the key do not matter."""
    field = request.fields.get(b"idempotency-key")
    if field is None:
        return None
    key = _KEY.match(field.decode("latin-1"))
    if b"idempotency-key" in request.repeated or key is None:
        msg = "Idempotency-Key: expected 1 to 255 visible ASCII characters, bare or quoted, once"
        raise InvalidParameter(msg)
    return key[0] if key[1] is None else _ESCAPED.sub(r"\1", key[1])


def request_digest(method: str, path: str, body: object) -> bytes:
    # The order of a set differs from process to process.
    text = msgspec.json.encode(_given(body), order="deterministic")
    return sha256(f"{method} {path}\n".encode() + text).digest()


def _given(body: object) -> object:
    """Leave out fields at their default: one that a later version adds changes no digest."""
    if isinstance(body, list):
        return [_given(item) for item in body]
    if not isinstance(body, msgspec.Struct):
        return body
    values = msgspec.structs.astuple(body)
    required = (msgspec.NODEFAULT,) * (len(values) - len(body.__struct_defaults__))
    fields = zip(
        body.__struct_encode_fields__, values, required + body.__struct_defaults__, strict=True
    )
    return {name: value for name, value, default in fields if value != default}


async def change(context: Context, unit: Unit[T], *, shown_once: str | None = None) -> Result[T]:
    """Run ``unit`` and return its result; if the request was sent before, the result then.

    Conflicts are recorded too, other errors are not. A response that shows a secret is not
    recorded: ``shown_once`` is the message of its replay, with the ``{id}`` of the result.
    """
    request, services = context.once, context.services
    if request is None:
        return Result(await services.store.write(unit))
    outcome: T | None = None
    refused: Callable[[], Conflict] | None = None
    response: Response | None = None

    def recorded() -> _RecordUnit:  # which versions before and after this one can read
        nonlocal outcome, refused, response
        try:
            outcome = yield from unit
        except Conflict as error:  # raised before anything is changed
            refused = partial(type(error), error.message, error.headers)
            return _encode(error_response(error, request.target.root))
        if shown_once is not None:
            shown = SecretAlreadyShown(shown_once.format(id=cast("Any", outcome).id))
            return _encode(error_response(shown, request.target.root))
        response = encode_result(request.operation, request.target, Result(outcome))
        return _encode(response)

    record, is_replay = await services.retries.once(request.attempt, recorded())
    if is_replay:
        return _replayed(request, record)
    if refused is not None:
        raise refused()
    return Result(cast("T", outcome), response=response)


async def find_replay(context: Context) -> Result[Any] | None:
    """Return the result of the first request, for work of many transactions."""
    request = context.once
    if request is None:
        return None
    record = await context.services.retries.find(request.attempt)
    return None if record is None else _replayed(request, record)


def _replayed(request: IdempotentRequest, record: bytes) -> Result[Any]:
    response = _decode(record)
    if response.code is not None:
        message = msgspec.json.decode(response.body)["message"]
        raise _CONFLICTS[response.code](message, _REPLAYED)
    content = request.operation.success.content
    value = None if content is None else msgspec.json.decode(response.body, type=content)
    prefix, lines = "location: ", (line.decode("ascii") for line in response.headers)
    location = "".join(line.removeprefix(prefix) for line in lines if line.startswith(prefix))
    return Result(value, is_replay=True, location=location)
