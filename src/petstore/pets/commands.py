"""``petstore pets``: the pets of a running service, and pets from and to files."""

from typing import TYPE_CHECKING

from petstore.cli.operation_commands import OperationCommand
from petstore.cli.output import SectionedGroup, print_json, print_table
from petstore.pets.file_commands import export_file, import_file
from petstore.pets.model import STATUSES

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Response
    from petstore_client.models import Inventory


def _show_inventory(response: "Response[Inventory]", *, as_json: bool) -> None:
    counts = response.json()
    if as_json:
        print_json(counts)
    elif "categories" in counts:
        print_table([_category(row) for row in counts["categories"]])
    else:
        print_table([{"status": name, "pets": str(count)} for name, count in counts.items()])


def _category(row: dict[str, int]) -> dict[str, str]:
    counts = {status: str(row.get(status, 0)) for status in STATUSES}
    return {"category": str(row.get("categoryId", "others"))} | counts


pets = SectionedGroup(
    "pets", help="Work with the pets of a running service; move pets in and out of files."
)
pets.add_commands(
    OperationCommand("list", "listPets", "pets.list"),
    OperationCommand("add", "createPet", "pets.create", arguments=["name"]),
    OperationCommand("show", "getPet", "pets.get"),
    OperationCommand("change", "updatePet", "pets.update"),
    OperationCommand(
        "set-status",
        "updatePet",
        "pets.update",
        arguments=["status"],
        only=["status"],
        help="Set the status of a pet to available, pending or sold; none removes it.",
    ),
    OperationCommand("delete", "deletePet", "pets.delete"),
    title="One by one",
)
pets.add_commands(import_file, export_file, title="From and to files")

inventory = OperationCommand(
    "inventory",
    "getInventory",
    "inventory.get",
    show=_show_inventory,
    help="Count the pets of each status. Those without a status are not counted.",
)
