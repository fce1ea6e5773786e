"""The errors of each operation, with the message that a client may get."""

import inspect
from collections.abc import Callable, Sequence
from email.utils import format_datetime
from typing import Any, NamedTuple

from msgspec.structs import fields

from petstore import errors
from petstore.domain.decoding import decode_json
from petstore.errors import PetstoreError
from petstore.events.model import EVENT_TYPES
from petstore.interface.messages import LONGEST
from petstore.interface.operation import Operation
from petstore.interface.parameters import decode_query

_EXAMPLE_ID = 7
"""The id of the resource in every example of a message."""

_EVERYWHERE = (
    *(errors.InvalidRequest, errors.MissingKey, errors.InvalidKey, errors.NetworkNotAllowed),
    *(errors.RateLimitExceeded, errors.InternalError, errors.Unavailable),
)
_BODY_ERRORS = (
    errors.InvalidBody,
    errors.IncompleteBody,
    errors.RequestTimeout,
    errors.ContentTooLarge,
    errors.UnsupportedMediaType,
)
_MESSAGES: dict[type[PetstoreError], str] = {
    errors.InvalidRequest: "Host: expected exactly once",
    errors.IncompleteBody: "the body: expected all of it; its framing is broken",
    errors.UnknownPet: "petId: expected an existing animal; there is no pet 99",
    errors.UnknownCategory: "categoryId: expected a registered category; there is no category 99",
    errors.InvalidWebhookUrl: (
        "url: expected a public address; the operator can allow others with --webhook-network"
    ),
    errors.UnknownEventType: (
        f"types: there is no 'pet.sold'; expected any of {', '.join(EVENT_TYPES)}"
    ),
    errors.MissingKey: "Authorization: expected Bearer and an API key",
    errors.InvalidKey: "Authorization: the API key is not valid here, or no longer valid",
    errors.NetworkNotAllowed: (
        "this key may not be used from 198.51.100.7; the address is not in its networks"
    ),
    errors.BeyondOwnRights: "plan: your key cannot give a higher perMinute than its own, 300",
    errors.NotOwner: "webhook 7 belongs to key 3, which alone can do this; you can disable it",
    errors.RequestTimeout: "the body: expected all of it within 10 seconds",
    errors.PetReserved: "order 3 is placed and reserves pet 7",
    errors.PetNotAvailable: "pet 7 is pending; only an available one can be ordered",
    errors.OrderClosed: "order 7 is cancelled: its shipDate can no longer change",
    errors.CategoryNameTaken: "name: category 1 already has the name 'Dogs'",
    errors.CategoryInUse: "pet 7, and perhaps others, belong to category 7",
    errors.KeyEnded: "key 7 is revoked; only an active key can be rotated",
    errors.LastAdminKey: (
        "key 7 is the last one that can administer keys: give another key the scope keys:admin"
        " first, or use the command line without a key"
    ),
    errors.LoginTaken: "login: another person already has the login 'GRACE'",
    errors.LastAdministrator: (
        "person 7 is the last active administrator: make another active person one first"
    ),
    errors.PersonDisabled: "person 7 is disabled; enable the account first",
    errors.TooManyWebhooks: ("this key has 16 webhooks, the maximum; delete one first"),
    errors.TooManyImports: "you have 20 unfinished imports, the maximum; run or delete one first",
    errors.ImportClosed: "import 7 is finished: its settings can no longer change",
    errors.WebhookDisabled: "webhook 7 is disabled; enable it first",
    errors.EventNotKept: "the event of delivery 7 is no longer kept",
    errors.WebhooksNotConfigured: (
        "the secret file of this service cannot be used; tell its operator"
    ),
    errors.IdempotencyKeyInUse: (
        "Idempotency-Key: the first request with it is in progress; try again in a moment"
    ),
    errors.SecretAlreadyShown: (
        "the first request created key 7 and showed its token; rotate the key to get another token"
    ),
    errors.CursorExpired: (
        "cursor: the events after it are no longer kept, or an older backup was restored; read from"
        " the start without a cursor, or continue with cursor=latest"
    ),
    errors.PreconditionFailed: (
        "If-Match: expected the current ETag of the resource, in quotes, or *"
    ),
    errors.ContentTooLarge: "the body: expected at most 65536 bytes",
    errors.UriTooLong: "the target: expected at most 8192 bytes",
    errors.UnsupportedMediaType: "Content-Type: expected application/json",
    errors.IdempotencyKeyReused: (
        "Idempotency-Key: expected a new one; another request has used this one"
    ),
    errors.RateLimitExceeded: (
        "the limit of this key, 60 requests a minute, is reached: wait 42 seconds"
    ),
    errors.KeyBanned: (
        "this key is banned because it kept sending requests after 429: wait 300 seconds"
    ),
    errors.TooManyRotations: (
        "this key has rotated itself 5 times today, the maximum: wait 43200 seconds, or ask an"
        " administrator of the keys"
    ),
    errors.InternalError: "the service failed; its log has the reason",
    errors.Unavailable: "the database is not available now; try again",
}


class PossibleError(NamedTuple):
    """An error that an operation may respond with. ``cause`` and ``message`` are for people."""

    status: int
    code: str
    cause: str
    message: str

    @property
    def example(self) -> dict[str, Any]:
        """The example object of OpenAPI, with the Error body."""
        body = {"code": self.code, "message": self.message, "status": self.status}
        return {"summary": self.cause, "value": body}


def possible_errors(operation: Operation) -> tuple[PossibleError, ...]:
    """Return the errors of an operation by status: its own, and those of its other fields."""
    is_post, is_conditional = operation.method == "POST", operation.is_conditional
    groups: list[tuple[bool, Sequence[type[PetstoreError]]]] = [
        (True, _EVERYWHERE),
        (True, operation.errors),
        (operation.charged, (errors.KeyBanned,)),
        (operation.scope is not None, (errors.MissingScope,)),
        (operation.body is not None, _BODY_ERRORS),
        (operation.query is not None, (errors.InvalidParameter, errors.UriTooLong)),
        (operation.parameter is not None, (errors.NotFound,)),
        (operation.deprecation is not None, (errors.Gone,)),
        (is_post, (errors.InvalidParameter, errors.IdempotencyKeyInUse)),
        (is_post, (errors.IdempotencyKeyReused,)),
        (is_conditional, (errors.InvalidParameter, errors.PreconditionFailed)),
    ]
    found = dict.fromkeys(error for applies, group in groups if applies for error in group)
    return tuple(
        COMMON_ERRORS.get(error.code) or _possible(error, _MESSAGES_OF_OPERATION[error](operation))
        for error in sorted(found, key=lambda error: error.status)
    )


def _possible(error: type[PetstoreError], message: str) -> PossibleError:
    cause = (inspect.getdoc(error) or "").partition("\n")[0].replace("``", "`")
    return PossibleError(error.status, error.code, cause, message)


def _invalid_body(operation: Operation) -> str:
    """Return why a body without any member is refused, or one that is no object at all."""
    assert operation.body is not None  # noqa: S101 - only an operation with a body has this error
    if operation.media_types:
        return "The file has no row for a pet."
    if operation.is_batch:
        text = b"[{}]"
    else:
        text = b"{}" if any(field.required for field in fields(operation.body)) else b"[]"
    try:
        decode_json(text, operation.body)
    except errors.InvalidBody as error:
        message = error.message
    return message


def _invalid_parameter(operation: Operation) -> str:
    if operation.is_list:
        return "limit: expected an integer from 1 to 100, in plain digits"
    if operation.query is not None and operation.method == "GET":
        return _invalid_grouping(operation.query)
    if operation.method == "POST":
        return "Idempotency-Key: expected 1 to 255 visible ASCII characters, bare or quoted, once"
    return f"If-None-Match: expected at most {LONGEST} bytes"


def _invalid_grouping(query: type[Any]) -> str:
    """Return why a query is refused whose parameter is empty: a grouping, or a limit."""
    try:
        decode_query(b"by=&limit=", query)
    except errors.InvalidParameter as error:
        message = error.message
    return message


def _missing_scope(operation: Operation) -> str:
    # The feed takes any key; some of its types need a scope.
    return f"this key lacks the scope {operation.scope or 'pets:read'}"


def _not_found(operation: Operation) -> str:
    return f"there is no {operation.resource} {_EXAMPLE_ID}"


def _illegal_transition(operation: Operation) -> str:
    return {
        "updatePet": "status: sold can become available, not pending",
        "updateOrder": "status: placed can become approved or cancelled, not delivered",
        "cancelOrder": "status: delivered is final; it cannot become cancelled",
    }[operation.id]


def _gone(operation: Operation) -> str:
    assert operation.deprecation is not None  # noqa: S101 - only a deprecated one has this error
    end = format_datetime(operation.deprecation.sunset, usegmt=True)
    return f"this operation ended on {end}; use {operation.deprecation.use} instead"


_MESSAGES_OF_OPERATION: dict[type[PetstoreError], Callable[[Operation], str]] = {
    errors.InvalidBody: _invalid_body,
    errors.InvalidParameter: _invalid_parameter,
    errors.MissingScope: _missing_scope,
    errors.NotFound: _not_found,
    errors.IllegalTransition: _illegal_transition,
    errors.Gone: _gone,
}
"""The messages that differ from operation to operation."""

COMMON_ERRORS = {error.code: _possible(error, message) for error, message in _MESSAGES.items()}
"""The errors whose message is the same whatever the operation, by their codes."""
