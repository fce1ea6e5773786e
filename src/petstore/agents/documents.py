"""The pages of the documentation, which agents read as resources."""

import re

from mcp.types import Resource

from petstore.errors import NotFound
from petstore.interface.site import HOME, MARKDOWN, Site

_PREFIX = "petstore://docs/"
_INDEX = "llms.txt"
_HOME = "index"
_ENTRY = re.compile(rf"^- \[([^\]]+)\]\({HOME}([^)]+)\.md\): (.+)$", re.MULTILINE)


class Documents:
    """The Markdown of a built site, page by page, as its ``llms.txt`` lists it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._files = site.texts()

    def resources(self) -> list[Resource]:
        """Return all pages; none if the site is not built."""
        if _INDEX not in self._files:
            return []
        index = self._site.text(self._files[_INDEX])
        listed = [(_HOME, "Petstore", "the start of the documentation")]
        listed += [(name, title, text) for title, name, text in _ENTRY.findall(index)]
        return [
            Resource(
                uri=f"{_PREFIX}{name.removesuffix(f'/{_HOME}')}",
                name=name.removesuffix(f"/{_HOME}"),
                title=title,
                description=text,
                mime_type=MARKDOWN,
            )
            for name, title, text in listed
        ]

    def read(self, uri: str) -> str:
        """Return the Markdown of a page.

        Raises:
            NotFound: there is no such page, or the site is not built.
        """
        if not self._files:
            msg = "the documentation is not built; read it at /docs/llms.txt of the store"
            raise NotFound(msg)
        name = uri.removeprefix(_PREFIX)
        for file in (f"{name}.md", f"{name}/{_HOME}.md"):
            if uri.startswith(_PREFIX) and file in self._files:
                return self._site.text(self._files[file])
        msg = f"{uri}: there is no such page; list the resources, or read {_PREFIX}{_HOME}"
        raise NotFound(msg)
