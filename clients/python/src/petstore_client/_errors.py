"""The errors that any call can meet. ``PetstoreError`` is the base of everything that is raised.

``petstore_client.errors`` has them for users, with those of single operations.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class PetstoreError(Exception):
    """A request failed.

    All but the message may be ``None``, as when there was no response.

    Attributes:
        message: What is wrong, for people.
        status: The HTTP status.
        code: The machine-readable code of the service.
        request_id: The name of the request in the log of the service.
        retry_after: How many seconds the service asks to wait.
        headers: The headers of the response; the case of their names does not matter.
        body: The body of the response: its JSON with every member, or else its text.
        documentation: The address of the explanation.
        idempotency_key: That of a POST: with it, the same request can be sent again and acts once.
    """

    __module__ = "petstore_client.errors"  # tracebacks say what to import

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:
            cls.__module__ = PetstoreError.__module__

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        documentation: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after
        self.headers = headers
        self.body = body
        self.documentation = documentation
        self.idempotency_key: str | None = None

    def __str__(self) -> str:
        """Return the message, with the request id where the service has failed."""
        is_fault = self.status is not None and self.status >= _FAULT
        if is_fault and self.request_id is not None:
            return f"{self.message} (request {self.request_id})"
        return self.message


class NoResponse(PetstoreError):
    """No connection, or it broke before the whole response had arrived."""


class TimedOut(NoResponse):
    """The service took too long to connect or to respond."""


class OutcomeUnknown(PetstoreError):
    """The request may have been carried out, or not: look before you send it again.

    ``__cause__`` has the failure. A POST can be sent again with its ``idempotency_key``.
    """


class ClientClosed(PetstoreError):
    """The client has been closed: before the call, or by another thread or task during it."""


class UnexpectedResponse(PetstoreError):
    """The response is not one of a Petstore service: check the base URL."""


class ErrorResponse(PetstoreError):
    """The service refused the request, or failed. The subclasses are by status, then by code."""

    by_status: ClassVar[dict[int, type["ErrorResponse"]]] = {}
    by_code: ClassVar[dict[str, type["ErrorResponse"]]] = {}

    def __init_subclass__(cls, status: int | None = None, code: str | None = None) -> None:
        super().__init_subclass__()
        if status is not None:
            ErrorResponse.by_status[status] = cls
        if code is not None:
            ErrorResponse.by_code[code] = cls


class BadRequest(ErrorResponse, status=400):
    """400: the request is invalid; the message names the field and what was expected."""


class Unauthorized(ErrorResponse, status=401):
    """401: there is no API key, or it is invalid."""


class Forbidden(ErrorResponse, status=403):
    """403: the key may not do this."""


class NotFound(ErrorResponse, status=404):
    """404: there is no such resource."""


class Conflict(ErrorResponse, status=409):
    """409: the state of the resource does not allow the request."""


class IdempotencyKeyInUse(Conflict, code="idempotency_key_in_use"):
    """The first request with this idempotency key is still under way."""


class Gone(ErrorResponse, status=410):
    """410: the operation has ended, or what was asked for is not kept any more."""


class PreconditionFailed(ErrorResponse, status=412):
    """412: the resource has changed since the version in ``if_match``."""


class IdempotencyKeyReused(ErrorResponse, status=422, code="idempotency_key_reused"):
    """422: an earlier request used this idempotency key with other content."""


class RateLimited(ErrorResponse, status=429):
    """429: a limit is reached. ``retry_after`` says for how many seconds."""


class KeyBanned(RateLimited, code="api_key_banned"):
    """The key kept sending requests after a 429 and is banned for a while."""


class ServerError(ErrorResponse):
    """5xx: the service has failed."""


class ServiceUnavailable(ServerError, status=503):
    """503: the service is not available now."""


_FAULT = 500


def kind_of(status: int, code: str) -> type[ErrorResponse]:
    """Return the error of an Error body: by its code, else by its status, else by its hundred."""
    fallback = ServerError if status >= _FAULT else ErrorResponse
    kind = ErrorResponse.by_status.get(status, fallback)
    named = ErrorResponse.by_code.get(code, kind)
    # A code that a later service gives to another status is unknown here.
    return named if issubclass(named, kind) else kind
