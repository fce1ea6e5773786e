"""The output of commands: tables, JSON, progress bars, failures and help in sections."""

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, TypeAlias, cast

import click

from petstore.errors import PetstoreError
from petstore.settings import SettingError

OnProgress: TypeAlias = Callable[..., None]
"""Takes how much is ``done``, of which ``total`` if it is known only now, and a ``note``."""

_WIDTHS = {"name": 24, "description": 40}
_MAX_WIDTH = 10_000
_WHOLE_SENTENCE = 1000
# Categories of characters that control a terminal, or make text look like other text.
_UNSAFE = {"Cc", "Cf", "Zl", "Zp"}
# Harmless ones, within words and emoji.
_JOINERS = "\u200c\u200d"


class SectionedGroup(click.Group):
    """A group whose help lists its commands in order and whole, and in sections if it has some."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._titles: dict[str, str] = {}  # by the name of the command

    def add_commands(self, *commands: click.Command, title: str = "Commands") -> None:
        for command in commands:
            self.add_command(command)
            self._titles[str(command.name)] = title

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            text = command.get_short_help_str(_WHOLE_SENTENCE)
            sections.setdefault(self._titles.get(name, "Commands"), []).append((name, text))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


@contextmanager
def plain_failures(interrupted: Callable[[], str] | None = None) -> Iterator[None]:
    """Turn errors that a user can cause or meet into one line on standard error, and exit 1.

    With ``interrupted``, so is Ctrl-C: it returns what became of the work, and how to go on.
    """
    try:
        yield
    except PetstoreError as error:
        raise click.ClickException(printable(str(error))) from error
    except SettingError as error:
        msg = f"--{error}"
        raise click.UsageError(msg) from error
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        raise
    except OSError as error:
        msg = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise click.ClickException(printable(msg)) from error
    except KeyboardInterrupt:
        if interrupted is None:
            raise
        msg = f"interrupted: {interrupted()}"
        raise click.ClickException(printable(msg)) from None


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator[OnProgress]:
    """Show a progress bar on a terminal; elsewhere show nothing."""
    if not sys.stderr.isatty():
        yield lambda *_, **__: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    shown = escape(printable(title))  # now: the bar replaces standard output for a while
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(shown, total=total)

        def update(done: float | None = None, total: float | None = None, note: str = "") -> None:
            bar.update(task, completed=done, total=total, description=f"{shown}  {note}".rstrip())

        yield update


@contextmanager
def replacing_text(file: Path, errors: str = "strict") -> Iterator[TextIO]:
    from petstore.databases.private_files import replacing

    with replacing(file) as part, TextIOWrapper(part, "utf-8", errors, newline="") as out:
        yield out


def print_secret(kind: str, secret: str, note: str, resume_hint: str, document: Any = None) -> None:
    """Print a note on standard error, and a secret of a ``kind`` alone on standard output.

    With a ``document``, which has the secret too, print its JSON and nothing else. ``resume_hint``
    is how to get another secret if this one cannot be written.
    """
    if document is None:
        with suppress(OSError):  # without the note, the secret is as good
            click.echo(note, err=True)
    try:
        click.echo(secret) if document is None else print_json(document)
    except OSError as error:
        msg = f"cannot write the {kind}: {error.strerror}; {resume_hint}"
        raise click.ClickException(msg) from error


def drop_unwritten() -> None:
    """Drop text that cannot be written, or Python tries again at its end and exits with 120."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2))


class JsonFailure(click.ClickException):
    """Another failure, shown as one line of JSON: the members of an Error of the API.

    ``code`` and ``status`` are null if neither the service nor the store refused the command.
    """

    def __init__(self, failure: click.ClickException) -> None:
        super().__init__(failure.format_message())
        self.exit_code = failure.exit_code  # type: ignore[misc] # which click reads of the instance
        self._refusal = failure.__cause__

    def show(self, file: Any = None) -> None:
        document = {
            "code": getattr(self._refusal, "code", None),
            "message": self.message,
            "status": getattr(self._refusal, "status", None),
        }
        click.echo(json.dumps(document), file, err=True)


def print_table(rows: Sequence[Mapping[str, Any]], dispensable: Sequence[str] = ()) -> None:
    """Print a line for each of ``rows``, after the names of their columns.

    A narrow terminal leaves out ``dispensable`` columns, the first of them first, and a note says
    so.
    """
    if not rows:
        click.echo("None found.", err=True)
        return
    if not sys.stdout.isatty():
        _print_lines(rows)
        return
    from rich.console import Console

    console = Console()
    options = console.options.update(max_width=_MAX_WIDTH)
    for count in range(len(dispensable) + 1):
        left_out = dispensable[:count]
        table = _table(rows, [name for name in rows[0] if name not in left_out])
        if console.measure(table, options=options).maximum <= console.width:
            break
    console.print(table)
    if left_out:
        click.echo(f"(no room for {', '.join(left_out)}: see --json)", err=True)


def _print_lines(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows where no terminal limits them; rich takes a second for a thousand."""
    from rich.cells import cell_len

    lines = [[*rows[0]], *([printable(value) for value in row.values()] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = zip(line, widths, strict=True)
        click.echo("  ".join(text + " " * (width - cell_len(text)) for text, width in cells))


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Any:
    from rich import table
    from rich.text import Text

    made = table.Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        if name in _WIDTHS:
            made.add_column(name, overflow="fold", max_width=_WIDTHS[name])
        else:
            made.add_column(name, no_wrap=True)
    for row in rows:
        made.add_row(*(Text(printable(row[name])) for name in columns))
    return made


def counted(count: int, noun: str) -> str:
    """Return a number of things in words: ``1 row``, ``2,000 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class TerminalOutput:
    """Standard output on a terminal that no text can control; lines stay lines."""

    def __init__(self) -> None:
        self._output = sys.stdout  # now: a progress bar replaces it for a while

    def write(self, text: str) -> None:
        encoding = self._output.encoding
        self._output.write("\n".join(printable(line, encoding) for line in text.split("\n")))


def text_output() -> TextIO | TerminalOutput:
    """Return standard output for text of others: in UTF-8 as files are, or for a terminal."""
    if sys.stdout.isatty():
        return TerminalOutput()
    cast("TextIOWrapper", sys.stdout).reconfigure(encoding="utf-8")
    return sys.stdout


def printable(text: str, encoding: str | None = None) -> str:
    """Return ``text`` with escapes for characters that are unsafe or that cannot be encoded."""
    if text.isascii() and text.isprintable():
        return text
    encoding = encoding or sys.stdout.encoding or "utf-8"  # a progress bar has none
    safe = "".join(_escaped(character) for character in text)
    return safe.encode(encoding, "backslashreplace").decode(encoding)


def _escaped(character: str) -> str:
    if unicodedata.category(character) in _UNSAFE and character not in _JOINERS:
        return character.encode("unicode_escape").decode()
    return character
