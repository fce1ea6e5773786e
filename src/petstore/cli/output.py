"""The output of commands: tables, JSON, CSV, progress, failures and help in sections."""

import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, NamedTuple, TextIO, TypeAlias, cast

import click

from petstore.clock import SECOND, rfc3339
from petstore.console.numbers import money_in_words
from petstore.domain.csv_files import csv_writer
from petstore.domain.plans import UNLIMITED
from petstore.errors import PetstoreError
from petstore.settings import SettingError

OnProgress: TypeAlias = Callable[[int, int | None], None]
"""Takes how much is done, and of how much if that is known."""

_WHOLE_SENTENCE = 1000
_MONEY = {"amount", "refund", "refunded"}
_FRACTION = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+Z")
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
def plain_failures() -> Iterator[None]:
    """Exit with one line."""
    try:
        yield
    except PetstoreError as error:
        raise click.ClickException(printable(str(error))) from error
    except SettingError as error:
        raise click.UsageError(f"--{error}") from error
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        raise
    except OSError as error:
        msg = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise click.ClickException(printable(msg)) from error


@contextmanager
def progress(title: str) -> Iterator[OnProgress]:
    """Show on a terminal how much is done; elsewhere show nothing."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return

    def update(done: int, total: int | None) -> None:
        of = "" if total is None else f" of {total:,}"
        click.echo(f"\r{printable(title)}: {done:,}{of}", nl=False, err=True)

    try:
        yield update
    finally:
        click.echo(err=True)


@contextmanager
def replacing_text(file: Path) -> Iterator[TextIO]:
    from petstore.databases.private_files import replacing

    with replacing(file) as part, TextIOWrapper(part, "utf-8", newline="") as out:
        yield out


class Secret(NamedTuple):
    """A member that is shown only once, as ``note`` says."""

    kind: str
    member: str
    note: str


def print_secret(secret: Secret, document: dict[str, Any], *, as_json: bool) -> None:
    """Print a note on standard error, and the secret alone on standard output; or only JSON."""
    if as_json:
        print_json(document)
        return
    text: Any = document
    for part in secret.member.split("."):
        text = text[part]
    name = f" ({document['name']})" if "name" in document else ""
    with suppress(OSError):  # without the note, the secret is as good
        click.echo(printable(f"{secret.kind} {document['id']}{name}: {secret.note}"), err=True)
    click.echo(printable(text))


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


def print_csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    write = csv_writer(text_output(), columns, spreadsheet_safe=True)
    for row in rows:
        write(
            {
                name: json.dumps(value) if isinstance(value, bool | list | dict) else value
                for name, value in row.items()
            }
        )


class JsonFailure(click.ClickException):
    """``code`` and ``status`` are null if neither the service nor the store refused the command."""

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


def print_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """A narrow terminal leaves out the last columns, and a note says so."""
    if not rows:
        click.echo("None found.", err=True)
        return
    names = columns or [*dict.fromkeys(name for row in rows for name in row if name != "currency")]
    table = [
        [_label(name), *(printable(_text(name, row.get(name), row)) for row in rows)]
        for name in names
    ]
    widths = [max(map(_width, column)) for column in table]
    shown = len(table)
    if sys.stdout.isatty():
        room = get_terminal_size().columns
        while shown > 1 and sum(widths[:shown]) + 2 * (shown - 1) > room:
            shown -= 1
    for line in zip(*table[:shown], strict=True):
        padded = [
            text + " " * (width - _width(text)) for text, width in zip(line, widths, strict=False)
        ]
        click.echo("  ".join(padded).rstrip())
    if shown < len(table):
        left_out = ", ".join(column[0] for column in table[shown:])
        click.echo(f"(no room for {left_out}: see --json)", err=True)


def print_resource(document: Mapping[str, Any], columns: Sequence[str] = ()) -> None:
    """Print a line for each member, then each list of objects as a table."""
    tables = {
        name: value
        for name, value in document.items()
        if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    lines = {
        _label(name): _text(name, value, document)
        for name, value in document.items()
        if name not in tables and name != "currency"
    }
    width = max(map(len, lines), default=0)
    for label, text in lines.items():
        click.echo(f"{label:{width}}  {printable(text)}")
    for name, rows in tables.items():
        click.echo(f"\n{_label(name)}:" if lines else f"{_label(name)}:")
        print_table(rows, [each for each in columns if each in rows[0]])


def _label(name: str) -> str:
    return re.sub("([A-Z])", r" \1", re.sub("(?<=.)(Id|At)$", "", name)).lower()


def _text(name: str, value: object, row: Mapping[str, Any]) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name in _MONEY and "currency" in row:
        return money_in_words(value, row["currency"])
    if isinstance(value, int) and name == "reset":
        return rfc3339(value * SECOND)
    if isinstance(value, list):
        value = ", ".join(_text("", each, row) for each in value)
    if isinstance(value, dict):
        value = ", ".join(f"{_label(each)} {_text(each, value[each], row)}" for each in value)
    if value == UNLIMITED and name in ("limit", "remaining"):
        return "unlimited"
    text = "-" if value in (None, "") else str(value)
    return _FRACTION.sub(r"\1Z", text) if _FRACTION.fullmatch(text) else text


def _width(text: str) -> int:
    """Return the number of columns that a terminal needs for a text."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(each) in ("Mn", "Me", "Cf")
        else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )


def counted(count: int, noun: str) -> str:
    """Return a number of things in words: ``1 row``, ``2,000 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class TerminalOutput:
    """Standard output on a terminal that no text can control; lines stay lines."""

    def write(self, text: str) -> None:
        sys.stdout.write("\n".join(map(printable, text.split("\n"))))


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
    encoding = encoding or sys.stdout.encoding or "utf-8"  # a StringIO has none
    safe = "".join(_escaped(character) for character in text)
    return safe.encode(encoding, "backslashreplace").decode(encoding)


def _escaped(character: str) -> str:
    if unicodedata.category(character) in _UNSAFE and character not in _JOINERS:
        return character.encode("unicode_escape").decode()
    return character
