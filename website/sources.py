"""The sources of the site: the pages of ``docs/``, and the files that they link to."""

import re
from collections.abc import Callable, Iterator
from os.path import relpath
from pathlib import Path

ROOT = Path(__file__).parent.parent
# The target of a link to a file, without its fragment.
_LINK = re.compile(r"(?<=\]\()([^()#:\s]+)(?=(?:#[^()\s]*)?\))")
# A link whose text is the name of a page: its text, and its target.
_NAMED = re.compile(r"(?<=\[)[\w./-]+\.md(?=\]\(([^()#:\s]+)(?:#[^()\s]*)?\))")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
# A relative address that only a Git host has, such as a comparison of versions.
_OF_HOST = re.compile(r"^\[[^\]]+\]: \.\./\S+\n", re.MULTILINE)


class Sources:
    """The sources in a checkout.

    What pages link to outside of ``docs/`` stands in the folder ``repository`` of the site: a
    reader has no checkout. For the same reason a link says the title of a page, not its file.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._docs = root / "docs"

    def stage(self, folder: Path) -> None:
        """Copy every source into ``folder``, with links that lead to the copies."""
        staged: set[Path] = set()
        waiting = [page for page in self._docs.rglob("*") if page.is_file()]
        while waiting:
            source = waiting.pop()
            if source in staged:
                continue
            staged.add(source)
            target = folder / self.place(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".md":
                text = source.read_text("utf-8")
                waiting += self._linked(source, text)
                titled = _NAMED.sub(self._titled(source), _OF_HOST.sub("", text))
                target.write_text(_LINK.sub(self._relinked(source), titled), "utf-8")
            else:
                target.write_bytes(source.read_bytes())

    def place(self, source: Path) -> Path:
        """Return where a source stands in the site."""
        if source.is_relative_to(self._docs):
            place = source.relative_to(self._docs)
        else:
            place = "repository" / source.relative_to(self._root)
        return place.with_name("index.md") if place.name == "README.md" else place

    def _linked(self, source: Path, text: str) -> Iterator[Path]:
        for link in _LINK.findall(text):
            target = self._target(source, link)
            if target is not None:
                yield target

    def _relinked(self, source: Path) -> Callable[[re.Match[str]], str]:
        """Return the function that rewrites a link in ``source``."""
        start = self.place(source).parent

        def relinked(link: re.Match[str]) -> str:
            target = self._target(source, link[0])
            return link[0] if target is None else relpath(self.place(target), start)

        return relinked

    def _titled(self, source: Path) -> Callable[[re.Match[str]], str]:
        """Return the function that names a page in ``source`` by its title."""

        def titled(link: re.Match[str]) -> str:
            target = self._target(source, link[1])
            title = target and _TITLE.search(target.read_text("utf-8"))
            return title[1] if title else link[0]

        return titled

    def _target(self, source: Path, link: str) -> Path | None:
        """Return the file that a link means; ``None`` where only the text looks like a link."""
        target = (source.parent / link).resolve()
        if target.is_dir():
            target /= "README.md"
        return target if target.is_file() and target.is_relative_to(self._root) else None
