"""List, add and get animals."""

from typing import NamedTuple

from petstore.domain.pets import NewPet, Pet, PetFilter
from petstore.errors import NotFound
from petstore.storage import pets
from petstore.storage.contract import Store


class PetPage(NamedTuple):
    """One page of animals; ``next_after`` is the id the next page starts after, if there is one."""

    pets: list[Pet]
    next_after: int | None


async def list_pets(store: Store, wanted: PetFilter, after: int | None, limit: int) -> PetPage:
    """Return the first ``limit`` animals with an id above ``after``, by ascending id."""
    rows = await store.read(pets.select_pets(wanted, after, limit + 1))
    found = [pets.pet_of(row) for row in rows[:limit]]
    return PetPage(found, found[-1].id if len(rows) > limit else None)


async def create_pet(store: Store, new: NewPet) -> Pet:
    """Add an animal and return it, durable."""
    return await store.write(pets.add_pet(new))


async def get_pet(store: Store, pet_id: int) -> Pet:
    """Return one animal.

    Raises:
        NotFound: there is none with this id.
    """
    rows = await store.read(pets.select_pet(pet_id))
    if not rows:
        msg = f"there is no pet {pet_id}"
        raise NotFound(msg)
    return pets.pet_of(rows[0])
