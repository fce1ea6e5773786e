"""Which media type a response is sent in (RFC 9110 section 12.5.1)."""

import re

from petstore.http.messages import Request

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_RANGE = re.compile(
    rb"[ \t]*(%b/%b)[ \t]*((?:;[ \t]*%b=(?:%b|\"[^\"]*\")[ \t]*)*)\Z" % ((_TOKEN,) * 4)
)
_WEIGHT = re.compile(rb";[ \t]*q=([^; \t]*)", re.IGNORECASE)
_QUALITY = re.compile(rb"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")


def choose_media_type(request: Request, default: str, *others: str) -> str:
    """Return one of ``others`` if the client names it and prefers nothing else, else ``default``.

    Of several such ones it is the last. A client that names none of them, only ``text/*`` say,
    gets the default, and so does a client that takes nothing of what there is.
    """
    weights = _weights(request.fields.get(b"accept", b""))
    wildcards = (default, f"{default.partition('/')[0]}/*", "*/*")
    chosen = default
    best = next((weights[name] for name in wildcards if name in weights), 0.0)
    for other in others:
        weight = weights.get(other, 0.0)
        if 0 < weight >= best:
            chosen, best = other, weight
    return chosen


def _weights(field: bytes) -> dict[str, float]:
    """Return the weight of each range that is named; what is no range at all is left out."""
    weights = {}
    for match in filter(None, map(_RANGE.match, field.split(b","))):
        named = _WEIGHT.search(match[2])
        quality = b"1" if named is None else named[1]
        if _QUALITY.fullmatch(quality):
            weights[match[1].decode("ascii").lower()] = float(quality)
    return weights
