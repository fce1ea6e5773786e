"""``petstore pets``: the animals of a running service, and animals from and to files."""

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import click

from petstore.cli.options import ID, NONE, TEXT, given
from petstore.cli.output import SectionedGroup
from petstore.cli.resources import View, list_options, resource_options, show_deleted
from petstore.pets.file_commands import export_file, import_file
from petstore.pets.model import STATUSES, PetStatus

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client
    from petstore_client.models import Pet, PetStatus

_STATUS = click.Choice(STATUSES)
_NO_STATUS = "none"
_STATUS_OR_NONE = click.Choice([*STATUSES, _NO_STATUS])
_id_argument = click.argument("pet_id", metavar="ID", type=ID)


def _line(pet: "Pet") -> str:
    status = "no status" if pet.status is None else pet.status
    return f"Pet {pet.id}: {pet.name}, category {pet.category_id}, {status}"


_PETS: "View[Pet]" = View(
    {
        "id": lambda pet: pet.id,
        "name": lambda pet: pet.name,
        "category": lambda pet: pet.category_id,
        "status": lambda pet: pet.status,
    },
    _line,
)


@click.group(cls=SectionedGroup)
def pets() -> None:
    """Work with the animals of a running service; move animals in and out of files."""


@pets.command("list")
@click.option("--status", type=_STATUS, help="Only those of this status.")
@click.option("--no-status", is_flag=True, help="Only those without a status.")
@click.option("--category", type=int, help="Only those of this category, by its ID.")
@click.option("--id", "ids", type=int, multiple=True, help="Only this one; may be repeated.")
@click.option(
    "--name",
    type=TEXT,
    metavar="TEXT",
    help="Filters by the beginning of any word of the name; sorts by that word.",
)
@click.option("--newest", is_flag=True, help="The newest first.")
@list_options
def list_pets(
    *,
    status: PetStatus | None,
    no_status: bool,
    category: int | None,
    ids: tuple[int, ...],
    name: str | None,
    newest: bool,
    client: "Client",
    **options: Any,
) -> None:
    """List animals, by ID unless an option sorts them."""
    if newest and name is not None:
        msg = "--newest and --name cannot be used together"
        raise click.UsageError(msg)
    if no_status and status is not None:
        msg = "--status and --no-status cannot be used together"
        raise click.UsageError(msg)
    pages = partial(
        client.pets.list,
        status=status,
        has_status=False if no_status else None,
        category_id=category,
        id=ids or None,
        name=name,
        sort="-id" if newest else None,
    )
    _PETS.show_list(pages, **options)


@pets.command()
@click.argument("name", type=TEXT)
@click.option("--category", "category_id", required=True, type=int, help="The ID of its category.")
@click.option("--status", type=_STATUS, help="Its status. [default: none]")
@resource_options
def add(*, client: "Client", as_json: bool, **options: Any) -> None:
    """Add an animal."""
    _PETS.show(client.pets.create.raw(**options), as_json=as_json)


@pets.command()
@_id_argument
@resource_options
def show(*, pet_id: int, client: "Client", as_json: bool) -> None:
    """Show one animal."""
    _PETS.show(client.pets.get.raw(pet_id), as_json=as_json)


@pets.command()
@_id_argument
@click.option("--name", type=TEXT, help="Its new name.")
@click.option("--category", "category_id", type=int, help="The ID of its new category.")
@click.option("--status", type=_STATUS_OR_NONE, help="Its new status; none removes it.")
@resource_options
def change(*, pet_id: int, client: "Client", as_json: bool, **options: Any) -> None:
    """Change an animal. Fields without an option do not change."""
    if options["status"] == _NO_STATUS:
        options["status"] = NONE
    _PETS.show(client.pets.update.raw(pet_id, **given(options)), as_json=as_json)


@pets.command("set-status")
@_id_argument
@click.argument("status", type=_STATUS_OR_NONE, metavar="STATUS")
@resource_options
def set_status(*, pet_id: int, status: str, client: "Client", as_json: bool) -> None:
    """Set the status of an animal to available, pending or sold; none removes it."""
    wanted = None if status == _NO_STATUS else cast("PetStatus", status)
    _PETS.show(client.pets.update.raw(pet_id, status=wanted), as_json=as_json)


@pets.command()
@_id_argument
@resource_options
def delete(*, pet_id: int, client: "Client", as_json: bool) -> None:
    """Delete an animal."""
    client.pets.delete(pet_id)
    show_deleted("Pet", pet_id, as_json=as_json)


pets.add_section("One by one", list_pets, add, show, change, set_status, delete)
pets.add_section("From and to files", import_file, export_file)
