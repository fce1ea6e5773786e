"""The headers of the responses, each described once."""

from typing import Any, TypeAlias

from petstore.domain.plans import UNLIMITED
from petstore.interface.bodies import ACCEPT_PATCH
from petstore.interface.openapi.schemas import reference

References: TypeAlias = dict[str, dict[str, Any]]
"""Headers by their names in a response, each a reference to a component."""

_COUNT = {"type": "integer", "format": "int32", "minimum": 0, "maximum": UNLIMITED}
_SECONDS = {"type": "integer", "format": "int32", "minimum": 1}
_TIMESTAMP = {"type": "integer", "format": "int64"}
_TEXT = {"type": "string"}


def _header(
    description: str, example: str | int, schema: dict[str, Any] = _TEXT, *, required: bool = True
) -> dict[str, Any]:
    about = {"description": description, "required": required}
    return about | {"schema": schema, "example": example}


_SHOP = "https://api.example.com"
_MAY_LACK = " Not sent if the key has no limit."
_LEFT = "Requests remaining in the current window."
_LEFT_BY_WINDOW = "The windows that have a limit: requests remaining, and seconds to the reset."

HEADERS: dict[str, dict[str, Any]] = {
    "X-RateLimit-Limit": _header("The limit that applies to the caller.", 60, _COUNT),
    "X-RateLimit-Remaining": _header(_LEFT, 59, _COUNT),
    "X-RateLimit-Remaining-None": _header(_LEFT, 0, _COUNT),
    "X-RateLimit-Reset": _header(
        "Unix timestamp at which the limit resets.", 1795262460, _TIMESTAMP
    ),
    "RateLimit-Policy": _header(
        f"The windows that have a limit: quota and seconds.{_MAY_LACK}",
        '"minute";q=60;w=60, "day";q=1000;w=86400',
        required=False,
    ),
    "RateLimit": _header(
        _LEFT_BY_WINDOW + _MAY_LACK, '"minute";r=59;t=60, "day";r=999;t=43200', required=False
    ),
    "RateLimit-None": _header(
        _LEFT_BY_WINDOW + _MAY_LACK, '"minute";r=0;t=42, "day";r=940;t=43200', required=False
    ),
    "X-Request-Id": _header(
        "The client's, if it sent a usable one, else a new one.", "3f9c0a7be1d2"
    ),
    "Vary": _header("The response depends on the key.", "Authorization"),
    "Cache-Control": _header(
        "No shared cache may keep the response; with `no-store` no cache at all.",
        "private, no-cache",
    ),
    "ETag": _header(
        "The version of the resource (RFC 9110 section 8.8.3).", '"5f1c3c6a9a3d2b3f0a7e9d10"'
    ),
    "Location": _header("Where the new resource is.", f"{_SHOP}/v1/pets/7"),
    "Link-Next": _header(
        "The next page, if there is one (RFC 8288).",
        f'<{_SHOP}/v1/pets?limit=20&cursor=AAAAAAAAABQ>; rel="next"',
        required=False,
    ),
    "Link-Latest": _header(
        'The next page, with `rel="next"`, while there is more now. Where to go on later, with'
        ' `rel="latest"`, on every page, the empty one too, unless the newest'
        " come first (RFC 8288).",
        f'<{_SHOP}/v1/events?cursor=AAAAAAAAAAdfHDxq>; rel="next",'
        f' <{_SHOP}/v1/events?cursor=AAAAAAAAAAdfHDxq>; rel="latest"',
        required=False,
    ),
    "X-Total-Count": _header(
        "How many records match, or 10001 if there are more than 10,000. Sent if asked for with"
        " `count=true`.",
        4213,
        _COUNT,
        required=False,
    ),
    "Idempotent-Replayed": _header(
        "Present, and true, if this is a replay of the first response.", "true", required=False
    ),
    "Retry-After": _header("Whole seconds to wait before trying again.", 42, _SECONDS),
    "WWW-Authenticate": _header("How to authenticate (RFC 6750).", 'Bearer realm="petstore"'),
    "WWW-Authenticate-Scope": _header(
        "Which scope the key lacks, if that is the reason (RFC 6750).",
        'Bearer realm="petstore", error="insufficient_scope", scope="pets:write"',
        required=False,
    ),
    "Accept-Encoding": _header(
        "The encodings of a body, if it has another one (RFC 9110 section 12.5.3).",
        "identity",
        required=False,
    ),
    "Accept-Patch": _header(
        "The media types of a PATCH, if this is one of another type (RFC 5789 section 3.1).",
        ACCEPT_PATCH,
        required=False,
    ),
    "Deprecation": _header("Since when the operation is deprecated (RFC 9745).", "@1795219200"),
    "Sunset": _header("When the operation ends (RFC 8594).", "Thu, 05 Dec 2030 00:00:00 GMT"),
    "Link-Help": _header(
        'Where the error is explained, with `rel="help"` (RFC 8288).',
        f'<{_SHOP}/docs/errors#not_found>; rel="help"',
    ),
    "Link-Deprecation": _header(
        "Where the deprecation and an error are explained, and what replaces the operation.",
        f'<{_SHOP}/docs/versions>; rel="deprecation"; type="text/html",'
        f' <{_SHOP}/v1/pets>; rel="successor-version"',
    ),
}
"""The headers by the names of their components; see ``header_references`` for those that differ."""


def header_references(*names: str, **components: str) -> References:
    """Return headers by name, with the component of each that is not called like its header.

    ``components`` are keyword arguments, so an underscore stands for each hyphen.
    """
    others = {name.replace("_", "-"): component for name, component in components.items()}
    return {
        name: reference("headers", component)
        for name, component in ({name: name for name in names} | others).items()
    }


ALWAYS = header_references(
    *("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
    *("RateLimit-Policy", "RateLimit", "X-Request-Id", "Vary", "Cache-Control"),
)
"""The headers of every response that needs a key."""

UNREAD = {name: header for name, header in ALWAYS.items() if name != "Vary"}
"""The headers of a response to a message whose operation is not known."""

HELP = header_references(Link="Link-Help")
"""The header of every error."""

DEPRECATED = header_references("Deprecation", "Sunset", Link="Link-Deprecation")
"""The headers of every response of a deprecated operation."""

OF_STATUS = {
    401: header_references("WWW-Authenticate"),
    403: header_references(WWW_Authenticate="WWW-Authenticate-Scope"),
    415: header_references("Accept-Encoding", "Accept-Patch"),
    429: header_references(
        "Retry-After",
        X_RateLimit_Remaining="X-RateLimit-Remaining-None",
        RateLimit="RateLimit-None",
    ),
    503: header_references("Retry-After"),
}
"""What errors have beside these, by their status."""
