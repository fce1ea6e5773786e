"""``petstore categories``: what kinds of animals there are."""

import uuid

import pytest

from support.odd_service import odd_service, response
from support.shop import Shop


@pytest.fixture
def name() -> str:
    """A name that no category has."""
    return f"Yaks {uuid.uuid4()}"


def test_a_category_is_printed_in_one_line(shop: Shop, name: str) -> None:
    printed = shop.succeed("categories", "add", name, "--description", "Large\nand woolly")
    category_id = printed.split()[1].rstrip(":")
    assert printed == f"Category {category_id}: {name}, Large\\nand woolly\n"
    assert shop.succeed("categories", "show", category_id) == printed


def test_json_is_the_response_of_the_service(shop: Shop, name: str) -> None:
    category = shop.ask("categories", "add", name, "--description", "")
    assert category == {"id": category["id"], "name": name, "description": ""}
    assert category in shop.ask("categories", "list", "--all")


def test_fields_that_are_not_named_stay_unchanged(shop: Shop, name: str) -> None:
    category = shop.ask("categories", "add", name, "--description", "Woolly")
    category_id = category["id"]
    changed = shop.ask("categories", "change", category_id, "--name", f"{name}!")
    assert changed == category | {"name": f"{name}!"}
    changed = shop.ask("categories", "change", category_id, "--description", "Large")
    assert changed == {"id": category_id, "name": f"{name}!", "description": "Large"}
    assert shop.succeed("categories", "change", category_id, "--no-description") == (
        f"Category {category_id}: {name}!\n"
    )


def test_a_deleted_category_is_reported() -> None:
    # In the service of the session animals of any category may be.
    with odd_service(response(204, b"")) as service:
        result = Shop(service.url, "a-key")("categories", "delete", 7)
        (asked,) = service.asked
    assert (asked.method, asked.target) == ("DELETE", "/v1/categories/7")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Category 7 deleted.\n"


def test_categories_are_listed_with_their_descriptions(shop: Shop, name: str) -> None:
    with_one = shop.ask("categories", "add", name, "--description", "Large and woolly")["id"]
    without = shop.ask("categories", "add", f"{name}!")["id"]
    rows = shop.succeed("categories", "list", "--all").splitlines()
    assert rows[0].split() == ["id", "name", "description"]
    assert [*str(with_one).split(), *name.split(), "Large", "and", "woolly"] in map(str.split, rows)
    assert [*str(without).split(), *f"{name}!".split(), "-"] in map(str.split, rows)
