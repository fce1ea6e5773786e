"""The responses of the interface: JSON, and the Error body."""

import re
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from petstore.errors import (
    HeaderFieldsTooLarge,
    InvalidRequest,
    Overloaded,
    PetstoreError,
    PreconditionFailed,
    Unimplemented,
    UriTooLong,
)
from petstore.http.messages import Headers, Refusal, Request, Response

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


_TAG = re.compile(rb'(W/)?("[^"]*")')
_TAGS = re.compile(rb'[ \t,]*(?:(?:W/)?"[^"]*"[ \t]*(?:,[ \t,]*|\Z))+\Z')


def entity_tag(representation: bytes) -> bytes:
    """Return the strong entity tag of a representation."""
    return f'"{blake2b(representation, digest_size=12).hexdigest()}"'.encode("ascii")


class Conditions(NamedTuple):
    """The fields ``If-Match`` and ``If-None-Match`` of a request, ``None`` where it has none."""

    if_match: bytes | None = None
    if_none_match: bytes | None = None

    def check(self, resource: object) -> None:
        """Check the version that a change begins with, in the order of section 13.2.2.

        Call it within the unit of work, with the resource as it is before the change.
        """
        if self is NO_CONDITIONS:
            return
        tag = entity_tag(encode_json(resource))
        self.require_match(tag)
        if self.is_excluded(tag):
            msg = "If-None-Match: expected an ETag that differs from the current one"
            raise PreconditionFailed(msg)

    def require_match(self, tag: bytes) -> None:
        """Check ``If-Match`` (section 13.1.1)."""
        if self.if_match is not None and not _matches(self.if_match, tag, weak=False):
            msg = "If-Match: expected the current ETag of the resource, in quotes, or *"
            raise PreconditionFailed(msg)

    def is_excluded(self, tag: bytes) -> bool:
        """Return whether ``If-None-Match`` names the version ``tag`` (section 13.1.2)."""
        return self.if_none_match is not None and _matches(self.if_none_match, tag, weak=True)


NO_CONDITIONS = Conditions()


def conditions_of(request: Request) -> Conditions:
    fields = request.fields
    if b"if-match" not in fields and b"if-none-match" not in fields:
        return NO_CONDITIONS
    return Conditions(fields.get(b"if-match"), fields.get(b"if-none-match"))


def conditional(conditions: Conditions, response: Response) -> Response:
    """Return the ``response`` to a read, or 304 if the client has this version already."""
    if conditions is NO_CONDITIONS or not response.tag:
        return response
    conditions.require_match(response.tag)
    if conditions.is_excluded(response.tag):
        return Response(304, b"", [b"etag: " + response.tag])
    return response


def _matches(field: bytes, tag: bytes, *, weak: bool) -> bool:
    if field.strip() == b"*":
        return True
    # Most fields need not be parsed. The rest must be: the tag in W/ "…" is no strong one.
    if tag not in field or not _TAGS.match(field):
        return False
    return any(tag == found and (weak or not mark) for mark, found in _TAG.findall(field))
