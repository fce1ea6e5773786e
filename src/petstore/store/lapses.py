"""What a lapsed reservation does to its order and its animal."""

from petstore.clock import Milliseconds
from petstore.databases.contract import Unit
from petstore.databases.orders import cancel_if_lapsed, cancel_lapsed
from petstore.databases.pets import free_pets, move_pet

_BATCH = 256


def free_if_lapsed(pet_id: int, now: Milliseconds) -> Unit[bool]:
    """Free an animal if the order that holds it has lapsed by ``now``, and tell whether it had.

    For units of work that change the animal: its lapse may not have been settled in time.
    """
    if not (yield cancel_if_lapsed(pet_id, now)):
        return False
    yield move_pet(pet_id, "available")
    return True


def free_lapsed(now: Milliseconds) -> Unit[int]:
    """Free animals whose reservation has lapsed by ``now``, many at once; return how many."""
    lapsed = yield cancel_lapsed(now, _BATCH)
    if lapsed:
        yield free_pets([pet_id for (pet_id,) in lapsed])
    return len(lapsed)
