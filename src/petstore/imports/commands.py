"""``petstore imports``: the imports of a key, which ``petstore pets import`` makes."""

from typing import TYPE_CHECKING

import click

from petstore.cli.options import ID
from petstore.cli.output import SectionedGroup, counted, printable
from petstore.cli.resources import View, list_options, resource_options, show_deleted

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client
    from petstore_client.models import Import

_id_argument = click.argument("import_id", metavar="ID", type=ID)


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


@click.group(cls=SectionedGroup)
def imports() -> None:
    """Work with the imports of your key: see and undo what petstore pets import added."""


@imports.command("list")
@list_options
def list_imports(*, client: "Client", **options: object) -> None:
    """List your imports, the newest first."""
    _IMPORTS.show_list(client.imports.list, **options)  # type: ignore[arg-type] # click's values


@imports.command()
@_id_argument
@resource_options
def show(*, import_id: int, client: "Client", as_json: bool) -> None:
    """Show one import."""
    _IMPORTS.show(client.imports.get.raw(import_id), as_json=as_json)


@imports.command()
@_id_argument
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


@imports.command()
@_id_argument
@resource_options
def delete(*, import_id: int, client: "Client", as_json: bool) -> None:
    """Delete an import, but not the pets that it added."""
    client.imports.delete(import_id)
    show_deleted("Import", import_id, as_json=as_json)
