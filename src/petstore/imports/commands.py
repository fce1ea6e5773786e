"""``petstore imports``: the imports of a key, which ``petstore pets import`` makes."""

from typing import TYPE_CHECKING

import click

from petstore.cli.operation_commands import OperationCommand
from petstore.cli.options import ID
from petstore.cli.output import SectionedGroup, counted, printable
from petstore.cli.resources import View, resource_options

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client
    from petstore_client.models import Import


_IMPORTS: "View[Import]" = View(
    {
        "id": lambda each: each.id,
        "file": lambda each: each.file_name,
        "state": lambda each: each.state,
        "waiting": lambda each: each.waiting,
        "added": lambda each: each.added,
        "refused": lambda each: each.refused,
        "deleted": lambda each: each.deleted if each.state == "undone" else None,
        "kept": lambda each: each.kept if each.state == "undone" else None,
        "sent (UTC)": lambda each: each.created_at,
    },
    ("kept", "deleted", "sent (UTC)", "refused"),
    ("id", "sent (UTC)"),
)


@click.command()
@click.argument("import_id", metavar="ID", type=ID)
@resource_options
def undo(*, import_id: int, client: "Client", as_json: bool) -> None:
    """Delete the pets of an import that nobody has changed or ordered since."""
    while (response := client.imports.undo.raw(import_id)).value.waiting:
        pass
    _IMPORTS.show(response, as_json=as_json)
    for pet in response.value.kept_pets:
        click.echo(printable(f"pet {pet.id} ({pet.name}) was {pet.reason}"), err=True)
    left = response.value.kept - len(response.value.kept_pets)
    if left > 0:
        click.echo(f"{counted(left, 'more pet')} kept", err=True)


imports = SectionedGroup(
    "imports",
    help="Work with the imports of your key: see and undo what petstore pets import added.",
)
imports.add_commands(
    OperationCommand("list", "listImports", "imports.list", _IMPORTS),
    OperationCommand("show", "getImport", "imports.get", _IMPORTS),
    undo,
    OperationCommand(
        "delete",
        "deleteImport",
        "imports.delete",
        help="Delete an import, but not the pets that it added.",
    ),
)
