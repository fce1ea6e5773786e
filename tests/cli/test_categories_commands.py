"""``petstore categories``: what kinds of animals there are."""

import uuid

import pytest

from support.servers import StartServer
from support.shop import Shop

NOBODY = 2**62


@pytest.fixture
def name() -> str:
    """A name that no category has."""
    return f"Yaks {uuid.uuid4()}"


@pytest.mark.parametrize("arguments", [("show",), ("delete",), ("change", "--name", "Yaks")])
def test_a_category_that_is_not_there_is_not_found(shop: Shop, arguments: tuple[str, ...]) -> None:
    words = shop.fail("categories", *arguments, NOBODY, status=3)
    assert words == f"there is no category {NOBODY}"


@pytest.mark.parametrize("action", ["show", "change", "delete"])
def test_an_id_that_can_be_none_is_refused(shop: Shop, action: str) -> None:
    words = shop.fail("categories", action, "0", status=2)
    assert words.startswith("Invalid value for 'ID'")


def test_a_change_of_nothing_is_refused(shop: Shop) -> None:
    words = shop.fail("categories", "change", 1, status=2)
    assert words == "nothing to change: name at least one option"


def test_a_description_and_none_contradict_each_other(shop: Shop) -> None:
    options = ("--description", "x", "--no-description")
    words = shop.fail("categories", "change", 1, *options, status=2)
    assert words == "--description and --no-description cannot be used together"


def test_an_invalid_name_is_refused(shop: Shop) -> None:
    assert shop.fail("categories", "add", " ", status=2).startswith("name: expected")


def test_a_name_is_taken_once(shop: Shop, name: str) -> None:
    shop.succeed("categories", "add", name)
    assert name in shop.fail("categories", "add", name.upper(), status=4)


def test_a_category_with_animals_cannot_be_deleted(shop: Shop, name: str) -> None:
    category = shop.ask("categories", "add", name)
    shop.succeed("pets", "add", "Rex", "--category", category["id"])
    shop.fail("categories", "delete", category["id"], status=4)
    assert shop.ask("categories", "show", category["id"]) == category


def test_a_category_is_printed_in_one_line(shop: Shop, name: str) -> None:
    printed = shop.succeed("categories", "add", name, "--description", "Large\nand woolly")
    category_id = printed.split()[1].rstrip(":")
    assert printed == f"Category {category_id}: {name}, Large\\nand woolly\n"
    assert shop.succeed("categories", "show", category_id) == printed


def test_json_is_the_response_of_the_service(shop: Shop, name: str) -> None:
    category = shop.ask("categories", "add", name, "--description", "")
    assert category == {"id": category["id"], "name": name, "description": ""}
    assert category in shop.ask("categories", "list", "--all")


def test_fields_that_are_not_named_stay(shop: Shop, name: str) -> None:
    category = shop.ask("categories", "add", name, "--description", "Woolly")
    category_id = category["id"]
    changed = shop.ask("categories", "change", category_id, "--name", f"{name}!")
    assert changed == category | {"name": f"{name}!"}
    changed = shop.ask("categories", "change", category_id, "--description", "Large")
    assert changed == {"id": category_id, "name": f"{name}!", "description": "Large"}
    assert shop.succeed("categories", "change", category_id, "--no-description") == (
        f"Category {category_id}: {name}!\n"
    )


@pytest.mark.parametrize("command", ["delete", "remove"])  # its former name
def test_a_deleted_category_is_gone(start: StartServer, name: str, command: str) -> None:
    # In the service of the session animals of any category may be.
    server = start()
    shop = Shop(server.url, server.issue())
    category_id = shop.ask("categories", "add", name)["id"]
    result = shop("categories", command, category_id)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"Category {category_id} deleted.\n"
    shop.fail("categories", "show", category_id, status=3)


def test_categories_are_listed_with_their_descriptions(shop: Shop, name: str) -> None:
    with_one = shop.ask("categories", "add", name, "--description", "Large and woolly")["id"]
    without = shop.ask("categories", "add", f"{name}!")["id"]
    rows = shop.succeed("categories", "list", "--all").splitlines()
    assert rows[0].split() == ["id", "name", "description"]
    assert [*str(with_one).split(), *name.split(), "Large", "and", "woolly"] in map(str.split, rows)
    assert [*str(without).split(), *f"{name}!".split(), "-"] in map(str.split, rows)
