"""``petstore pets`` and ``inventory``: the pets of a running service."""

import json
import secrets
from collections.abc import Iterator

import pytest

from support.odd_service import odd_service, response
from support.process import servers_in
from support.shop import Shop
from support.terminal import shown_on_terminal

MORE = "(there are more: see --all, --limit, or --cursor "


@pytest.fixture
def category() -> int:
    """A category in which no other test has pets."""
    return secrets.randbelow(2**62)


def lines(text: str) -> list[list[str]]:
    """Return the words of each line of a table."""
    return [line.split() for line in text.splitlines()]


def test_a_pet_is_added_changed_and_deleted(shop: Shop, category: int) -> None:
    printed = shop.succeed("pets", "add", "Kn\u00f6del", "--category", category)
    pet_id = int(printed.split()[1])
    known = f"id        {pet_id}\nname      Kn\u00f6del\ncategory  {category}\n"
    assert printed == shop.succeed("pets", "show", pet_id) == known
    assert shop.succeed("pets", "change", pet_id, "--status", "sold") == f"{known}status    sold\n"
    words = shop.fail("pets", "change", pet_id, "--status", "pending", status=4)
    assert words == "status: sold can become available, not pending"
    pet = shop.ask("pets", "change", pet_id, "--name", "Max", "--status", "available")
    assert pet == {"id": pet_id, "name": "Max", "categoryId": category, "status": "available"}
    assert shop.succeed("pets", "list", "--category", category, "--json").endswith("\n]\n")
    assert lines(shop.succeed("pets", "list", "--category", category)) == [
        ["id", "name", "category", "status"],
        [str(pet_id), "Max", str(category), "available"],
    ]
    assert "status" not in shop.ask("pets", "change", pet_id, "--no-status")
    deleted = shop("pets", "delete", pet_id)
    assert (deleted.exit_code, deleted.stdout) == (0, "")
    assert deleted.stderr == f"Pet {pet_id} deleted.\n"
    found = shop("pets", "list", "--category", category)
    assert (found.exit_code, found.stdout, found.stderr) == (0, "", "None found.\n")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The commands, with a service of 123 pets."""
    folder = tmp_path_factory.mktemp("many")
    with servers_in(folder) as start:
        server = start()
        shop = Shop(server.url, server.issue())
        shop.succeed("categories", "add", "Dogs")
        file = folder / "pets.csv"
        file.write_text("name,category\n" + "".join(f"pet {n},Dogs\n" for n in range(123)))
        shop.succeed("pets", "import", file)
        yield shop


@pytest.mark.parametrize(
    ("options", "count", "hint"),
    [
        ((), 20, MORE),
        (("--limit", 3), 3, MORE),
        (("--limit", 100), 100, MORE),
        (("--all",), 123, ""),
    ],
)
def test_a_list_is_one_page_unless_all_is_given(
    many: Shop, options: tuple[object, ...], count: int, hint: str
) -> None:
    result = many("pets", "list", *options)
    assert result.exit_code == 0
    ids = [words[0] for words in lines(result.stdout)[1:]]
    assert ids == [str(n + 1) for n in range(count)]
    assert (result.stderr == "") == (hint == "")
    assert result.stderr.startswith(hint)
    result = many("pets", "list", *options, "--json")
    assert [pet["id"] for pet in json.loads(result.stdout)] == [n + 1 for n in range(count)]
    assert (result.stderr == "") == (hint == "")
    assert result.stderr.startswith(hint)


def test_a_name_cannot_control_the_terminal(shop: Shop, category: int) -> None:
    shop.succeed("pets", "add", "[b]\x1b]0;owned\x07\nRex[/b]", "--category", category)
    shown = shown_on_terminal("pets", "list", "--category", str(category), **shop.environment)
    assert "\x1b]" not in shown.raw
    assert "\x07" not in shown.raw
    assert r"[b]\x1b]0;owned\x07\nRex[/b]" in shown.text
    printed = shop.succeed("pets", "list", "--category", category, "--json")
    assert r"[b]\u001b]0;owned\u0007\nRex[/b]" in printed


def test_the_inventory_has_a_line_for_each_status_and_category() -> None:
    rows = [{"categoryId": 7, "available": 1, "pending": 0, "sold": 2}, {"available": 1}]
    counts = {"available": 2, "pending": 0, "sold": 2, "categories": rows}
    with odd_service(response(200, counts)) as service:
        printed = Shop(service.url, "a-key").succeed("inventory")
    assert lines(printed) == [
        *(["available", "2"], ["pending", "0"], ["sold", "2"], [], ["categories:"]),
        ["category", "available", "pending", "sold"],
        *(["7", "1", "0", "2"], ["-", "1", "-", "-"]),
    ]
