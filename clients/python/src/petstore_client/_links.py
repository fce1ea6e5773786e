"""The ``Link`` header (RFC 8288)."""

import re

from httpx2 import Headers

_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[\w*-]+(?:\s*=\s*(?:"[^"]*"|[^\s;,"]*))?)*)')
_NEXT = re.compile(r';\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next(?![\w-]))', re.IGNORECASE)


def next_link(headers: Headers) -> str | None:
    """Return the target of the link to the next page, as it is written; ``None`` without one."""
    for target, attributes in _LINK.findall(headers.get("Link", "")):
        if _NEXT.search(attributes):
            return str(target)
    return None
