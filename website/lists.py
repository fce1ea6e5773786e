"""``make lists``: write the lists of the documentation that follow from the code.

Each stands between two marks, ``<!-- name -->`` and ``<!-- end of name -->``.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from petstore.agents.tools import TOOLS
from petstore.settings import Settings
from website.sources import ROOT

_PACKAGE = ROOT / "src/petstore"
_INDENT = "  "
_COLUMN = 30  # where the descriptions of modules begin
_DEMO = (
    "| `--demo` | `PETSTORE_DEMO` | off | First fill an empty store with animals and orders, and"
    " create a key for it. |"
)


def modules() -> str:
    """Return every module with the first line of its docstring, folder by folder."""
    return "\n".join(["```", "src/petstore/", *_folder(_PACKAGE, 1), "```"])


def settings() -> str:
    """Return the table of settings: option, environment variable, default and meaning."""
    rows = [
        f"| `--{field.name.replace('_', '-')}` | `PETSTORE_{field.name.upper()}`"
        f" | {_default(field.default)} | {field.metadata['description']} |"
        for field in fields(Settings)
    ]
    head = ["| Option | Environment variable | Default | Meaning |", "|---|---|---|---|"]
    return "\n".join([*head, _DEMO, *rows])


def tools() -> str:
    """Return the tools of agents by the scope that they need."""
    scopes = dict.fromkeys(tool.scope for tool in TOOLS)
    rows = [
        f"| {f'`{scope}`' if scope else 'any key'}"
        f" | {', '.join(f'`{tool.name}`' for tool in TOOLS if tool.scope == scope)} |"
        for scope in scopes
    ]
    return "\n".join(["| Scope | Tools |", "|---|---|", *rows])


LISTS = {
    "modules": (ROOT / "docs/architecture.md", modules),
    "settings": (ROOT / "docs/settings.md", settings),
    "tools": (ROOT / "docs/agents.md", tools),
}
"""Each list by the name in its marks: its page, and what makes it."""


def with_list(page: str, name: str, text: str) -> str:
    """Return the text of a page with a new list between the marks of ``name``."""
    between = f"(?s)(?<=<!-- {name} -->\n).*?(?=\n<!-- end of {name} -->)"
    return re.sub(between, lambda _: text, page)


def _folder(folder: Path, depth: int) -> Iterator[str]:
    for path in sorted(folder.glob("*.py")):
        if path.name != "__init__.py":
            yield _line(path.name, path, depth)
    for package in sorted(folder.glob("*/__init__.py")):
        yield _line(f"{package.parent.name}/", package, depth)
        yield from _folder(package.parent, depth + 1)


def _line(name: str, module: Path, depth: int) -> str:
    meaning = (ast.get_docstring(ast.parse(module.read_text())) or "").partition("\n")[0]
    plain = meaning.removesuffix(".").replace("``", "")
    return f"{depth * _INDENT + name:<{_COLUMN}}{plain}"


def _default(value: object) -> str:
    if value is False:
        return "off"
    return "none" if value in ((), "") else f"`{value}`"


if __name__ == "__main__":
    for name, (page, make) in LISTS.items():
        page.write_text(with_list(page.read_text(), name, make()))
