"""``petstore pets import`` and ``petstore imports``: files of pets into a running service."""

import csv
import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from petstore.cli.client import BOM, client_of, client_option, service_option
from petstore.cli.operations import OperationCommand, find_category
from petstore.cli.options import CATEGORY, ID, TEXT, json_option
from petstore.cli.output import (
    SectionedGroup,
    counted,
    plain_failures,
    print_json,
    print_resource,
    printable,
    progress,
    replacing_text,
)
from petstore.domain.decoding import number_or_text
from petstore.pets.model import STATUSES

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client
    from petstore_client.models import Import

_MAX_TURNS = 20
_MEANINGS = (*STATUSES, "none")
_repeatable = partial(click.option, multiple=True, type=TEXT)


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path))
@_repeatable(
    *("--column", "columns"),
    metavar="FIELD=COLUMN",
    help="Take this column as name, category, status or id; none is no column. Repeatable.",
)
@_repeatable(
    *("--value", "values"),
    metavar="WORD=STATUS",
    help="What a word of the status column means: available, pending, sold or none. Repeatable.",
)
@_repeatable(
    *("--category", "categories"),
    metavar="WORD=CATEGORY",
    help="The category that another word of the file means: a name or an ID. Repeatable.",
)
@click.option("--default-status", type=click.Choice(STATUSES), help="For rows without a status.")
@click.option("--default-category", type=CATEGORY, help="For rows without one: a name or an ID.")
@click.option("--create-categories", is_flag=True, help="Add categories that are not there yet.")
@click.option("--preview", is_flag=True, help="Show what would be added, and add nothing.")
@click.option(
    "--refused",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save refused rows in this file, so that you can correct and import them.",
)
@json_option
@service_option
def import_file(
    *,
    file: Path,
    columns: Sequence[str],
    values: Sequence[str],
    preview: bool,
    refused: Path | None,
    as_json: bool,
    service: str,
    **options: Any,
) -> None:
    """Add the pets of FILE: CSV, or a workbook of Excel or LibreOffice.

    Rows that cannot be added are reported with their lines; the exit status is then 1. Run the same
    command again to resume an interrupted import: no pet is added twice. Each row counts toward the
    daily quota of your key.
    """
    resume_hint = "run the same command again to resume; no pet is added twice"
    with (
        plain_failures(),
        progress(f"Importing {file.name}") as on_progress,
        client_of(service, resume_hint=resume_hint) as client,
    ):
        settings = _settings(client, values, options)
        # Behind a crowd of files, each of its turns is refused after some seconds.
        found = client.with_options(max_retries=_MAX_TURNS).imports.create(
            file.read_bytes(), file_name=printable(file.name, "utf-8")[-50:]
        )
        if found.state == "open":
            if columns:
                settings["mapping"] = _mapping(columns, found)
            found = client.imports.update(found.id, **settings) if settings else found
        before = found.added
        while found.waiting and not preview:
            found = client.imports.run(found.id)
            on_progress(found.rows - found.waiting, found.rows)
        text = client.imports.refused(found.id)
    rows = _report(text)
    if refused is not None and rows:
        with plain_failures(), replacing_text(refused) as out:
            out.write(BOM + text)
    if as_json:
        outcome = {"added": found.added, "refused": rows, "doneBefore": before, "import": found.id}
        print_json(outcome)
    else:
        _show(found, before, rows)
    if rows:
        raise click.exceptions.Exit(1)


def _settings(client: "Client", values: Sequence[str], options: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if options["categories"]:
        pairs = (each.rpartition("=") for each in options["categories"])
        settings["categories"] = {
            word: find_category(client, number_or_text(name), "--category")
            for word, _, name in pairs
        }
    if options["default_status"] is not None:
        settings["default_status"] = options["default_status"]
    if options["default_category"] is not None:
        category = find_category(client, options["default_category"], "--default-category")
        settings["default_category_id"] = category
    if options["create_categories"]:
        settings["unknown_categories"] = "create"
    meanings = {word: meaning for word, _, meaning in (each.rpartition("=") for each in values)}
    if not all(word and meaning in _MEANINGS for word, meaning in meanings.items()):
        msg = f"expected a word and one of {', '.join(_MEANINGS)}, as in Adopted=sold"
        raise click.BadParameter(msg, param_hint="--value")
    return settings | ({"values": meanings} if meanings else {})


def _mapping(columns: Sequence[str], found: "Import") -> dict[str, int | None]:
    fields = {name.removesuffix("Id"): name for name in found.mapping.__struct_encode_fields__}
    names = [column.name.casefold() for column in found.columns]
    mapping: dict[str, int | None] = {}
    for option in columns:
        field, _, name = option.partition("=")
        if field not in fields or not name:
            msg = f"expected one of {', '.join(fields)} and a column, as in name=Tier"
            raise click.BadParameter(msg, param_hint="--column")
        place: int | None = None
        if name.casefold() in names:
            place = names.index(name.casefold())
        elif name.isdecimal() and 1 <= int(name[:9]) <= len(names):
            place = int(name) - 1
        elif name != "none":
            known = ", ".join(column.name for column in found.columns[:40] if column.name)
            msg = printable(f"there is no column {name}; the columns are {known or 'numbers'}")
            raise click.BadParameter(msg, param_hint="--column")
        mapping[fields[field]] = place
    return mapping


def _report(text: str) -> int:
    rows = [*csv.reader(io.StringIO(text))][1:]
    for *_, line, reason in rows:
        click.echo(printable(f"line {line}: {reason}"), err=True)
    return len(rows)


def _show(found: "Import", before: int, refused: int) -> None:
    if found.preview is not None:
        here, would = found.preview.already_here, found.preview.added
        click.echo(f"{counted(would, 'pet')} to add, {counted(refused, 'row')} to refuse.")
        if here:
            click.echo(f"{counted(here, 'name')} already in the store.")
        return
    if before:
        click.echo(f"{counted(before, 'pet')} had been added before.")
    click.echo(f"{counted(found.added - before, 'pet')} added, {counted(refused, 'row')} refused.")
    click.echo(f"To undo it within 7 days: petstore imports undo {found.id}")


@click.command()
@click.argument("import_id", metavar="ID", type=ID)
@json_option
@client_option
def undo(*, import_id: int, client: "Client", as_json: bool) -> None:
    """Delete the pets of an import, except those changed or ordered since."""
    while (response := client.imports.undo.raw(import_id)).value.waiting:
        pass
    undone = response.json()
    if as_json:
        print_json(undone)
    else:
        print_resource({name: undone[name] for name in ("id", "deleted", "kept", "keptPets")})


imports = SectionedGroup(
    "imports",
    help="Work with the imports of your key: see and undo what petstore pets import added.",
)
imports.add_commands(
    OperationCommand(
        "list",
        "listImports",
        "imports.list",
        columns=["id", "fileName", "state", "waiting", "added", "refused", "createdAt"],
    ),
    OperationCommand("show", "getImport", "imports.get"),
    undo,
    OperationCommand(
        "delete",
        "deleteImport",
        "imports.delete",
        help="Delete an import, but not the pets that it added.",
    ),
)
