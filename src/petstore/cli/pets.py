"""``petstore pets``: the animals of a running service, and animals from and to files."""

from typing import Any, Literal, NotRequired, TypedDict, get_args

import click

from petstore.cli.client import Client
from petstore.cli.client_failures import ExitStatus, Failure
from petstore.cli.options import ID
from petstore.cli.output import SectionedGroup
from petstore.cli.pet_files import export_file, import_file
from petstore.cli.resources import Resources, list_options, resource_options

Status = Literal["available", "pending", "sold"]

_STATUS = click.Choice(get_args(Status))
_NO_STATUS = "none"


class Pet(TypedDict):
    """An animal as the service returns it."""

    id: int
    name: str
    categoryId: int
    status: NotRequired[str]


def _line(pet: Pet) -> str:
    status = pet.get("status", "no status")
    return f"Pet {pet['id']}: {pet['name']}, category {pet['categoryId']}, {status}"


_COLUMNS = {"id": "id", "name": "name", "category": "categoryId", "status": "status"}
_PETS = Resources("/pets", Pet, _COLUMNS, _line)


@click.group(cls=SectionedGroup)
def pets() -> None:
    """Work with the animals of a running service; move animals in and out of a store."""


@pets.command("list")
@click.option("--status", type=_STATUS, help="Only those of this status.")
@click.option("--category", type=int, help="Only those of this category, by its ID.")
@click.option("--id", "ids", type=int, multiple=True, help="Only this one; may be repeated.")
@click.option(
    "--name", metavar="PREFIX", help="Filters by how the name begins, in any case; sorts by name."
)
@click.option("--newest", is_flag=True, help="The newest first.")
@list_options
def list_pets(
    *,
    status: Status | None,
    category: int | None,
    ids: tuple[int, ...],
    name: str | None,
    newest: bool,
    **options: Any,
) -> None:
    """List animals, by ID unless an option sorts them."""
    if newest and name is not None:
        msg = "--newest and --name cannot be used together"
        raise click.UsageError(msg)
    query = [
        ("status", status),
        ("categoryId", category),
        *(("id", pet_id) for pet_id in ids),
        ("name", name),
        ("sort", "-id" if newest else None),
    ]
    _PETS.show_list(query, **options)


@pets.command()
@click.argument("name")
@click.option("--category", required=True, type=int, help="The ID of its category.")
@click.option("--status", type=_STATUS, help="Its status. [default: none]")
@resource_options
def add(*, name: str, category: int, status: Status | None, **options: Any) -> None:
    """Add an animal."""
    _PETS.create({"name": name, "categoryId": category, "status": status}, **options)


@pets.command()
@click.argument("pet_id", metavar="ID", type=ID)
@resource_options
def show(*, pet_id: int, as_json: bool, client: Client) -> None:
    """Show one animal."""
    found, _ = client.find(_PETS.path, Pet, [("id", pet_id)], 1)
    if not found:
        msg = f"there is no pet {pet_id}"
        raise Failure(msg, ExitStatus.NOT_FOUND)
    _PETS.show(found[0], as_json=as_json)


@pets.command("set-status")
@click.argument("pet_id", metavar="ID", type=ID)
@click.argument("status", type=click.Choice([*get_args(Status), _NO_STATUS]))
@resource_options
def set_status(*, pet_id: int, status: str, **options: Any) -> None:
    """Set the status of an animal, or remove it with none."""
    _PETS.change(pet_id, {"status": None if status == _NO_STATUS else status}, **options)


pets.add_section("Ask a running service", list_pets, add, show, set_status)
pets.add_section("Work on its store", import_file, export_file)
