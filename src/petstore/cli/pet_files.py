"""``petstore pets import`` and ``export``: move animals in and out of a store."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO, get_args

import click

from petstore.cli.options import database_option
from petstore.cli.output import TerminalOutput, plain_failures, printable, progress
from petstore.cli.stores import in_store, note_new_store, require_store
from petstore.clock import system_clock
from petstore.databases.private_files import part_of, replacing
from petstore.errors import Unavailable
from petstore.store.pet_files import FileFormat, FileRow, Output, export_pets
from petstore.store.pet_imports import ImportCallbacks, import_pets

_ENDINGS: dict[str, FileFormat] = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}

# A slow disk has recovered by then, and another long transaction has ended.
_MAX_WAIT_SECONDS = 300


class Wait:
    """Waits for a slow database, up to five minutes at a time by ``now``, and prints the reason."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._ends_at: float | None = None

    def may_go_on(self, reason: Unavailable) -> bool:
        """Return whether to wait longer. The first call of a wait prints the reason."""
        if self._ends_at is None:
            self._ends_at = self._now() + _MAX_WAIT_SECONDS
            click.echo(f"Waiting up to {_MAX_WAIT_SECONDS} s: {printable(str(reason))}", err=True)
        return self._now() < self._ends_at

    def end(self) -> None:
        """End the wait: the database has responded."""
        self._ends_at = None


_format_option = click.option(
    "--format",
    "file_format",
    type=click.Choice(get_args(FileFormat)),
    help="CSV or JSON Lines. [default: by the ending of FILE]",
)


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path))
@_format_option
@click.option(
    "--refused",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write refused rows to this file, so that you can correct and import them.",
)
@click.option("--again", is_flag=True, help="Import a file again that was imported before.")
@click.option(
    "--strict-categories",
    is_flag=True,
    envvar="PETSTORE_STRICT_CATEGORIES",
    show_envvar=True,
    help="Refuse animals of categories that are not registered.",
)
@database_option
def import_file(
    *,
    file: Path,
    file_format: FileFormat | None,
    refused: Path | None,
    again: bool,
    strict_categories: bool,
    database: str,
) -> None:
    """Add the animals of FILE: CSV with a header line, or JSON Lines.

    The columns are name, categoryId and status. Other columns are ignored, and animals get new ids.
    Valid rows are added. Bad rows are reported with their line numbers; the exit status is then 1.
    If an import was interrupted, run it again: it continues where it stopped.
    """
    chosen = _format(file, file_format)
    if refused is not None and file.resolve() in {refused.resolve(), part_of(refused).resolve()}:
        msg = "expected another file than the imported one"
        raise click.BadParameter(msg, param_hint="--refused")
    note_new_store(database)
    rows_done = 0
    wait = Wait()

    def interrupted() -> str:
        done = f"the first {rows_done:,} rows of {file} are done"
        return f"{done}. Run the same command again to go on; nothing is added twice"

    def note_progress(rows: int, size: int) -> None:
        nonlocal rows_done
        rows_done = rows
        wait.end()
        on_progress(size)

    with (
        plain_failures(interrupted),
        _refusals(refused, file, chosen) as on_refused,
        progress(f"Importing {file.name}", file.stat().st_size) as on_progress,
    ):
        result = in_store(
            database,
            lambda store: import_pets(
                store,
                file,
                chosen,
                system_clock,
                again=again,
                strict_categories=strict_categories,
                callbacks=ImportCallbacks(on_refused, note_progress, wait.may_go_on),
            ),
            create=True,
        )
    if result.was_complete:
        click.echo(f"{file} was imported before; nothing added. To add it all once more: --again")
        return
    if result.resumed_at:
        click.echo(f"Went on after the {result.resumed_at:,} rows imported before.")
    click.echo(f"{result.added:,} animals added, {result.refused:,} rows refused.")
    if result.refused:
        raise click.exceptions.Exit(1)


@click.command("export")
@click.argument("file", type=click.Path(dir_okay=False, writable=True, path_type=Path), default="-")
@_format_option
@click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="CSV only: put ' before names that a spreadsheet would run as a formula.",
)
@database_option
def export_file(
    *, file: Path, file_format: FileFormat | None, spreadsheet_safe: bool, database: str
) -> None:
    """Write every animal to FILE, or to standard output: CSV or JSON Lines."""
    to_stdout = str(file) == "-"
    chosen = file_format or "csv" if to_stdout else _format(file, file_format)
    if spreadsheet_safe and chosen != "csv":
        msg = "--spreadsheet-safe is for CSV"
        raise click.UsageError(msg)
    require_store(database)
    outcome = "the output is incomplete" if to_stdout else f"{file} is unchanged"
    with (
        plain_failures(lambda: outcome),
        _standard_output() if to_stdout else _replacing(file) as out,
        progress("Exporting") as on_progress,
    ):
        count = in_store(
            database,
            lambda store: export_pets(
                store, out, chosen, on_progress, spreadsheet_safe=spreadsheet_safe
            ),
        )
    click.echo(f"{count:,} animals exported.", err=True)


def _standard_output() -> AbstractContextManager[Output]:
    return nullcontext(TerminalOutput() if sys.stdout.isatty() else sys.stdout)


@contextmanager
def _replacing(file: Path, errors: str = "strict") -> Iterator[TextIO]:
    """Write a file that replaces ``file`` once it is complete."""
    with replacing(file) as part, TextIOWrapper(part, "utf-8", errors, newline="") as out:
        yield out


def _format(file: Path, chosen: FileFormat | None) -> FileFormat:
    found = chosen or _ENDINGS.get(file.suffix.lower())
    if found is None:
        msg = f"{file}: expected a name that ends in .csv or .jsonl, or --format"
        raise click.UsageError(msg)
    return found


@contextmanager
def _refusals(
    target: Path | None, source: Path, file_format: FileFormat
) -> Iterator[Callable[[FileRow], None]]:
    """Report refused rows, and write them to ``target`` under the header of ``source``.

    They replace ``target`` at the end. If there are none, it is left alone.
    """
    with ExitStack() as stack:
        gathered: TextIO | None = None

        def refuse(row: FileRow) -> None:
            nonlocal gathered
            click.echo(f"line {row.line}: {row.reason}", err=True)
            if target is None:
                return
            if gathered is None:
                gathered = stack.enter_context(_replacing(target, "surrogateescape"))
                if file_format == "csv":
                    gathered.write(_first_line(source))
            gathered.write(row.text if row.text.endswith("\n") else row.text + "\n")

        yield refuse


def _first_line(source: Path) -> str:
    with source.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        return file.readline()
