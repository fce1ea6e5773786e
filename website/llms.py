"""``llms.txt`` and ``llms-full.txt``: the site for programs that read Markdown (llmstxt.org)."""

from collections.abc import Mapping, Sequence

from petstore.interface.documentation import HOME
from website.navigation import Entry

_ABOUT = """# Petstore

> An HTTP JSON service for a shop that sells pets: list, filter, add and sell them. Each client
> has an API key with scopes, a plan and rate limits.

The interface is at [/v1](/v1/openapi.json), described by that OpenAPI 3.1 document. In the samples,
`http://127.0.0.1:8000/v1` stands for it. Every page is Markdown at its address with `.md` at the
end. [llms-full.txt](/docs/llms-full.txt) has all of them.
"""


def index(nav: Mapping[str, Sequence[Entry]], more: Mapping[str, Sequence[Entry]]) -> str:
    """Return the list of all pages, section by section, with ``more`` entries at their ends."""
    listed = (
        f"\n## {title}\n\n" + "".join(map(_line, (*entries, *more.get(title, ()))))
        for title, entries in nav.items()
    )
    return _ABOUT + "".join(listed)


def whole(sources: Mapping[str, str]) -> str:
    """Return the pages in one text, each after its path."""
    return (
        "\n\n".join(f"<!-- {path} -->\n\n{text.strip()}" for path, text in sources.items()) + "\n"
    )


def _line(entry: Entry) -> str:
    return f"{entry._replace(path=f'{HOME}{entry.path}')}\n"
