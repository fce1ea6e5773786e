"""``petstore categories``: the categories of a running service."""

from petstore.cli.operation_commands import OperationCommand
from petstore.cli.output import SectionedGroup

categories = SectionedGroup(
    "categories", help="List, add, change and delete the categories of a running service."
)
categories.add_commands(
    OperationCommand("list", "listCategories", "categories.list"),
    OperationCommand("add", "createCategory", "categories.create", arguments=["name"]),
    OperationCommand("show", "getCategory", "categories.get"),
    OperationCommand("change", "updateCategory", "categories.update"),
    OperationCommand("delete", "deleteCategory", "categories.delete"),
)
