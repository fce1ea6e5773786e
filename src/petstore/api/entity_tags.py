"""Entity tags: which version of a resource an answer shows, and a caller means (RFC 9110)."""

import re
from collections.abc import Callable
from hashlib import blake2b

from petstore.api.messages import encode_json
from petstore.errors import InvalidParameter, PreconditionFailed
from petstore.http.messages import Headers, Request, Response

LONGEST = 1024
"""Bytes of a list of tags that is read."""

_SUCCESSES = (200, 201)
_READS = ("GET", "HEAD")
_FIELDS = {b"if-match": "If-Match", b"if-none-match": "If-None-Match"}
_TAG = re.compile(rb'(W/)?("[^"]*")')
_TAGS = re.compile(rb'[ \t,]*(?:(?:W/)?"[^"]*"[ \t]*(?:,[ \t,]*|\Z))+\Z')


def entity_tag(representation: bytes) -> bytes:
    """Return the strong tag of a representation: the same for the same bytes, and no other."""
    return b'"%s"' % blake2b(representation, digest_size=12).hexdigest().encode("ascii")


def with_tag(answer: Response, representation: bytes) -> Response:
    """Return ``answer`` with the ``ETag`` of ``representation``."""
    tag = entity_tag(representation)
    headers: Headers = [*answer.headers, b"etag: " + tag]
    return Response(answer.status, answer.body, headers, tag=tag)


def check_conditions(request: Request) -> None:
    """Refuse lists of tags that nobody reads to the end.

    Raises:
        InvalidParameter: one is too long.
    """
    if _FIELDS.keys().isdisjoint(request.fields):
        return
    for field, name in _FIELDS.items():
        if len(request.fields.get(field, b"")) > LONGEST:
            msg = f"{name}: expected at most {LONGEST} bytes"
            raise InvalidParameter(msg)


def conditional(request: Request, answer: Response) -> Response:
    """Return ``answer`` with its ``ETag``, or 304 if the caller has this version already.

    The conditions of a change are those of ``precondition``, which was checked then.

    Raises:
        PreconditionFailed: a caller who reads means another version (section 13.1.1).
    """
    if answer.status not in _SUCCESSES:
        return answer
    if not answer.tag:
        answer = with_tag(answer, answer.body)
    if request.method in _READS and not _FIELDS.keys().isdisjoint(request.fields):
        _require_match(request, answer.tag)
        if _is_excluded(request, answer.tag):
            return Response(304, b"", [b"etag: " + answer.tag])
    return answer


def precondition(request: Request) -> Callable[[object], None]:
    """Return the check of ``If-Match`` and ``If-None-Match``, in this order (section 13.2.2).

    It is for the resource as it is when it is to be changed, and raises ``PreconditionFailed``.
    """

    def check(resource: object) -> None:
        if _FIELDS.keys().isdisjoint(request.fields):
            return
        tag = entity_tag(encode_json(resource))
        _require_match(request, tag)
        if _is_excluded(request, tag):
            msg = "If-None-Match: expected another version of the resource than the present one"
            raise PreconditionFailed(msg)

    return check


def _require_match(request: Request, tag: bytes) -> None:
    wanted = request.fields.get(b"if-match")
    if wanted is not None and not _matches(wanted, tag, weak=False):
        msg = "If-Match: expected the present ETag of the resource, in its quotes, or *"
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
