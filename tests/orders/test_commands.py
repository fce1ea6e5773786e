"""``petstore orders``: what is printed and exported, and who is forgotten."""

import asyncio
import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from petstore.cli.main import main
from petstore.events.store import Change
from petstore.orders.model import EXPORTED, OrderCreate
from petstore.orders.store import place_order
from petstore.pets.model import NewPet
from support.changes import create_pet
from support.process import ServerProcess
from support.shop import Shop
from support.stores import open_store
from support.terminal import Terminal


@pytest.fixture
def pet_id(shop: Shop) -> int:
    """A pet that can be ordered."""
    pet = shop.ask("pets", "add", "Rex", "--category", 1, "--status", "available")
    return int(pet["id"])


def test_an_order_is_placed_and_printed(shop: Shop, pet_id: int) -> None:
    order = shop.ask("orders", "place", pet_id, "--ship-date", "2031-12-24T01:30:00+02:00")
    printed = shop.succeed("orders", "show", order["id"]).splitlines()
    assert [" ".join(line.split()) for line in printed] == [
        f"id {order['id']}",
        f"pet {pet_id}",
        "quantity 1",
        "status placed",
        "complete no",
        f"placed {order['placedAt'][:19]}Z",
        f"ship date {order['shipDate']}",
        f"reserved until {order['reservedUntil'][:19]}Z",
    ]


def test_a_narrow_terminal_gets_fewer_columns(
    shop: Shop, pet_id: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.succeed("orders", "place", pet_id)
    for name, value in shop.environment.items():
        monkeypatch.setenv(name, value)
    with Terminal("orders", "list", "--pet", str(pet_id), cwd=tmp_path, columns=45) as terminal:
        assert terminal.wait() == 0
        head, _, note = terminal.text.splitlines()
    assert head.split() == ["id", "pet", "status", "reserved", "until"]
    assert note == "(no room for ship date, placed, amount, buyer: see --json)"


def test_a_sale_over_the_counter_is_printed_with_buyer_and_price(shop: Shop, pet_id: int) -> None:
    refused = shop.fail("orders", "sell", pet_id, "--amount", "12.50", status=2)
    assert "expected the smallest unit, such as cents: 1250 for 12.50" in refused
    sale = ("--buyer", "J\u00e4ne Doe", "--note", "Paid.", "--amount", 24_900)
    printed = shop.succeed("orders", "sell", pet_id, *sale)
    (order,) = shop.ask("orders", "list", "--pet", pet_id)
    assert "buyer      J\u00e4ne Doe\n" in printed
    assert "amount     $249.00\n" in printed
    assert (order["note"], order["amount"], order["currency"]) == ("Paid.", 24_900, "USD")


def test_orders_are_exported_page_by_page_and_safe_in_a_spreadsheet(
    shop: Shop, server: ServerProcess, pet_id: int, tmp_path: Path
) -> None:
    order = shop.ask("orders", "sell", pet_id, "--buyer", "=1+1", "--note", "a\nb")
    file = tmp_path / "orders.csv"
    shop.succeed("orders", "export", file, "--status", "delivered")
    rows = list(csv.DictReader(file.read_text("utf-8-sig").splitlines(keepends=True)))
    assert tuple(rows[0]) == EXPORTED
    (row,) = [row for row in rows if row["id"] == str(order["id"])]
    assert {each["status"] for each in rows} == {"delivered"}
    assert (row["buyer"], row["note"]) == ("'=1+1", "a\nb")
    assert (row["pet"], row["soldBy"][:4]) == ("Rex", "key ")
    assert row["deliveredAt"] == order["deliveredAt"][:19].replace("T", " ")
    scopes = ("--scope", "pets:read", "--scope", "orders:read", "--scope", "keys:admin")
    admin = Shop(server.url, server.issue("enterprise", *scopes))
    assert ",test," in admin.succeed("orders", "export", "--status", "delivered")
    for bound in ("placed-before", "delivered-before"):
        printed = shop.succeed("orders", "export", f"--{bound}", "2001-01-01T00:00:00Z")
    assert printed.count("\n") == 1


def test_a_buyer_is_forgotten_on_the_database(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'shop.db'}"

    async def fill() -> None:
        async with open_store(database) as store:
            for pet_id, is_sold in ((1, True), (2, False), (3, False)):
                await store.write(create_pet(NewPet("Rex", 1, "available")))
                new = OrderCreate(pet_id, buyer="Zoe Past", complete=is_sold)
                await store.write(place_order(Change(0), new))

    asyncio.run(fill())
    done = CliRunner().invoke(main, ["orders", "forget", "zoe PAST", "--database", database])
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "changed  1\nopen     2\n"
