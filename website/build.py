"""The steps of the build: stage the sources, render them, prepare the files to be served."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from petstore.interface.openapi.document import document
from website import llms, operations, tables
from website.files import write_site
from website.navigation import Entry, sections, with_entries
from website.rendering import BuildError, Navigation, render
from website.sources import stage

_HOME = "index.md"
_ORIGIN = "http://127.0.0.1:8000"
_OPERATIONS = Entry(
    "Operations", "operations/index.md", "every operation: parameters, responses, errors, samples"
)
_EVENTS = Entry("Event types", "event-types.md", "every type, with an example")
_METRICS = Entry("Metrics", "metrics.md", "every metric for Prometheus")
_REFERENCE = "API reference"
_GENERATED = {_REFERENCE: [_OPERATIONS, _EVENTS], "Operate": [_METRICS]}


def build(target: Path) -> int:
    """Build the site into ``target``, in place of what is there; return the number of pages.

    Raises:
        BuildError: a link leads nowhere, or a page is not in the navigation.
    """
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder, "docs")
        stage(docs)
        listed = _add_generated(docs)
        sources = {
            str(page.relative_to(docs)): page.read_text("utf-8")
            for page in sorted(docs.rglob("*.md"))
        }
        check_navigation(sources, listed)
        site = render(docs, _navigation(listed))
        of_operations = [entry for entries in operations.tags().values() for entry in entries]
        texts = {
            "llms.txt": llms.index(listed, {_REFERENCE: of_operations}),
            "llms-full.txt": llms.whole(sources),
        }
        return write_site(site, target, sources | texts)


def check_navigation(sources: Iterable[str], listed: dict[str, list[Entry]]) -> None:
    """See that each page can be found; the operations have a list of their own.

    Raises:
        BuildError: a page stands in no list.
    """
    found = {_HOME, *(entry.path for entries in listed.values() for entry in entries)}
    for path in sources:
        if path not in found and not path.startswith("operations/"):
            msg = f"docs/{path}: not in the lists of docs/README.md, which are the navigation"
            raise BuildError(msg)


def _add_generated(docs: Path) -> dict[str, list[Entry]]:
    """Write the pages that follow from the code; return the lists of the home page with them."""
    made = operations.pages(document(_ORIGIN))
    made |= {_EVENTS.path: tables.event_types(), _METRICS.path: tables.metric_table()}
    for path, text in made.items():
        page = docs / path
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, "utf-8")
    home = docs / _HOME
    text = home.read_text("utf-8")
    for section, entries in _GENERATED.items():
        text = with_entries(text, section, entries)
    home.write_text(text, "utf-8")
    return sections(text)


def _navigation(listed: dict[str, list[Entry]]) -> Navigation:
    found: list[dict[str, Navigation | str]] = [{"Home": _HOME}]
    for title, entries in listed.items():
        found.append({title: [_item(entry) for entry in entries]})
    return found


def _item(entry: Entry) -> dict[str, Navigation | str]:
    if entry != _OPERATIONS:
        return {entry.title: entry.path}
    of_tags: list[dict[str, Navigation | str]] = [
        {tag: [_item(operation) for operation in entries]}
        for tag, entries in operations.tags().items()
    ]
    return {entry.title: [{"All operations": entry.path}, *of_tags]}
