"""The one tree of errors. Each carries its HTTP status and its machine-readable code."""

from collections.abc import Sequence
from typing import ClassVar


class PetstoreError(Exception):
    """The base; ``others`` are messages of what else is wrong with a form."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    limit: str | None = None

    def __init_subclass__(cls, status: int | None = None, code: str | None = None) -> None:
        cls.status = status or cls.status
        cls.code = code or cls.code

    def __init__(
        self, message: str, headers: dict[str, str] | None = None, others: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.headers = headers or {}
        self.others = others


class InternalError(PetstoreError):
    """A fault of the service itself. The log has the details; the response does not."""


class UnusableDatabase(PetstoreError):
    """This version cannot use the database; the message says why. Only the operator sees it."""


class ForbiddenAddress(PetstoreError):
    """A delivery may not go to an address. Only the webhook's owner sees it, as a failure."""


class InvalidRequest(PetstoreError, status=400, code="invalid_request"):
    """The HTTP message itself is invalid, such as its Host (RFC 9112 section 3.2)."""


class InvalidParameter(PetstoreError, status=400, code="invalid_parameter"):
    """A query parameter or a header field has an invalid value."""


class InvalidBody(PetstoreError, status=400, code="invalid_body"):
    """The body is not JSON, lacks a required field or has an invalid value."""


class IncompleteBody(PetstoreError, status=400, code="incomplete_body"):
    """The body ended too early, or its chunks are malformed (RFC 9112 section 8)."""


class UnknownPet(PetstoreError, status=400, code="unknown_pet"):
    """The body names a pet that does not exist."""


class UnknownCategory(PetstoreError, status=400, code="unknown_category"):
    """The body names an unregistered category, and this store accepts only registered ones."""


class InvalidWebhookUrl(PetstoreError, status=400, code="invalid_webhook_url"):
    """The body names a URL to which the service delivers no events."""


class MissingKey(PetstoreError, status=401, code="missing_api_key"):
    """The request has no API key."""


class InvalidKey(PetstoreError, status=401, code="invalid_api_key"):
    """The API key is malformed, unknown, expired, revoked or of the other environment."""


class MissingScope(PetstoreError, status=403, code="missing_scope"):
    """The API key is valid but lacks the scope of the operation."""


class NetworkNotAllowed(PetstoreError, status=403, code="network_not_allowed"):
    """The API key is valid, but its networks do not have the address of the client."""


class BeyondOwnRights(PetstoreError, status=403, code="beyond_own_rights"):
    """The API key tries to give another key or a person more rights than it has itself."""


class NotOwner(PetstoreError, status=403, code="not_owner"):
    """The webhook belongs to another caller, who alone can do this."""


class CrossSiteRequest(PetstoreError, status=403, code="cross_site_request"):
    """A page of another site may have made the request, with the cookie of the console."""


class NotFound(PetstoreError, status=404, code="not_found"):
    """The path or the resource does not exist."""


class MethodNotAllowed(PetstoreError, status=405, code="method_not_allowed"):
    """The path does not take this method; ``Allow`` lists the methods it takes."""


class RequestTimeout(PetstoreError, status=408, code="request_timeout"):
    """The body did not arrive in time."""


class Conflict(PetstoreError, status=409, code="conflict"):
    """The state of the resource does not allow the request."""


class IllegalTransition(Conflict, code="illegal_transition"):
    """The requested status cannot follow the current one."""


class PetReserved(Conflict, code="pet_reserved"):
    """An open order reserves the pet, so its status cannot change, and it cannot be deleted."""


class PetNotAvailable(Conflict, code="pet_not_available"):
    """The pet is not available, so it cannot be ordered."""


class CategoryNameTaken(Conflict, code="category_name_taken"):
    """Another category has this name, perhaps in another case."""


class CategoryInUse(Conflict, code="category_in_use"):
    """Pets belong to the category, so it cannot be deleted."""


class KeyEnded(Conflict, code="api_key_ended"):
    """The API key to change is expired or revoked."""


class LastAdminKey(Conflict, code="last_admin_key"):
    """This is the last API key with the scope ``keys:admin``."""


class LoginTaken(Conflict, code="login_taken"):
    """Another person has this login, perhaps in another case."""


class LastAdministrator(Conflict, code="last_administrator"):
    """This is the last active person with the role ``administrator``."""


class PersonDisabled(Conflict, code="person_disabled"):
    """The person is disabled, so they cannot be invited."""


class TooManyWebhooks(Conflict, code="too_many_webhooks"):
    """The API key has the maximum number of webhooks."""


class TooManyImports(Conflict, code="too_many_imports"):
    """The caller has the maximum number of unfinished imports."""


class ImportClosed(Conflict, code="import_closed"):
    """The import has been run or undone, so this can no longer be done with it."""


class WebhookDisabled(Conflict, code="webhook_disabled"):
    """The webhook is disabled, so the service cannot send to it."""


class EventNotKept(Conflict, code="event_not_kept"):
    """The event of the delivery is no longer kept, so it cannot be sent again."""


class WebhooksNotConfigured(PetstoreError, status=409, code="webhooks_not_configured"):
    """The operator has not set up webhooks: the secret file is missing."""


class IdempotencyKeyInUse(Conflict, code="idempotency_key_in_use"):
    """The first request with this Idempotency-Key is still in progress."""


class SecretAlreadyShown(Conflict, code="secret_already_shown"):
    """The first request with this Idempotency-Key succeeded; its response showed a secret once."""


class Gone(PetstoreError, status=410, code="gone"):
    """The operation has passed its sunset (RFC 8594)."""


class CursorExpired(Gone, code="cursor_expired"):
    """The events after the cursor are no longer kept, or belong to another history."""


class PreconditionFailed(PetstoreError, status=412, code="precondition_failed"):
    """``If-Match`` or ``If-None-Match`` excludes the resource's version (RFC 9110 section 13.1)."""


class ContentTooLarge(PetstoreError, status=413, code="content_too_large"):
    """The body is larger than the service accepts."""


class UriTooLong(PetstoreError, status=414, code="uri_too_long"):
    """The request target is longer than the service accepts (RFC 9110 section 15.5.15)."""


class UnsupportedMediaType(PetstoreError, status=415, code="unsupported_media_type"):
    """The body is not ``application/json`` or, on PATCH, a merge patch; or it is encoded."""


class IdempotencyKeyReused(PetstoreError, status=422, code="idempotency_key_reused"):
    """An earlier request used this Idempotency-Key with other content."""


class RateLimitExceeded(PetstoreError, status=429, code="rate_limit_exceeded"):
    """A limit of the key or of the address is reached."""

    def __init__(self, message: str, headers: dict[str, str], limit: str) -> None:
        super().__init__(message, headers)
        self.limit = limit


class KeyBanned(PetstoreError, status=429, code="api_key_banned"):
    """The key kept sending requests after a 429 and is banned for a while."""


class TooManyRotations(PetstoreError, status=429, code="too_many_rotations"):
    """The API key has rotated itself as often as it may in one day."""

    limit = "rotation_day"


class HeaderFieldsTooLarge(PetstoreError, status=431, code="header_fields_too_large"):
    """The head is too large, or has too many header fields (RFC 6585 section 5)."""


class Unimplemented(PetstoreError, status=501, code="not_implemented"):
    """The method, or a transfer coding of the body, is unknown (RFC 9110 section 15.6.2)."""


class Unavailable(PetstoreError, status=503, code="service_unavailable"):
    """The database is unreachable, full or failing; no change was confirmed.

    ``str()`` has the details, for the operator; the client gets a general ``message``.
    """

    def __init__(
        self, detail: str, message: str = "the database is not available now; try again"
    ) -> None:
        super().__init__(message, {"Retry-After": "1"})
        self.detail = detail

    def __str__(self) -> str:
        return self.detail


class LostFiles(Unavailable):
    """A file of a SQLite database was deleted or replaced while in use.

    Every confirmed change is in the database. The process that used it has to end.
    """


class Overloaded(Unavailable):
    """The service has no memory for the request now."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, "the service is too busy now; try again")
