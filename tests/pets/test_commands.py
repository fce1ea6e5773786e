"""``petstore pets list|add|show|set-status``: the animals of a running service."""

import json
import secrets
from collections.abc import Iterator

import pytest

from support.odd_service import odd_service, response
from support.servers import servers_in
from support.shop import Shop
from support.terminal import shown_on_terminal

MORE = "(there are more: see --all, --limit, or --cursor "


@pytest.fixture
def category() -> int:
    """A category in which no other test has animals."""
    return secrets.randbelow(2**62)


def lines(text: str) -> list[list[str]]:
    """Return the words of each line of a table."""
    return [line.split() for line in text.splitlines()]


def test_two_animals_for_one_id_are_reported_as_an_error_of_the_service() -> None:
    pets = [{"id": number, "name": "Rex", "categoryId": 1} for number in (1, 2)]
    with odd_service(response(200, pets)) as service:
        assert Shop(service.url, "a-key").ask("pets", "show", 1) == pets[0]


def test_a_forbidden_status_change_is_a_conflict(shop: Shop) -> None:
    pet = shop.ask("pets", "add", "Rex", "--category", 1, "--status", "sold")
    words = shop.fail("pets", "set-status", pet["id"], "pending", status=4)
    assert words == "status: sold can become available, not pending"
    assert shop.ask("pets", "show", pet["id"]) == pet


def test_an_added_animal_is_printed_in_one_line(shop: Shop, category: int) -> None:
    printed = shop.succeed("pets", "add", "Rex", "--category", category, "--status", "available")
    ((_, pet_id, *words),) = lines(printed)
    assert words == f"Rex, category {category}, available".split()
    assert shop.succeed("pets", "show", pet_id.rstrip(":")) == printed


def test_json_is_the_response_of_the_service(shop: Shop, category: int) -> None:
    pet = shop.ask("pets", "add", "Knödel 日本", "--category", category, "--status", "sold")
    assert pet == {
        "id": pet["id"],
        "name": "Knödel 日本",
        "categoryId": category,
        "status": "sold",
    }
    assert shop.ask("pets", "show", pet["id"]) == pet
    assert shop.ask("pets", "list", "--category", category) == [pet]
    assert shop.succeed("pets", "show", pet["id"], "--json").endswith("\n}\n")
    assert shop.succeed("pets", "list", "--category", category, "--json").endswith("\n]\n")


def test_animals_are_found_by_any_word_of_their_names(shop: Shop, category: int) -> None:
    for name in ("Old Bella", "Rex", "BELINDA"):
        shop.ask("pets", "add", name, "--category", category)
    found = shop.ask("pets", "list", "--category", category, "--name", "bel")
    assert [pet["name"] for pet in found] == ["BELINDA", "Old Bella"]


def test_animals_without_a_status_are_listed(shop: Shop, category: int) -> None:
    shop.ask("pets", "add", "Rex", "--category", category, "--status", "sold")
    without = shop.ask("pets", "add", "Tom", "--category", category)
    assert shop.ask("pets", "list", "--category", category, "--no-status") == [without]


def test_animals_can_be_listed_newest_first(shop: Shop, category: int) -> None:
    added = [shop.ask("pets", "add", "Rex", "--category", category) for _ in range(3)]
    newest = ("pets", "list", "--category", category, "--newest")
    assert shop.ask(*newest) == added[::-1]
    assert shop.ask(*newest, "--limit", 2) == added[:0:-1]


def test_a_status_can_be_set_and_removed(shop: Shop, category: int) -> None:
    pet = shop.ask("pets", "add", "Rex", "--category", category)
    assert shop.ask("pets", "set-status", pet["id"], "available") == pet | {"status": "available"}
    assert shop.succeed("pets", "set-status", pet["id"], "none") == (
        f"Pet {pet['id']}: Rex, category {category}\n"
    )
    assert shop.ask("pets", "show", pet["id"]) == pet


def test_only_the_named_fields_change(shop: Shop, category: int) -> None:
    pet = shop.ask("pets", "add", "Rex", "--category", category, "--status", "available")
    change = ("pets", "change", pet["id"])
    assert shop.ask(*change, "--name", "Max") == pet | {"name": "Max"}
    assert shop.ask(*change, "--category", 0) == pet | {"name": "Max", "categoryId": 0}
    assert "status" not in shop.ask(*change, "--no-status")
    assert shop.ask(*change, "--status", "sold")["status"] == "sold"


def test_a_deleted_animal_is_not_found(shop: Shop) -> None:
    pet = shop.ask("pets", "add", "Rex", "--category", 1)
    result = shop("pets", "delete", pet["id"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"Pet {pet['id']} deleted.\n"
    shop.fail("pets", "show", pet["id"], status=3)


def test_a_list_is_filtered_by_status_and_id(shop: Shop, category: int) -> None:
    first, second, third = [
        shop.ask("pets", "add", name, "--category", category, "--status", status)["id"]
        for name, status in [("Rex", "sold"), ("Tom", "available"), ("Ada", "sold")]
    ]
    sold = shop.succeed("pets", "list", "--category", category, "--status", "sold")
    assert lines(sold) == [
        ["id", "name", "category", "status"],
        [str(first), "Rex", str(category), "sold"],
        [str(third), "Ada", str(category), "sold"],
    ]
    named = shop.ask("pets", "list", "--id", second, "--id", third)
    assert [pet["name"] for pet in named] == ["Tom", "Ada"]


def test_an_empty_list_is_reported_on_standard_error(shop: Shop, category: int) -> None:
    result = shop("pets", "list", "--category", category)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "None found.\n")
    assert shop.ask("pets", "list", "--category", category) == []


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The commands, with a service of 123 animals."""
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
    assert r"[b]\x1b]0;owned\x07\nRe" in shown.text
    printed = shop.succeed("pets", "list", "--category", category, "--json")
    assert r"[b]\u001b]0;owned\u0007\nRex[/b]" in printed
