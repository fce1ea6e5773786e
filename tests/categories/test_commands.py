"""``petstore categories``: what kinds of pets there are."""

import uuid

from support.shop import Shop


def test_a_category_is_added_listed_and_changed(shop: Shop) -> None:
    name = f"Yaks {uuid.uuid4()}"
    printed = shop.succeed("categories", "add", name, "--description", "Large\nand woolly")
    category_id = printed.split()[1]
    described = f"id           {category_id}\nname         {name}\n"
    assert printed == f"{described}description  Large\\nand woolly\n"
    assert shop.succeed("categories", "show", category_id) == printed
    head, *rows = shop.succeed("categories", "list", "--all").splitlines()
    assert head.split() == ["id", "name", "description"]
    assert any(row.split() == f"{category_id} {name} Large\\nand woolly".split() for row in rows)
    changed = shop.ask("categories", "change", category_id, "--description", "")
    assert changed == {"id": int(category_id), "name": name, "description": ""}
    printed = shop.succeed("categories", "change", category_id, "--no-description")
    assert printed.split() == ["id", category_id, "name", *name.split()]
