"""``petstore pets``: the pets of a running service, and pets from and to files."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from petstore.cli.client import export_csv, file_argument, service_option
from petstore.cli.operations import MAX_PAGE, OperationCommand
from petstore.cli.output import SectionedGroup
from petstore.pets.model import EXPORTED

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client


@click.command("export")
@file_argument
@click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="Put ' before names that a spreadsheet would run as a formula.",
)
@service_option
def export_file(*, file: Path, spreadsheet_safe: bool, service: str) -> None:
    """Write every pet as CSV to FILE, or to standard output."""
    export_csv(file, service, "pet", EXPORTED, _pages, spreadsheet_safe=spreadsheet_safe)


def _pages(client: "Client") -> Iterator[list[dict[str, Any]]]:
    names = {each.id: each.name for each in client.categories.list()}
    for page in client.pets.list(limit=MAX_PAGE).pages():
        rows: list[dict[str, Any]] = page.response.json()
        yield [row | {"category": names.get(row["categoryId"], "")} for row in rows]


pets = SectionedGroup(
    "pets", help="Work with the pets of a running service; move pets in and out of files."
)
pets.add_commands(
    OperationCommand("list", "listPets", "pets.list"),
    OperationCommand("add", "createPet", "pets.create", arguments=["name"]),
    OperationCommand("show", "getPet", "pets.get"),
    OperationCommand("change", "updatePet", "pets.update"),
    OperationCommand("delete", "deletePet", "pets.delete"),
    title="One by one",
)
pets.add_commands(export_file, title="From and to files")
