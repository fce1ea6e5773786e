"""The result of an operation as an HTTP response."""

from typing import Any

from petstore.http.messages import Headers, Response
from petstore.interface.messages import JSON, encode_json, entity_tag
from petstore.interface.operation import Operation, Result, Target

_CREATED = 201
_TAGGED = (200, _CREATED)
_REPLAYED = b"idempotent-replayed: true"


def encode_result(operation: Operation, target: Target, result: Result[Any]) -> Response:
    """Return the response to an operation that succeeded.

    A new resource has its ``Location``, a page its ``Link`` to the next one and to what comes later
    (RFC 8288). If a list has a single item, its page has the tag of that item, for the ``If-Match``
    of a change. Any other page has a tag of its own, which covers the path in the ``Link`` too, and
    not the host.
    """
    if result.response is not None:
        return result.response
    status, value = operation.success.status, result.value
    headers: Headers = []
    body = tag = b""
    if operation.success.content is not None:
        headers.append(JSON)
        body = representation = encode_json(value)
        if result.total is not None:
            headers.append(b"x-total-count: %d" % result.total)
            representation = b"%d %b" % (result.total, body)
        if isinstance(value, list) and len(value) == 1 and not result.next:
            representation = body[1:-1]
        if result.next or result.latest:
            pages = {"next": result.next, "latest": result.latest}
            paths = {rel: target.next_page(cursor) for rel, cursor in pages.items() if cursor}
            links = (f'<{target.root}{path}>; rel="{rel}"' for rel, path in paths.items())
            headers.append(f"link: {', '.join(links)}".encode("ascii"))
            representation += "".join(paths.values()).encode("ascii")
        if status == _CREATED and not operation.is_batch:
            location = result.location or f"{target.root}{target.path}/{value.id}"
            headers.append(f"location: {location}".encode("ascii"))
        if operation.tagged and status in _TAGGED:
            tag = entity_tag(representation)
            headers.append(b"etag: " + tag)
    if result.is_replay:
        headers.append(_REPLAYED)
    return Response(status, body, headers, tag=tag, waited=result.waited)
