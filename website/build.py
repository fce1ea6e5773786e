"""The steps of the build: stage the sources, render them, prepare the files to be served."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from petstore.api.openapi import document
from petstore.api.operation import BASE
from petstore.api.operations import OPERATIONS
from website import llms, operations, tables
from website.files import write_site
from website.navigation import Entry, sections, with_entries
from website.sources import stage

_HOME = "index.md"
_STYLE = Path(__file__).with_name("style.css")
_GENERATED = "Reference"
_TABLES = {
    Entry("Settings", "settings.md", "every option of `petstore serve`"): tables.settings,
    Entry("Metrics", "metrics.md", "every metric for Prometheus"): tables.metric_table,
    Entry("Types of events", "event-types.md", "every type, with an example"): tables.event_types,
}
_OPERATIONS = Entry(
    "Operations", "operations/index.md", "every operation: parameters, responses, errors, samples"
)
_ERROR = re.compile(r"^(\| \d{3} \| )(?=`(\w+)`)", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_COMPLAINT = re.compile(r"Warning: (.*)\n.*\[ (\S+) \]")
_PALETTES = (
    ("(prefers-color-scheme)", "default", "lucide/sun-moon", "Switch to light mode"),
    ("(prefers-color-scheme: light)", "default", "lucide/sun", "Switch to dark mode"),
    ("(prefers-color-scheme: dark)", "slate", "lucide/moon", "Switch to system preference"),
)


class BuildError(Exception):
    """The pages cannot be built; the message says which page and why."""


def build(target: Path) -> int:
    """Build the site into ``target``, in place of what is there; return the number of pages.

    Nothing is downloaded.

    Raises:
        BuildError: a link leads nowhere, or a page is not in the navigation.
    """
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder, "docs")
        stage(docs)
        nav = _add_generated(docs)
        sources = {
            str(page.relative_to(docs)): page.read_text("utf-8")
            for page in sorted(docs.rglob("*.md"))
        }
        _check_navigation(sources, nav)
        (docs / "style.css").write_bytes(_STYLE.read_bytes())
        _render(Path(folder), nav)
        listed = {_GENERATED: [entry for found in operations.tags().values() for entry in found]}
        return write_site(
            Path(folder, "site"),
            target,
            sources | {"llms.txt": llms.index(nav, listed), "llms-full.txt": llms.whole(sources)},
        )


def _add_generated(docs: Path) -> dict[str, list[Entry]]:
    """Write the pages that follow from the code; return the navigation with them in it."""
    made = operations.pages(document(BASE, OPERATIONS))
    made |= {entry.path: page() for entry, page in _TABLES.items()}
    for path, text in made.items():
        page = docs / path
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, "utf-8")
    errors = docs / "errors.md"
    errors.write_text(_ERROR.sub(r"\1<span id='\2'></span>", errors.read_text("utf-8")), "utf-8")
    home = docs / _HOME
    text = with_entries(home.read_text("utf-8"), _GENERATED, [_OPERATIONS, *_TABLES])
    home.write_text(text, "utf-8")
    return sections(text)


def _check_navigation(sources: dict[str, str], nav: dict[str, list[Entry]]) -> None:
    """See that each page can be found. Folders with an index of their own list their pages."""
    listed = {entry.path for entries in nav.values() for entry in entries}
    for path in sources:
        folder = path.partition("/")[0]
        if path != _HOME and not {path, f"{folder}/{_HOME}"} & listed:
            msg = f"docs/{path}: not in the lists of docs/README.md, which are the navigation"
            raise BuildError(msg)


def _render(folder: Path, nav: dict[str, list[Entry]]) -> None:
    """Run Zensical on the sources in ``folder``."""
    configuration = {
        "site_name": "Petstore",
        "site_description": "An HTTP JSON service for a shop that sells animals.",
        "use_directory_urls": False,
        "nav": [{"Home": _HOME}, *_nav_items(nav)],
        "extra_css": ["style.css"],
        "theme": {
            "name": "material",
            "font": False,
            "features": [
                *("content.code.copy", "content.tabs.link", "navigation.footer"),
                *("navigation.sections", "navigation.top", "toc.follow"),
                *("search.highlight", "navigation.path"),
            ],
            "palette": [
                {"media": media, "scheme": scheme, "toggle": {"icon": icon, "name": name}}
                for media, scheme, icon, name in _PALETTES
            ],
        },
    }
    # JSON is YAML, which Zensical reads too.
    file = folder / "mkdocs.yml"
    file.write_text(json.dumps(configuration), "utf-8")
    ran = subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--strict", "--config-file", file],
        cwd=folder,
        env={"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise BuildError(_complaints(ran.stdout + ran.stderr))


def _complaints(output: str) -> str:
    """Return what Zensical complains of, a line each, without its drawings and colours."""
    found = _COMPLAINT.findall(_COLOUR.sub("", output))
    return "\n".join(f"docs/{place}: {text}" for text, place in found) or output


def _nav_items(nav: dict[str, list[Entry]]) -> Iterator[dict[str, Any]]:
    for title, entries in nav.items():
        yield {
            title: [
                _operations_nav() if entry == _OPERATIONS else {entry.title: entry.path}
                for entry in entries
            ]
        }


def _operations_nav() -> dict[str, Any]:
    of_tags = [
        {tag: [{entry.title: entry.path} for entry in entries]}
        for tag, entries in operations.tags().items()
    ]
    return {_OPERATIONS.title: [{"All operations": _OPERATIONS.path}, *of_tags]}
