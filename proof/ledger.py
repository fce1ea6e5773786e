"""An independent model of the store, built from the responses alone.

Each creation is tagged: a pet by its name, an order by its date of shipment. So the rows of the
database tell which requests were done, and how often, whatever became of the responses. A request
whose outcome nobody knows may have been done or not, and both are right.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

REFUSED: Final = -1
"""In place of an id: the service refused the request, so there must be no trace of it."""

OPEN = ("placed", "approved")
_STATUS_OF_PET = {"placed": "pending", "approved": "pending", "delivered": "sold"}


class StoredPet(NamedTuple):
    """A row of a pet."""

    id: int
    tag: str
    category_id: int
    status: str


class StoredOrder(NamedTuple):
    """A row of an order."""

    id: int
    tag: str
    pet_id: int
    status: str
    amount: int | None = None


class StoredCategory(NamedTuple):
    """A row of a category."""

    id: int
    name: str


class Rows(NamedTuple):
    """All pets, orders and categories of a database."""

    pets: list[StoredPet]
    orders: list[StoredOrder]
    categories: list[StoredCategory]


@dataclass
class KnownPet:
    """A pet that was acknowledged: the categories it may have, and whether it may be there."""

    tag: str
    categories: set[int]
    may_exist: set[bool] = field(default_factory=lambda: {True})


@dataclass
class KnownOrder:
    """An order that was acknowledged: its pet, its amount and the statuses it may have."""

    tag: str
    pet_id: int
    statuses: set[str]
    amount: int | None = None


Tags: TypeAlias = dict[str, int | None]
"""The id that a creation was acknowledged with, ``REFUSED``, or ``None`` if nobody knows."""


@dataclass
class Ledger:
    """The responses. A change is recorded before it is sent, with an unknown outcome."""

    pet_tags: Tags = field(default_factory=dict)
    order_tags: Tags = field(default_factory=dict)
    batches: list[list[str]] = field(default_factory=list)
    pets: dict[int, KnownPet] = field(default_factory=dict)
    orders: dict[int, KnownOrder] = field(default_factory=dict)

    def contradictions(self, rows: Rows) -> Iterator[str]:
        """Yield messages about what is wrong with the rows."""
        yield from _wrong_tags("pet", self.pet_tags, rows.pets)
        yield from _wrong_tags("order", self.order_tags, rows.orders)
        yield from self._torn_batches({pet.tag for pet in rows.pets})
        yield from self._wrong_pets({pet.id: pet for pet in rows.pets})
        yield from self._wrong_orders({order.id: order for order in rows.orders})
        yield from _wrong_statuses(rows)

    def _torn_batches(self, stored: set[str]) -> Iterator[str]:
        for batch in self.batches:
            is_unknown = all(self.pet_tags[tag] is None for tag in batch)
            if is_unknown and 0 < len(stored.intersection(batch)) < len(batch):
                yield f"of the batch {batch} only {sorted(stored.intersection(batch))} are there"

    def _wrong_pets(self, stored: dict[int, StoredPet]) -> Iterator[str]:
        for number, known in self.pets.items():
            pet = stored.get(number)
            if (pet is not None) not in known.may_exist:
                yield f"pet {number} is {'gone' if pet is None else 'there after its deletion'}"
            elif pet is not None and pet.category_id not in known.categories:
                yield (
                    f"pet {number} has category {pet.category_id}, expected one of"
                    f" {sorted(known.categories)}"
                )

    def _wrong_orders(self, stored: dict[int, StoredOrder]) -> Iterator[str]:
        for number, known in self.orders.items():
            order = stored.get(number)
            if order is None:
                yield f"order {number} is gone"
            elif order.pet_id != known.pet_id:
                yield f"order {number} is for pet {order.pet_id}, not {known.pet_id}"
            elif order.status not in known.statuses:
                yield f"order {number} is {order.status}, expected one of {sorted(known.statuses)}"
            elif order.amount != known.amount:
                yield f"order {number} is over {order.amount}, not {known.amount}"


def _wrong_tags(
    kind: str, tags: Tags, stored: Iterable[StoredPet] | Iterable[StoredOrder]
) -> Iterator[str]:
    """Yield creations done although refused, done twice, or with another id than reported."""
    times: Counter[str] = Counter()
    for row in stored:
        times[row.tag] += 1
        told = tags.get(row.tag, REFUSED)
        if told == REFUSED:
            yield f"{kind} {row.id} ({row.tag}) is there though nobody was told so"
        elif told is not None and told != row.id:
            yield f"{kind} {row.tag} was acknowledged as {told}, and is {row.id}"
    for tag, number in times.items():
        if number > 1:
            yield f"{kind} {tag} is there {number} times"


def _wrong_statuses(rows: Rows) -> Iterator[str]:
    """Yield pets with two buyers, and pets whose status does not match their order."""
    holders: dict[int, list[str]] = {}
    for order in rows.orders:
        if order.status != "cancelled":
            holders.setdefault(order.pet_id, []).append(order.status)
    for pet in rows.pets:
        held = holders.get(pet.id, [])
        if len(held) > 1:
            yield f"pet {pet.id} was sold {len(held)} times: {held}"
        elif pet.status != (_STATUS_OF_PET[held[0]] if held else "available"):
            yield f"pet {pet.id} is {pet.status}, and its orders are {held or 'none'}"
    there = {pet.id for pet in rows.pets}
    for number, held in holders.items():
        if number not in there and any(status in OPEN for status in held):
            yield f"pet {number} was deleted while an order held it"


def numbers_of(rows: Rows) -> dict[str, dict[str, int]]:
    """Return what the inventory and the sales must say of these rows."""
    counts = Counter(pet.status for pet in rows.pets)
    amounts = [order.amount or 0 for order in rows.orders if order.status == "delivered"]
    sales = {"orders": len(amounts), "amount": sum(amounts)}
    return {
        "inventory": {status: counts[status] for status in ("available", "pending", "sold")},
        "sales by day": sales,
        "sales by category": sales,
    }
