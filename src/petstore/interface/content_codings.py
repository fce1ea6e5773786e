"""Which content coding a response is sent in (RFC 9110 section 12.5.3)."""

import re
from collections.abc import Iterable

from petstore.http.messages import Request

_CODING = re.compile(
    rb"[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*(?:;[ \t]*[qQ]=([01](?:\.[0-9]{0,3})?)[ \t]*)?\Z"
)


def choose_coding(request: Request, available: Iterable[str]) -> str | None:
    """Return the coding that the client prefers, ``None`` if the content goes as it is.

    ``available`` is in the order of the service's own preference. The content as it is can always
    be had, so a client that refuses even that gets it all the same.
    """
    field = request.fields.get(b"accept-encoding")
    if field is None:
        return None
    weights = _weights(field)
    others = weights.get("*", 0.0)
    ranked = [(weights.get(coding, others), coding) for coding in available]
    weight, best = max(ranked, key=lambda pair: pair[0], default=(0.0, ""))
    return best if weight > 0 and weight >= weights.get("identity", 0.0) else None


def _weights(field: bytes) -> dict[str, float]:
    """Return the weight of each coding that is named; what is no weight at all is left out."""
    found = filter(None, map(_CODING.match, field.split(b",")))
    return {match[1].decode("ascii").lower(): float(match[2] or 1) for match in found}
