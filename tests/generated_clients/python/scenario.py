"""Adds animals, pages through them and sells one; prints what it saw as JSON."""

import json
import re
import sys
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from pet_shop import AuthenticatedClient
from pet_shop.api.pets import create_pet, list_pets
from pet_shop.api.store import place_order
from pet_shop.models import Error, NewPet, Order, OrderCreate, Pet, PetStatus
from pet_shop.types import UNSET

url, token, category = sys.argv[1:]
client = AuthenticatedClient(url, token)


def added(name: str, idempotency_key: str) -> int:
    body = NewPet(name, int(category), PetStatus.AVAILABLE)
    pet = create_pet.sync(client=client, body=body, idempotency_key=idempotency_key)
    assert isinstance(pet, Pet), pet
    return pet.id


def next_cursor(link: str) -> str | None:
    """Return the cursor of the next page; ``Link`` has none on the last page."""
    target = re.search(r'<([^>]+)>; rel="next"', link)
    return target and parse_qs(urlsplit(target[1]).query)["cursor"][0]


def pages() -> Iterator[list[int]]:
    cursor: str | None = ""
    while cursor is not None:
        page = list_pets.sync_detailed(
            client=client, category_id=int(category), limit=2, cursor=cursor or UNSET
        )
        assert isinstance(page.parsed, list), page
        yield [pet.id for pet in page.parsed]
        cursor = next_cursor(page.headers.get("Link", ""))


ids = [added(name, str(uuid4())) for name in ("Bella", "Charlie", "Daisy")]
repeated = str(uuid4())
ids.append(added("Milo", repeated))
again = added("Milo", repeated)

seen = list(pages())
first = place_order.sync(client=client, body=OrderCreate(ids[0]))
assert isinstance(first, Order), first
second = place_order.sync(client=client, body=OrderCreate(ids[0]))
assert isinstance(second, Error), second

outcome = {
    "ids": ids,
    "again": again,
    "seen": seen,
    "order": {"petId": first.pet_id, "status": first.status.value},
    "conflict": second.to_dict(),
}
json.dump(outcome, sys.stdout)
