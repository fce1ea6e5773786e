"""What Schemathesis leaves out: a target that is longer than any may be (RFC 9112 section 3)."""

from typing import Any
from urllib.parse import urlencode

import schemathesis

_MAX_QUERY = 8_000


@schemathesis.hook
def filter_query(_context: Any, query: dict[str, Any] | None) -> bool:
    """Return whether a query fits: a longer one is refused below the interface, with 414."""
    return len(urlencode(query or {}, doseq=True, errors="replace")) < _MAX_QUERY
