"""``make lists``: write the lists of the documentation that follow from the code.

Each stands between two marks, ``<!-- name -->`` and ``<!-- end of name -->``.
"""

import re
from dataclasses import fields

from petstore.agents.tools import TOOLS
from petstore.settings import Settings
from website.sources import ROOT

_DEMO = (
    "| `--demo` | `PETSTORE_DEMO` | off | First fill an empty store with pets and orders; add a"
    " key and an administrator. |"
)


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
    scopes = dict.fromkeys(tool.operation.scope for tool in TOOLS)
    rows = [
        f"| {f'`{scope}`' if scope else 'any key'}"
        f" | {', '.join(f'`{tool.name}`' for tool in TOOLS if tool.operation.scope == scope)} |"
        for scope in scopes
    ]
    return "\n".join(["| Scope | Tools |", "|---|---|", *rows])


LISTS = {
    "settings": (ROOT / "docs/settings.md", settings),
    "tools": (ROOT / "docs/agents.md", tools),
}
"""Each list by the name in its marks: its page, and what makes it."""


def with_list(page: str, name: str, text: str) -> str:
    """Return the text of a page with a new list between the marks of ``name``."""
    between = f"(?s)(?<=<!-- {name} -->\n).*?(?=\n<!-- end of {name} -->)"
    return re.sub(between, lambda _: text, page)


def _default(value: object) -> str:
    if value is False:
        return "off"
    return "none" if value in ((), "") else f"`{value}`"


if __name__ == "__main__":
    for name, (page, make) in LISTS.items():
        page.write_text(with_list(page.read_text(), name, make()))
