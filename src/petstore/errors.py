"""The one tree of errors. Each carries its HTTP status and its machine-readable code.

Handlers raise, they never format: the outermost layer of ``petstore.api`` turns any of these into
the Error body of interface.md (``code``, ``message``, ``status``).
"""

from typing import ClassVar


class PetstoreError(Exception):
    """Anything the service tells its caller went wrong; the message is for a person."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    limit: str | None = None

    def __init__(self, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.headers = headers or {}


class InternalError(PetstoreError):
    """A fault of the service itself; the log has the details, the caller does not."""


class InvalidRequest(PetstoreError):
    """The HTTP message itself is not acceptable (RFC 9112 section 3.2: its Host)."""

    status = 400
    code = "invalid_request"


class InvalidParameter(PetstoreError):
    """A query parameter or a header field is not what the operation takes."""

    status = 400
    code = "invalid_parameter"


class InvalidBody(PetstoreError):
    """The body is not JSON, lacks a required field or holds an invalid value."""

    status = 400
    code = "invalid_body"


class IncompleteBody(PetstoreError):
    """The body ended before it was whole, or its chunks are malformed (RFC 9112 section 8)."""

    status = 400
    code = "incomplete_body"


class UnknownPet(PetstoreError):
    """The body names an animal that is not there."""

    status = 400
    code = "unknown_pet"


class UnknownCategory(PetstoreError):
    """The body names a category that is not registered, and this store takes no other."""

    status = 400
    code = "unknown_category"


class MissingKey(PetstoreError):
    """No API key came with the request."""

    status = 401
    code = "missing_api_key"


class InvalidKey(PetstoreError):
    """The API key is malformed, unknown, expired, revoked or of the other environment."""

    status = 401
    code = "invalid_api_key"


class MissingScope(PetstoreError):
    """The API key is valid and lacks the scope of the operation."""

    status = 403
    code = "missing_scope"


class BeyondOwnRights(PetstoreError):
    """The API key would give another more than it has itself."""

    status = 403
    code = "beyond_own_rights"


class NotFound(PetstoreError):
    """No such path, or no such resource."""

    status = 404
    code = "not_found"


class MethodNotAllowed(PetstoreError):
    """The path exists and does not take this method; ``Allow`` lists those it takes."""

    status = 405
    code = "method_not_allowed"


class RequestTimeout(PetstoreError):
    """The body did not arrive in time."""

    status = 408
    code = "request_timeout"


class Conflict(PetstoreError):
    """The resource is in a state that does not admit the request."""

    status = 409
    code = "conflict"


class IllegalTransition(Conflict):
    """The status that is wanted cannot follow the present one."""

    code = "illegal_transition"


class PetReserved(Conflict):
    """An open order holds the animal, so its status stays and it cannot be deleted."""

    code = "pet_reserved"


class PetNotAvailable(Conflict):
    """The animal cannot be ordered: it is not available."""

    code = "pet_not_available"


class OrderClosed(Conflict):
    """The order is delivered or cancelled, and stays as it is."""

    code = "order_closed"


class CategoryNameTaken(Conflict):
    """Another category has this name, or one that differs in case alone."""

    code = "category_name_taken"


class CategoryInUse(Conflict):
    """Animals belong to the category, so it cannot be deleted."""

    code = "category_in_use"


class KeyEnded(Conflict):
    """The API key in question is expired or revoked, and stays so."""

    code = "api_key_ended"


class LastAdminKey(Conflict):
    """Without this API key there would be none left with the scope ``keys:admin``."""

    code = "last_admin_key"


class IdempotencyKeyInUse(Conflict):
    """The first request with this Idempotency-Key is still under way."""

    code = "idempotency_key_in_use"


class ResponseSealed(Conflict):
    """The answer holds a token, and only the token that asked for it may see it again."""

    code = "answer_sealed"


class Gone(PetstoreError):
    """The operation has passed its sunset (RFC 8594)."""

    status = 410
    code = "gone"


class PreconditionFailed(PetstoreError):
    """``If-Match`` or ``If-None-Match`` excludes the resource's version (RFC 9110 section 13.1)."""

    status = 412
    code = "precondition_failed"


class ContentTooLarge(PetstoreError):
    """The body is larger than the service takes."""

    status = 413
    code = "content_too_large"


class UriTooLong(PetstoreError):
    """The target of the request is longer than the service takes (RFC 9110 section 15.5.15)."""

    status = 414
    code = "uri_too_long"


class UnsupportedMediaType(PetstoreError):
    """The body is not ``application/json`` or, on PATCH, a merge patch; or it is encoded."""

    status = 415
    code = "unsupported_media_type"


class IdempotencyKeyReused(PetstoreError):
    """This Idempotency-Key came before, with another request."""

    status = 422
    code = "idempotency_key_reused"


class RateLimitExceeded(PetstoreError):
    """A window of the caller's limit has no room left; ``limit`` says which to the operator."""

    status = 429
    code = "rate_limit_exceeded"

    def __init__(self, message: str, headers: dict[str, str], limit: str) -> None:
        super().__init__(message, headers)
        self.limit = limit


class KeyBanned(PetstoreError):
    """The key kept asking after 429 and is banned for a while."""

    status = 429
    code = "api_key_banned"


class HeaderFieldsTooLarge(PetstoreError):
    """The head is larger than the service takes, or has more fields (RFC 6585 section 5)."""

    status = 431
    code = "header_fields_too_large"


class Unimplemented(PetstoreError):
    """The method, or a transfer coding of the body, is unknown (RFC 9110 section 15.6.2)."""

    status = 501
    code = "not_implemented"


class Unavailable(PetstoreError):
    """The database is out of reach, full or failing; nothing was acknowledged.

    ``str()`` of it says what happened, for the operator; the caller learns only that it did.
    """

    status = 503
    code = "service_unavailable"

    def __init__(self, detail: str) -> None:
        super().__init__("the database is not available now; try again", {"Retry-After": "1"})
        self.detail = detail

    def __str__(self) -> str:
        return self.detail
