"""``petstore categories``: the categories of a running service."""

from typing import TYPE_CHECKING, Any

import click

from petstore.cli.options import ID, NONE, TEXT, given
from petstore.cli.output import SectionedGroup
from petstore.cli.resources import View, list_options, resource_options, show_deleted

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client
    from petstore_client.models import Category


def _line(category: "Category") -> str:
    line = f"Category {category.id}: {category.name}"
    return line if category.description is None else f"{line}, {category.description}"


_CATEGORIES: "View[Category]" = View(
    {
        "id": lambda category: category.id,
        "name": lambda category: category.name,
        "description": lambda category: category.description,
    },
    _line,
    ("description",),
)


@click.group(cls=SectionedGroup)
def categories() -> None:
    """List, add, change and delete the categories of a running service."""


@categories.command("list")
@list_options
def list_categories(*, client: "Client", **options: Any) -> None:
    """List categories."""
    _CATEGORIES.show_list(client.categories.list, **options)


@categories.command()
@click.argument("name", type=TEXT)
@click.option("--description", type=TEXT, help="What belongs to it.")
@resource_options
def add(*, name: str, description: str | None, client: "Client", as_json: bool) -> None:
    """Add a category. Its name must be unique, ignoring case."""
    added = client.categories.create.raw(name=name, description=description)
    _CATEGORIES.show(added, as_json=as_json)


@categories.command()
@click.argument("category_id", metavar="ID", type=ID)
@resource_options
def show(*, category_id: int, client: "Client", as_json: bool) -> None:
    """Show one category."""
    _CATEGORIES.show(client.categories.get.raw(category_id), as_json=as_json)


@categories.command()
@click.argument("category_id", metavar="ID", type=ID)
@click.option("--name", type=TEXT, help="Its new name.")
@click.option("--description", type=TEXT, help="What belongs to it.")
@click.option("--no-description", is_flag=True, help="Remove its description.")
@resource_options
def change(
    *, category_id: int, no_description: bool, client: "Client", as_json: bool, **options: Any
) -> None:
    """Change a category. Fields without an option do not change."""
    if no_description:
        if options["description"] is not None:
            msg = "--description and --no-description cannot be used together"
            raise click.UsageError(msg)
        options["description"] = NONE
    changed = client.categories.update.raw(category_id, **given(options))
    _CATEGORIES.show(changed, as_json=as_json)


@categories.command()
@click.argument("category_id", metavar="ID", type=ID)
@resource_options
def delete(*, category_id: int, client: "Client", as_json: bool) -> None:
    """Delete a category without animals."""
    client.categories.delete(category_id)
    show_deleted("Category", category_id, as_json=as_json)
