"""Entity tags: which version of a resource an answer shows, and a caller means (RFC 9110)."""

import re
from collections.abc import Callable
from hashlib import blake2b

from petstore.api.messages import Answer, Request, encode_json
from petstore.errors import PreconditionFailed

_SUCCESSES = (200, 201)
_TAG = re.compile(rb'(W/)?("[^"]*")')
_TAGS = re.compile(rb'[ \t,]*(?:(?:W/)?"[^"]*"[ \t]*(?:,[ \t,]*|\Z))+\Z')


def entity_tag(body: bytes) -> bytes:
    """Return the strong tag of a representation: the same for the same bytes, and no other."""
    return b'"%s"' % blake2b(body, digest_size=12).hexdigest().encode("ascii")


def tagged(request: Request, answer: Answer) -> Answer:
    """Return ``answer`` with its ``ETag``, or 304 if the caller has this version already."""
    if answer.status not in _SUCCESSES:
        return answer
    tag = entity_tag(answer.body)
    header = b"etag: " + tag
    known = request.fields.get(b"if-none-match")
    if known is not None and request.method in ("GET", "HEAD") and _matches(known, tag, weak=True):
        return Answer(304, b"", [header])
    return Answer(answer.status, answer.body, [*answer.headers, header])


def precondition(request: Request) -> Callable[[object], None]:
    """Return the check of ``If-Match``, for the resource as it is when it is to be changed.

    It raises ``PreconditionFailed``.
    """
    wanted = request.fields.get(b"if-match")

    def check(resource: object) -> None:
        if wanted is not None and not _matches(
            wanted, entity_tag(encode_json(resource)), weak=False
        ):
            msg = "If-Match: expected the present version of the resource, which is another one"
            raise PreconditionFailed(msg)

    return check


def _matches(field: bytes, tag: bytes, *, weak: bool) -> bool:
    if field.strip() == b"*":
        return True
    if not _TAGS.match(field):  # or the tag in W/ "…" would pass for a strong one
        return False
    return any(tag == found and (weak or not mark) for mark, found in _TAG.findall(field))
