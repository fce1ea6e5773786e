"""``petstore pets import`` and ``export``: animals from and to files, by database or over HTTP."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TextIO, get_args

import click
from click.core import ParameterSource

from petstore.cli.client import client_of, note_new_store, service_option, wait_in_bar
from petstore.cli.client_failures import CommandFailure, ExitStatus
from petstore.cli.environment import KEY, read_secret
from petstore.cli.options import Integer, database_or_service_option, json_option
from petstore.cli.output import (
    OnProgress,
    counted,
    plain_failures,
    print_json,
    printable,
    progress,
    replacing_text,
    text_output,
)
from petstore.clock import SECOND, system_clock
from petstore.databases.private_files import part_of
from petstore.errors import InvalidBody, Unavailable
from petstore.pets.columns import FIELDS, Columns
from petstore.pets.exports import export_pets, pet_writer
from petstore.pets.files import FileFormat, FileRow, ImportFile, open_import_file
from petstore.pets.imports import MAX_WAIT, ImportRun, import_pets
from petstore.pets.transfers import fetch_pets, send_pets

_ENDINGS: dict[str, FileFormat] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}

# The fields of an animal as ``--column`` names them.
_FIELDS = {field.removesuffix("Id"): field for field in FIELDS}
_LISTED = 40


def _one_of(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"


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
    "--column",
    "columns",
    multiple=True,
    metavar="FIELD=COLUMN",
    help=f"CSV only: take this column as {_one_of(_FIELDS)}. Repeat it for several.",
)
@click.option(
    "--category-names",
    is_flag=True,
    help="CSV only: a category may be a name, too. Animals of unknown names are refused.",
)
@click.option(
    "--strict-categories",
    is_flag=True,
    envvar="PETSTORE_STRICT_CATEGORIES",
    show_envvar=True,
    help="With --database: refuse animals of categories that are not registered.",
)
@json_option
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
    columns: Sequence[str],
    as_json: bool,
    **options: Any,
) -> None:
    """Add the animals of FILE: CSV with the names of its columns first, or JSON Lines.

    The animals are sent to the service at --url, a hundred at once, within the limits of your key.
    With --database they are written to the database itself. That is much faster.

    The columns have the names that --column lists, in any case. Other columns are not used, and
    animals get new ids. Commas, semicolons or tabs may divide the cells. Valid rows are added. Bad
    rows are reported with their line numbers; the exit status is then 1.
    If an import is interrupted, it prints how to continue.
    """
    chosen = _format(file, file_format)
    if refused is not None and file.resolve() in {refused.resolve(), part_of(refused).resolve()}:
        msg = "expected another file than the imported one"
        raise click.BadParameter(msg, param_hint="--refused")
    if chosen == "jsonl" and (columns or options["category_names"]):
        msg = "--column and --category-names are for CSV"
        raise click.UsageError(msg)
    import_rows = _import_into_database if _is_for_database(ctx) else _import_over_http
    with plain_failures(), file.open("rb") as content:
        opened = open_import_file(content, chosen, chosen=_chosen_columns(columns))
        _report_columns(opened.layout.columns)
        with (
            _refusals(refused, opened, names=options["category_names"]) as on_refused,
            progress(f"Importing {file.name}", file.stat().st_size) as on_progress,
        ):
            run = ImportRun(opened, on_refused, on_progress)
            done_before, outcome = import_rows(run, file, on_progress=on_progress, **options)
    if as_json:
        print_json({"added": run.added, "refused": run.refused, "doneBefore": done_before})
    else:
        click.echo(outcome)
    if run.refused:
        raise click.exceptions.Exit(1)


def _chosen_columns(options: Sequence[str]) -> dict[str, str]:
    """Return the columns of ``--column`` by their fields.

    Raises:
        click.BadParameter: it is not of this form.
    """
    pairs = [option.partition("=") for option in options]
    for field, _, column in pairs:
        if field not in _FIELDS or not column:
            choices = _one_of(f"{field}=" for field in _FIELDS)
            msg = f"expected {choices} with the name of a column"
            raise click.BadParameter(msg, param_hint="--column")
    return {_FIELDS[field]: column.strip() for field, _, column in pairs}


def _report_columns(columns: Columns) -> None:
    """Say which columns are not used.

    Raises:
        InvalidBody: it is not sure which columns are the fields.
    """
    if columns.unsure:
        field = {field: option for option, field in _FIELDS.items()}[columns.unsure[0]]
        msg = (
            f"line 1: no column is surely the {field}; the columns are {_listed(columns.names)}."
            f" Choose one: --column {field}=COLUMN"
        )
        raise InvalidBody(msg)
    if columns.unused:
        click.echo(printable(f"Not used: {_listed(columns.unused)}"), err=True)


def _listed(names: Sequence[str]) -> str:
    """Return names in one line; a file may have any number of columns."""
    left = len(names) - _LISTED
    shown = ", ".join(name[:_LISTED] for name in names[:_LISTED])
    return f"{shown} and {left:,} more" if left > 0 else shown


def _import_into_database(
    run: ImportRun,
    file: Path,
    *,
    database: str,
    again: bool,
    category_names: bool,
    strict_categories: bool,
    **_others: object,
) -> tuple[int, str]:
    """Add the animals of a file to a database.

    Return how many of its rows an earlier run had done, and the outcome in words.
    """
    from petstore.backends import in_store

    with plain_failures():
        note_new_store(database)

    def resume_hint() -> str:
        done = f"the first {run.done:,} rows of {file} are done"
        return f"{done}. Run the same command again to go on; nothing is added twice"

    with plain_failures(resume_hint):
        before = in_store(
            database,
            lambda store: import_pets(
                store,
                run,
                system_clock,
                again=again,
                category_names=category_names,
                strict_categories=strict_categories,
                on_wait=_note_wait,
            ),
        )
    if before.is_complete:
        done = f"{file} was imported before; nothing added. To add it all once more: --again"
        return before.rows_done, printable(done)
    resumed = f"Resumed after {before.rows_done:,} rows imported earlier.\n"
    return before.rows_done, (resumed if before.rows_done else "") + _outcome(run)


def _note_wait(reason: Unavailable) -> None:
    click.echo(f"Waiting up to {MAX_WAIT // SECOND} s: {printable(str(reason))}", err=True)


def _import_over_http(
    run: ImportRun,
    file: Path,
    *,
    on_progress: OnProgress,
    service: str,
    from_line: int | None,
    category_names: bool,
    **_others: object,
) -> tuple[int, str]:
    """Send the animals of a file to a service.

    Return how many of them had been added before, and the outcome in words.
    """
    start = from_line or 1

    def resume_hint() -> str:
        line = max(run.line, start)
        done = f"all before line {line} of {file} is done"
        again = f"Run the same command with --from-line {line} to go on"
        return f"{done}. {again}; within a day, nothing is added twice"

    with client_of(service, wait_in_bar(on_progress), resume_hint) as client:
        added_before = send_pets(client, run, start, category_names=category_names)
    before = f"{counted(added_before, 'animal')} had been added before.\n"
    return added_before, (before if added_before else "") + _outcome(run)


def _outcome(run: ImportRun) -> str:
    return f"{counted(run.added, 'animal')} added, {counted(run.refused, 'row')} refused."


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
    from petstore.backends import in_store, readable, require_store

    if is_for_database:
        with plain_failures():
            require_store(database)
    outcome = "the output is incomplete" if to_stdout else f"{file} is unchanged"
    with (
        plain_failures(lambda: outcome),
        nullcontext(text_output()) if to_stdout else replacing_text(file) as out,
        progress("Exporting") as on_progress,
    ):
        if is_for_database:
            with readable(database) as store_address:
                count = in_store(
                    store_address,
                    lambda store: export_pets(
                        store, out, chosen, on_progress, spreadsheet_safe=spreadsheet_safe
                    ),
                )
        else:
            write = pet_writer(out, chosen, spreadsheet_safe=spreadsheet_safe)
            with client_of(service, wait_in_bar(on_progress), lambda: outcome) as client:
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
            raise CommandFailure(msg, ExitStatus.KEY)
    return is_for_database


def _format(file: Path, chosen: FileFormat | None) -> FileFormat:
    found = chosen or _ENDINGS.get(file.suffix.lower())
    if found is None:
        msg = f"{file}: expected a name that ends in .csv or .jsonl, or --format"
        raise click.UsageError(printable(msg))
    return found


@contextmanager
def _refusals(
    target: Path | None, file: ImportFile, *, names: bool
) -> Iterator[Callable[[FileRow], None]]:
    """Report refused rows, and write them to ``target`` under the header of their file.

    They replace ``target`` at the end. If there are none, it is left alone. If categories are names
    and may not be, say which option takes ``names``.
    """
    with ExitStack() as stack:
        gathered: TextIO | None = None
        is_named = False

        def refuse(row: FileRow) -> None:
            nonlocal gathered, is_named
            is_named = is_named or bool(file.layout.category_names([row]))
            click.echo(printable(f"line {row.line}: {row.reason}"), err=True)
            if target is None:
                return
            if gathered is None:
                gathered = stack.enter_context(replacing_text(target, "surrogateescape"))
                gathered.write(file.header)
            gathered.write(row.text if row.text.endswith("\n") else row.text + "\n")

        yield refuse
        if is_named and not names:
            click.echo("Some categories are names: --category-names takes them.", err=True)
