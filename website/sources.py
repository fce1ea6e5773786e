"""The sources of the site: ``docs/`` without the decision records, and the changelog."""

import re
from os.path import relpath
from pathlib import Path

from website.tables import TABLES

ROOT = Path(__file__).resolve().parent.parent
_DOCS = ROOT / "docs"
_CHANGELOG = ROOT / "CHANGELOG.md"
# A link to a file: the parenthesis around it, its text, its target and its fragment.
_LINK = re.compile(r"(\s*\()?\[([^\]]*)\]\(([^()#:\s]+)(#[^()\s]*)?\)(?(1)\))")
_PAGE_NAME = re.compile(r"[\w./-]+\.md")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_REFERENCE = re.compile(r"^\[[^\]]+\]: .*$", re.MULTILINE)
_TABLE = re.compile(r"^<!-- (\w+) -->$", re.MULTILINE)


def stage(folder: Path) -> None:
    """Copy every source into ``folder``.

    A reader of the site has no checkout. So a link says the title of a page, not its file, and a
    link to a file that the site does not have becomes its text, or goes with its parentheses.
    """
    for source in (*_DOCS.rglob("*"), _CHANGELOG):
        if source.is_file() and _is_on_site(source):
            target = folder / _place(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".md":
                target.write_text(_relinked(source), "utf-8")
            else:
                target.write_bytes(source.read_bytes())


def _is_on_site(source: Path) -> bool:
    is_page = source.is_relative_to(_DOCS) and not source.is_relative_to(_DOCS / "decisions")
    return is_page or source == _CHANGELOG


def _place(source: Path) -> Path:
    if source == _CHANGELOG:
        return Path("changelog.md")
    place = source.relative_to(_DOCS)
    return place.with_name("index.md") if place.name == "README.md" else place


def _relinked(source: Path) -> str:
    """Return the text of a page with links as the site has them."""

    def relinked(link: re.Match[str]) -> str:
        before, text, name, fragment = link.groups(default="")
        target = (source.parent / name).resolve()
        if not _is_on_site(target):
            return "" if before else text
        if not target.exists():  # a page that follows from the code, or what looks like a link
            return link[0]
        if _PAGE_NAME.fullmatch(text) and (title := _TITLE.search(target.read_text("utf-8"))):
            text = title[1]
        place = relpath(_place(target), _place(source).parent)
        return f"{before}[{text}]({place}{fragment}){')' if before else ''}"

    # The comparisons of versions are addresses of a host of the repository.
    text = _REFERENCE.sub("", _LINK.sub(relinked, source.read_text("utf-8")))
    return _TABLE.sub(lambda mark: TABLES[mark[1]](), text)
