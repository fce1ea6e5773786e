"""Markdown to pages, by Zensical: its configuration, and what it complains of."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from petstore import __version__

Navigation: TypeAlias = Sequence[Mapping[str, "str | Navigation"]]
"""The sidebar: pages and sections by their titles."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_COMPLAINT = re.compile(r"Warning: (.*)\n.*\[ (\S+) \]")
_FEATURES = (
    *("content.code.copy", "content.tabs.link", "navigation.footer", "navigation.path"),
    *("navigation.sections", "navigation.top", "toc.follow", "search.highlight"),
)
_PALETTES = (
    ("(prefers-color-scheme)", "default", "lucide/sun-moon", "Switch to light mode"),
    ("(prefers-color-scheme: light)", "default", "lucide/sun", "Switch to dark mode"),
    ("(prefers-color-scheme: dark)", "slate", "lucide/moon", "Switch to system preference"),
)
# Those of the style sheet.
_COLOURS = {"primary": "custom", "accent": "custom"}
# The defaults of Zensical, but for an anchor at each line of code: the keyboard stops at anchors.
_EXTENSIONS = (
    *("admonition", "attr_list", "md_in_html", {"toc": {"permalink": True}}),
    {"pymdownx.highlight": {"line_spans": "__span", "pygments_lang_class": True}},
    *("pymdownx.inlinehilite", "pymdownx.superfences"),
    {"pymdownx.tabbed": {"alternate_style": True, "combine_header_slug": True}},
)
_HERE = Path(__file__).parent
_STYLE = "style.css"
_ICON = _HERE.parent / "src/petstore/console/assets/icon.svg"


class BuildError(Exception):
    """The pages cannot be built; the message says which page and why."""


def render(docs: Path, navigation: Navigation) -> Path:
    """Render the pages in ``docs``; return the folder with the site, beside it.

    Nothing is downloaded.

    Raises:
        BuildError: a link leads nowhere.
    """
    folder = docs.parent
    for file in (_HERE / _STYLE, _ICON):
        (docs / file.name).write_bytes(file.read_bytes())
    # JSON is YAML, which Zensical reads.
    file = folder / "mkdocs.yml"
    file.write_text(json.dumps(_configuration(docs.name, navigation)), "utf-8")
    ran = subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--strict", "--config-file", file],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise BuildError(_complaints(ran.stdout + ran.stderr))
    return folder / "site"


def _configuration(docs: str, navigation: Navigation) -> dict[str, Any]:
    return {
        "site_name": "Petstore",
        "site_description": "An HTTP JSON service for a shop that sells pets.",
        "docs_dir": docs,
        "site_dir": "site",
        "use_directory_urls": False,
        "nav": navigation,
        "repo_url": "console",
        "extra_css": [_STYLE],
        "markdown_extensions": _EXTENSIONS,
        "extra": {"version": __version__},
        "theme": {
            "name": "material",
            "font": False,
            "custom_dir": str(_HERE / "theme"),
            "logo": _ICON.name,
            "favicon": _ICON.name,
            "features": _FEATURES,
            "palette": [
                {"media": media, "scheme": scheme, "toggle": {"icon": icon, "name": name}}
                | _COLOURS
                for media, scheme, icon, name in _PALETTES
            ],
        },
    }


def _complaints(output: str) -> str:
    """Return what Zensical complains of, a line each, without its drawings and colours."""
    plain = _COLOUR.sub("", output)
    found = [f"docs/{place}: {text}" for text, place in _COMPLAINT.findall(plain)]
    return "\n".join(found) or plain
