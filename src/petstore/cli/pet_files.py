"""``petstore pets import`` and ``export``: animals from and to files, by database or over HTTP."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, get_args

import click
from click.core import ParameterSource

from petstore.cli.client import Wait, client_of, count_down, service_option
from petstore.cli.client_failures import ExitStatus, Failure
from petstore.cli.environment import KEY, read_secret
from petstore.cli.options import Integer, database_or_service_option
from petstore.cli.output import (
    OnProgress,
    counted,
    plain_failures,
    printable,
    progress,
    text_output,
)
from petstore.cli.pet_transfers import OnRefused, Sending, Source, fetch_pets
from petstore.cli.stores import in_store, note_new_store, require_store
from petstore.clock import system_clock
from petstore.databases.private_files import part_of, replacing
from petstore.errors import Unavailable
from petstore.store.pet_files import FileFormat, FileRow, export_pets, pet_writer
from petstore.store.pet_imports import ImportCallbacks, import_pets

_ENDINGS: dict[str, FileFormat] = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}

# A slow disk has recovered by then, and another long transaction has ended.
_MAX_WAIT_SECONDS = 300


class DatabaseWait:
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
@click.option(
    "--from-line",
    type=Integer(1),
    help="Over HTTP: continue with this line of FILE.",
)
@click.option(
    "--again",
    is_flag=True,
    help="With --database: import a file again that was imported before.",
)
@click.option(
    "--strict-categories",
    is_flag=True,
    envvar="PETSTORE_STRICT_CATEGORIES",
    show_envvar=True,
    help="With --database: refuse animals of categories that are not registered.",
)
@service_option
@database_or_service_option
@click.pass_context
def import_file(
    ctx: click.Context,
    /,
    *,
    file: Path,
    file_format: FileFormat | None,
    refused: Path | None,
    **options: Any,
) -> None:
    """Add the animals of FILE: CSV with a header line, or JSON Lines.

    The animals are sent to the service at --url, one per request, within the limits of your key.
    With --database they are written to the database itself. That is much faster.

    The columns are name, categoryId and status. Other columns are ignored, and animals get new ids.
    Valid rows are added. Bad rows are reported with their line numbers; the exit status is then 1.
    If an import is interrupted, it prints how to continue.
    """
    source = Source(file, _format(file, file_format))
    if refused is not None and file.resolve() in {refused.resolve(), part_of(refused).resolve()}:
        msg = "expected another file than the imported one"
        raise click.BadParameter(msg, param_hint="--refused")
    import_rows = _import_into_database if _is_for_database(ctx) else _import_over_http
    with plain_failures(), _refusals(refused, source) as on_refused:
        count = import_rows(source, on_refused, **options)
    if count:
        raise click.exceptions.Exit(1)


def _import_into_database(
    source: Source,
    on_refused: OnRefused,
    *,
    database: str,
    again: bool,
    strict_categories: bool,
    **_others: object,
) -> int:
    """Add the animals of a file to a database, and return how many rows were refused."""
    note_new_store(database)
    rows_done = 0
    wait = DatabaseWait()

    def interrupted() -> str:
        done = f"the first {rows_done:,} rows of {source.path} are done"
        return f"{done}. Run the same command again to go on; nothing is added twice"

    def note_progress(rows: int, size: int) -> None:
        nonlocal rows_done
        rows_done = rows
        wait.end()
        on_progress(size)

    with plain_failures(interrupted), _importing(source) as on_progress:
        result = in_store(
            database,
            lambda store: import_pets(
                store,
                *source,
                system_clock,
                again=again,
                strict_categories=strict_categories,
                callbacks=ImportCallbacks(on_refused, note_progress, wait.may_go_on),
            ),
            create=True,
        )
    if result.was_complete:
        done = f"{source.path} was imported before; nothing added. To add it all once more: --again"
        click.echo(printable(done))
        return 0
    if result.resumed_at:
        click.echo(f"Went on after the {result.resumed_at:,} rows imported before.")
    click.echo(_outcome(result.added, result.refused))
    return result.refused


def _import_over_http(
    source: Source,
    on_refused: OnRefused,
    *,
    service: str,
    from_line: int | None,
    **_others: object,
) -> int:
    """Send the animals of a file to a service, and return how many rows were refused."""
    sending = Sending(source, from_line or 1)
    with (
        _importing(source) as on_progress,
        client_of(service, _in_bar(on_progress), sending.way_on) as client,
    ):
        sending.run(client, on_refused, on_progress)
    if sending.added_before:
        click.echo(f"{counted(sending.added_before, 'animal')} had been added before.")
    click.echo(_outcome(sending.added, sending.refused))
    return sending.refused


def _outcome(added: int, refused: int) -> str:
    return f"{counted(added, 'animal')} added, {counted(refused, 'row')} refused."


def _in_bar(on_progress: OnProgress) -> Wait:
    """Return what waits for a service, with the countdown in a progress bar."""
    return partial(count_down, show=lambda text: on_progress(note=text))


def _importing(source: Source) -> AbstractContextManager[OnProgress]:
    return progress(f"Importing {source.path.name}", source.path.stat().st_size)


@click.command("export")
@click.argument("file", type=click.Path(dir_okay=False, writable=True, path_type=Path), default="-")
@_format_option
@click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="CSV only: put ' before names that a spreadsheet would run as a formula.",
)
@service_option
@database_or_service_option
@click.pass_context
def export_file(
    ctx: click.Context,
    /,
    *,
    file: Path,
    file_format: FileFormat | None,
    spreadsheet_safe: bool,
    service: str,
    database: str,
) -> None:
    """Write every animal to FILE, or to standard output: CSV or JSON Lines.

    Without --database, the animals come from the service at --url, a hundred per request.
    """
    to_stdout = str(file) == "-"
    chosen = file_format or "csv" if to_stdout else _format(file, file_format)
    if spreadsheet_safe and chosen != "csv":
        msg = "--spreadsheet-safe is for CSV"
        raise click.UsageError(msg)
    is_for_database = _is_for_database(ctx)
    if is_for_database:
        require_store(database)
    outcome = "the output is incomplete" if to_stdout else f"{file} is unchanged"
    with (
        plain_failures(lambda: outcome),
        nullcontext(text_output()) if to_stdout else _replacing(file) as out,
        progress("Exporting") as on_progress,
    ):
        if is_for_database:
            count = in_store(
                database,
                lambda store: export_pets(
                    store, out, chosen, on_progress, spreadsheet_safe=spreadsheet_safe
                ),
            )
        else:
            write = pet_writer(out, chosen, spreadsheet_safe=spreadsheet_safe)
            with client_of(service, _in_bar(on_progress), lambda: outcome) as client:
                count = fetch_pets(client, write, on_progress)
    click.echo(f"{counted(count, 'animal')} exported.", err=True)


def _is_for_database(ctx: click.Context) -> bool:
    """Return whether a command works on a database: one is named, and ``--url`` is no option.

    Raises:
        click.UsageError: both are options, or an option is for the other of the two.
        Failure: no database is named, and there is no key for a service.
    """
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    options = {name for name, source in sources.items() if source is ParameterSource.COMMANDLINE}
    if {"database", "service"} <= options:
        msg = "--database and --url cannot be used together"
        raise click.UsageError(msg)
    is_for_database = ctx.params["database"] is not None and "service" not in options
    if is_for_database and "from_line" in options:
        msg = "--from-line is for imports over HTTP; with --database, run the same command again"
        raise click.UsageError(msg)
    if not is_for_database:
        for name in options & {"again", "strict_categories"}:
            msg = f"--{name.replace('_', '-')} is for imports with --database"
            raise click.UsageError(msg)
        if not read_secret(KEY):
            msg = f"expected an API key in the environment variable {KEY}, or --database"
            raise Failure(msg, ExitStatus.KEY)
    return is_for_database


@contextmanager
def _replacing(file: Path, errors: str = "strict") -> Iterator[TextIO]:
    """Write a file that replaces ``file`` once it is complete."""
    with replacing(file) as part, TextIOWrapper(part, "utf-8", errors, newline="") as out:
        yield out


def _format(file: Path, chosen: FileFormat | None) -> FileFormat:
    found = chosen or _ENDINGS.get(file.suffix.lower())
    if found is None:
        msg = f"{file}: expected a name that ends in .csv or .jsonl, or --format"
        raise click.UsageError(printable(msg))
    return found


@contextmanager
def _refusals(target: Path | None, source: Source) -> Iterator[OnRefused]:
    """Report refused rows, and write them to ``target`` under the header of ``source``.

    They replace ``target`` at the end. If there are none, it is left alone.
    """
    with ExitStack() as stack:
        gathered: TextIO | None = None

        def refuse(row: FileRow) -> None:
            nonlocal gathered
            click.echo(printable(f"line {row.line}: {row.reason}"), err=True)
            if target is None:
                return
            if gathered is None:
                gathered = stack.enter_context(_replacing(target, "surrogateescape"))
                if source.file_format == "csv":
                    gathered.write(_first_line(source.path))
            gathered.write(row.text if row.text.endswith("\n") else row.text + "\n")

        yield refuse


def _first_line(source: Path) -> str:
    with source.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        return file.readline()
