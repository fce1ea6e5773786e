"""Entity tags and the conditions of a request (RFC 9110 sections 8.8.3 and 13)."""

import re
from collections.abc import Callable
from hashlib import blake2b

from petstore.api.messages import encode_json
from petstore.errors import InvalidParameter, PreconditionFailed
from petstore.http.messages import Headers, Request, Response

LONGEST = 1024
"""The largest list of tags that is read, in bytes."""

_SUCCESSES = frozenset({200, 201})
_READS = frozenset({"GET", "HEAD"})
_FIELDS = {b"if-match": "If-Match", b"if-none-match": "If-None-Match"}
_TAG = re.compile(rb'(W/)?("[^"]*")')
_TAGS = re.compile(rb'[ \t,]*(?:(?:W/)?"[^"]*"[ \t]*(?:,[ \t,]*|\Z))+\Z')


def entity_tag(representation: bytes) -> bytes:
    """Return the strong entity tag of a representation."""
    return f'"{blake2b(representation, digest_size=12).hexdigest()}"'.encode("ascii")


def with_tag(response: Response, representation: bytes) -> Response:
    """Return ``response`` with the ``ETag`` of ``representation``."""
    tag = entity_tag(representation)
    headers: Headers = [*response.headers, b"etag: " + tag]
    return Response(response.status, response.body, headers, tag=tag)


def check_conditions(request: Request) -> None:
    """Refuse lists of tags that are too long to read.

    Raises:
        InvalidParameter: one is too long.
    """
    if not _has_conditions(request):
        return
    for field, name in _FIELDS.items():
        if len(request.fields.get(field, b"")) > LONGEST:
            msg = f"{name}: expected at most {LONGEST} bytes"
            raise InvalidParameter(msg)


def conditional(request: Request, response: Response) -> Response:
    """Return ``response`` with its ``ETag``, or 304 if the client has this version already.

    A change checks its conditions in ``precondition`` instead.

    Raises:
        PreconditionFailed: the ``If-Match`` of a read names another version (section 13.1.1).
    """
    if response.status not in _SUCCESSES:
        return response
    if not response.tag:
        response = with_tag(response, response.body)
    if request.method in _READS and _has_conditions(request):
        _require_match(request, response.tag)
        if _is_excluded(request, response.tag):
            return Response(304, b"", [b"etag: " + response.tag])
    return response


def precondition(request: Request) -> Callable[[object], None]:
    """Return the check of ``If-Match`` and ``If-None-Match``, in this order (section 13.2.2).

    Call it with the resource as it is before the change. It raises ``PreconditionFailed``.
    """

    def check(resource: object) -> None:
        if not _has_conditions(request):
            return
        tag = entity_tag(encode_json(resource))
        _require_match(request, tag)
        if _is_excluded(request, tag):
            msg = "If-None-Match: expected an ETag that differs from the current one"
            raise PreconditionFailed(msg)

    return check


def _has_conditions(request: Request) -> bool:
    return b"if-none-match" in request.fields or b"if-match" in request.fields


def _require_match(request: Request, tag: bytes) -> None:
    wanted = request.fields.get(b"if-match")
    if wanted is not None and not _matches(wanted, tag, weak=False):
        msg = "If-Match: expected the current ETag of the resource, in quotes, or *"
        raise PreconditionFailed(msg)


def _is_excluded(request: Request, tag: bytes) -> bool:
    excluded = request.fields.get(b"if-none-match")
    return excluded is not None and _matches(excluded, tag, weak=True)


def _matches(field: bytes, tag: bytes, *, weak: bool) -> bool:
    if field.strip() == b"*":
        return True
    # Most fields need not be parsed. The rest must be: the tag in W/ "…" is no strong one.
    if tag not in field or not _TAGS.match(field):
        return False
    return any(tag == found and (weak or not mark) for mark, found in _TAG.findall(field))
