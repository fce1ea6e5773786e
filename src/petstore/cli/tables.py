"""Tables: fitted to a terminal, and with every column elsewhere."""

import sys
import unicodedata
from collections.abc import Sequence
from typing import Any

import click

_WIDTHS = {"name": 24, "description": 40}
_WIDEST = 10_000
# What steers a terminal, or makes text look like other text.
_UNSAFE = {"Cc", "Cf", "Zl", "Zp"}
# Harmless ones, within words and emoji.
_JOINERS = "\u200c\u200d"


def print_table(rows: Sequence[dict[str, str]], dispensable: Sequence[str], elsewhere: str) -> None:
    """Print a line for each of ``rows``, which all have the same columns.

    On a narrow terminal the ``dispensable`` columns are left out, the first of them first, and a
    note says where they are: ``elsewhere``.
    """
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else _WIDEST)
    for left_out in range(len(dispensable) + 1):
        table = _table(rows, [name for name in rows[0] if name not in dispensable[:left_out]])
        options = console.options.update(max_width=_WIDEST)
        if console.measure(table, options=options).maximum <= console.width:
            break
    console.print(table)
    if left_out:
        missing = ", ".join(dispensable[:left_out])
        click.echo(f"(no room for {missing}: see {elsewhere})", err=True)


def printable(text: str) -> str:
    """Return ``text`` with escapes for what would steer a terminal or cannot be written to it."""
    return _printable(text, sys.stdout.encoding)


def _printable(text: str, encoding: str) -> str:
    safe = "".join(_escaped(character) for character in text)
    return safe.encode(encoding, "backslashreplace").decode(encoding)


class TerminalOutput:
    """Standard output as a terminal that no text can steer; lines stay lines."""

    def __init__(self) -> None:
        # Now: a progress bar puts something else in its place.
        self._output = sys.stdout

    def write(self, text: str) -> None:
        """Print ``text`` with escapes for what is unsafe."""
        encoding = self._output.encoding
        self._output.write("\n".join(_printable(line, encoding) for line in text.split("\n")))


def _escaped(character: str) -> str:
    if unicodedata.category(character) in _UNSAFE and character not in _JOINERS:
        return character.encode("unicode_escape").decode()
    return character


def _table(rows: Sequence[dict[str, str]], columns: list[str]) -> Any:
    from rich.table import Table
    from rich.text import Text

    widths = _WIDTHS if sys.stdout.isatty() else {}
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        if name in _WIDTHS:
            table.add_column(name, overflow="fold", max_width=widths.get(name))
        else:
            table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(printable(row[name])) for name in columns))
    return table
