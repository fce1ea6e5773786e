"""The pages of the documentation, which agents read as resources."""

import gzip
import re
from pathlib import Path

from mcp.types import Resource

from petstore.errors import NotFound
from petstore.interface.documentation import FOLDER, HOME

MARKDOWN = "text/markdown"

_PREFIX = "petstore://docs/"
_INDEX = "llms.txt"
_HOME = "index"
_ENTRY = re.compile(rf"^- \[([^\]]+)\]\({HOME}([^)]+)\.md\): (.+)$", re.MULTILINE)


class Documents:
    """The Markdown of the documentation, page by page, as its ``llms.txt`` lists it."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._pages: dict[str, tuple[str, str]] = {}
        if (folder / f"{_INDEX}.gz").exists():
            self._pages[_HOME] = ("Petstore", "the start of the documentation")
            for title, name, text in _ENTRY.findall(self._text(_INDEX)):
                self._pages[name] = (title, text)

    def resources(self) -> list[Resource]:
        """Return all pages; none if the documentation is not built."""
        return [
            Resource(
                uri=f"{_PREFIX}{name.removesuffix(f'/{_HOME}')}",
                name=name.removesuffix(f"/{_HOME}"),
                title=title,
                description=text,
                mime_type=MARKDOWN,
            )
            for name, (title, text) in self._pages.items()
        ]

    def read(self, uri: str) -> str:
        """Return the Markdown of a page.

        Raises:
            NotFound: there is no such page, or the documentation is not built.
        """
        if not self._pages:
            msg = "the documentation is not built; read it at /docs/llms.txt of the store"
            raise NotFound(msg)
        name = uri.removeprefix(_PREFIX)
        for page in (name, f"{name}/{_HOME}"):
            if uri.startswith(_PREFIX) and page in self._pages:
                return self._text(f"{page}.md")
        msg = f"{uri}: there is no such page; list the resources, or read {_PREFIX}{_HOME}"
        raise NotFound(msg)

    def _text(self, name: str) -> str:
        return gzip.decompress((self._folder / f"{name}.gz").read_bytes()).decode()
