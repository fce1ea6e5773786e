"""``llms.txt`` and ``llms-full.txt``: the site for programs that read Markdown (llmstxt.org)."""

from collections.abc import Mapping, Sequence

from website.navigation import Entry

_ABOUT = """# Petstore

> An HTTP JSON service for a shop that sells animals: list, filter, add and sell them. Each client
> has an API key with scopes, a plan and rate limits.

Every page is Markdown at its address with `.md` at the end. `llms-full.txt` has all of them. The
OpenAPI 3.1 document is at `/v1/openapi.json`.
"""


def index(nav: Mapping[str, Sequence[Entry]], more: Mapping[str, Sequence[Entry]]) -> str:
    """Return the list of all pages, section by section, with ``more`` entries at their ends."""
    listed = (
        f"\n## {title}\n\n" + "".join(f"{entry}\n" for entry in (*entries, *more.get(title, ())))
        for title, entries in nav.items()
    )
    return _ABOUT + "".join(listed)


def whole(sources: Mapping[str, str]) -> str:
    """Return all pages in one text, each after its path."""
    return (
        "\n\n".join(f"<!-- {path} -->\n\n{text.strip()}" for path, text in sources.items()) + "\n"
    )
