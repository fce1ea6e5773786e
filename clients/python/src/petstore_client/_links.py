"""The ``Link`` header (RFC 8288)."""

import re

from httpx2 import Headers

_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[\w*-]+(?:\s*=\s*(?:"[^"]*"|[^\s;,"]*))?)*)')
_RELATIONS = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))', re.IGNORECASE)


def link_to(relation: str, headers: Headers) -> str | None:
    """Return the target of the link with a relation, as it is written; ``None`` without one."""
    for target, attributes in _LINK.findall(headers.get("Link", "")):
        relations = " ".join("".join(each) for each in _RELATIONS.findall(attributes))
        if relation in relations.lower().split():
            return str(target)
    return None
