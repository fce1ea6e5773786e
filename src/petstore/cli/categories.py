"""``petstore categories``: the categories of a running service."""

from typing import Any, NotRequired, TypedDict

import click

from petstore.cli.client import Client
from petstore.cli.options import ID
from petstore.cli.resources import Resources, client_option, list_options, resource_options


class Category(TypedDict):
    """A category as the service returns it."""

    id: int
    name: str
    description: NotRequired[str]


def _line(category: Category) -> str:
    line = f"Category {category['id']}: {category['name']}"
    return f"{line}, {category['description']}" if "description" in category else line


_COLUMNS = {"id": "id", "name": "name", "description": "description"}
_CATEGORIES = Resources("/categories", Category, _COLUMNS, _line, ("description",))


@click.group()
def categories() -> None:
    """List, add, change and remove the categories of a running service."""


@categories.command("list")
@list_options
def list_categories(**options: Any) -> None:
    """List categories."""
    _CATEGORIES.show_list([], **options)


@categories.command()
@click.argument("name")
@click.option("--description", help="What belongs to it.")
@resource_options
def add(*, name: str, description: str | None, **options: Any) -> None:
    """Add a category. Its name must be unique, ignoring case."""
    _CATEGORIES.create({"name": name, "description": description}, **options)


@categories.command()
@click.argument("category_id", metavar="ID", type=ID)
@resource_options
def show(*, category_id: int, **options: Any) -> None:
    """Show one category."""
    _CATEGORIES.get(category_id, **options)


@categories.command()
@click.argument("category_id", metavar="ID", type=ID)
@click.option("--name", help="Its new name.")
@click.option("--description", help="What belongs to it.")
@click.option("--no-description", is_flag=True, help="Remove its description.")
@resource_options
def change(
    *,
    category_id: int,
    name: str | None,
    description: str | None,
    no_description: bool,
    **options: Any,
) -> None:
    """Change a category. Fields without an option do not change."""
    if no_description and description is not None:
        msg = "--description and --no-description cannot be used together"
        raise click.UsageError(msg)
    wanted: dict[str, object] = {"name": name, "description": description}
    patch = {field: value for field, value in wanted.items() if value is not None}
    if no_description:
        patch["description"] = None
    if not patch:
        msg = "nothing to change: name at least one option"
        raise click.UsageError(msg)
    _CATEGORIES.change(category_id, patch, **options)


@categories.command()
@click.argument("category_id", metavar="ID", type=ID)
@client_option
def remove(*, category_id: int, client: Client) -> None:
    """Remove a category without animals."""
    client.delete(f"{_CATEGORIES.path}/{category_id}")
    click.echo(f"Category {category_id} removed.", err=True)
