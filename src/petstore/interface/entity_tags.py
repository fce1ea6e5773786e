"""Entity tags and the conditions of a request (RFC 9110 sections 8.8.3 and 13)."""

import re
from hashlib import blake2b
from typing import NamedTuple

from petstore.errors import InvalidParameter, PreconditionFailed
from petstore.http.messages import Request, Response
from petstore.interface.messages import encode_json

LONGEST = 1024
"""The largest list of tags that is read, in bytes."""

_FIELDS = {b"if-match": "If-Match", b"if-none-match": "If-None-Match"}
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
    for field, name in _FIELDS.items():
        if len(fields.get(field, b"")) > LONGEST:
            msg = f"{name}: expected at most {LONGEST} bytes"
            raise InvalidParameter(msg)
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
