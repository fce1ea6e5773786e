"""The responses of the interface: JSON, and the Error body."""

import msgspec

from petstore.errors import (
    HeaderFieldsTooLarge,
    InvalidRequest,
    Overloaded,
    PetstoreError,
    Unimplemented,
    UriTooLong,
)
from petstore.http.messages import Headers, Refusal, Response

JSON = b"content-type: application/json"
NO_STORE = b"cache-control: no-store"

_REFUSALS = {
    error.status: error
    for error in (InvalidRequest, UriTooLong, HeaderFieldsTooLarge, Unimplemented, Overloaded)
}

encode_json = msgspec.json.Encoder().encode


def json_response(status: int, content: object, headers: Headers | None = None) -> Response:
    return Response(status, encode_json(content), [JSON, *(headers or ())])


def error_response(error: PetstoreError, root: str) -> Response:
    """Return the Error body: exactly ``code``, ``message`` and ``status``.

    A link with the relation ``help`` leads to the explanation of the code, below ``root``, the URL
    of the service (RFC 8288).
    """
    body = {"code": error.code, "message": error.message, "status": error.status}
    explanation = f'link: <{root}/docs/errors#{error.code}>; rel="help"'.encode("ascii")
    headers = [
        f"{name.lower()}: {value}".encode("latin-1") for name, value in error.headers.items()
    ]
    return Response(
        error.status,
        encode_json(body),
        [JSON, explanation, *headers],
        code=error.code,
        limit=error.limit,
    )


def refusal_response(refusal: Refusal, root: str) -> Response:
    """Return the Error body for a message that the server refuses."""
    return error_response(_REFUSALS[refusal.status](refusal.message), root)
