"""Adds pets, pages through them and sells one; prints what it saw as JSON."""

import json
import os
import re
import sys
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from pet_shop import AuthenticatedClient
from pet_shop.api.categories import create_category
from pet_shop.api.pets import create_pet, list_pets
from pet_shop.api.store import place_order
from pet_shop.models import Category, CategoryCreate, Error, NewPet, Order, OrderCreate, Pet
from pet_shop.models.pet_status import PetStatus
from pet_shop.types import UNSET
from retry import RetryTransport

client = AuthenticatedClient(
    base_url="https://shop.example/v1",
    token=os.environ["PETSTORE_KEY"],
    httpx_args={"transport": RetryTransport()},
)


def add(name: str, category_id: int, idempotency_key: str) -> int:
    """Add a pet; safe to repeat with the same key."""
    body = NewPet(name=name, category_id=category_id, status=PetStatus.AVAILABLE)
    pet = create_pet.sync(client=client, body=body, idempotency_key=idempotency_key)
    assert isinstance(pet, Pet), pet
    return pet.id


def pages(category_id: int) -> Iterator[list[Pet]]:
    """Yield the pets of a category, page by page."""
    cursor: str | None = ""
    while cursor is not None:
        page = list_pets.sync_detailed(
            client=client, category_id=category_id, limit=2, cursor=cursor or UNSET
        )
        assert isinstance(page.parsed, list), page.parsed
        yield page.parsed
        cursor = next_cursor(page.headers.get("Link", ""))


def next_cursor(link: str) -> str | None:
    """Return the cursor of the next page. The last page has no link to a next one."""
    target = re.search(r'<([^>]+)>; rel="next"', link)
    return target and parse_qs(urlsplit(target[1]).query)["cursor"][0]


category = create_category.sync(client=client, body=CategoryCreate(name=f"Dogs {uuid4()}"))
assert isinstance(category, Category), category

ids = [add(name, category.id, str(uuid4())) for name in ("Bella", "Charlie", "Daisy")]
repeated = str(uuid4())
ids.append(add("Milo", category.id, repeated))
again = add("Milo", category.id, repeated)

seen = [[pet.id for pet in page] for page in pages(category.id)]

first = place_order.sync(client=client, body=OrderCreate(pet_id=ids[0]))
assert isinstance(first, Order), first
second = place_order.sync(client=client, body=OrderCreate(pet_id=ids[0]))
assert isinstance(second, Error), second

outcome = {
    "ids": ids,
    "again": again,
    "seen": seen,
    "order": {"petId": first.pet_id, "status": first.status.value},
    "conflict": second.to_dict(),
}
json.dump(outcome, sys.stdout)
