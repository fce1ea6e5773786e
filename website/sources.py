"""The sources of the site: the pages of ``docs/``, and the files that they link to."""

import re
from collections.abc import Callable, Iterator
from os.path import relpath
from pathlib import Path

ROOT = Path(__file__).parent.parent
_DOCS = ROOT / "docs"
_LINK = re.compile(r"(?<=\]\()([^()#:\s]+)(?=(?:#[^()\s]*)?\))")


def stage(folder: Path) -> None:
    """Copy every source into ``folder``, with links that lead to the copies.

    The folder ``repository`` gets what the pages link to outside of ``docs/``: a reader of the site
    has no checkout.
    """
    staged: set[Path] = set()
    waiting = [page for page in _DOCS.rglob("*") if page.is_file()]
    while waiting:
        source = waiting.pop()
        if source in staged:
            continue
        staged.add(source)
        target = folder / place(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = source.read_text("utf-8")
            waiting += _linked(source, text)
            target.write_text(_LINK.sub(_relinked(source), text), "utf-8")
        else:
            target.write_bytes(source.read_bytes())


def place(source: Path) -> Path:
    """Return where a source stands in the site."""
    in_docs = source.is_relative_to(_DOCS)
    inside = source.relative_to(_DOCS) if in_docs else "repository" / source.relative_to(ROOT)
    return inside.with_name("index.md") if inside.name == "README.md" else inside


def _linked(source: Path, text: str) -> Iterator[Path]:
    for link in _LINK.findall(text):
        target = _target(source, link)
        if target is not None:
            yield target


def _relinked(source: Path) -> Callable[[re.Match[str]], str]:
    """Return the replacement of a link in ``source``."""
    start = place(source).parent

    def replacement(link: re.Match[str]) -> str:
        target = _target(source, link[0])
        return link[0] if target is None else relpath(place(target), start)

    return replacement


def _target(source: Path, link: str) -> Path | None:
    """Return the file that a link means; ``None`` where only the text looks like one."""
    target = (source.parent / link).resolve()
    if target.is_dir():
        target /= "README.md"
    return target if target.is_file() and target.is_relative_to(ROOT) else None
