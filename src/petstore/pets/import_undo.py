"""Undo an import of the console: delete the animals that it added, as far as nobody touched them.

An import lists the animals that it added, as they were. A unit of work takes the next ones off the
list: it deletes those that are still as they were and were never ordered, and notes why the others
stay. So nothing is looked at twice, wherever units stop.
"""

from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct

from petstore.clock import Milliseconds
from petstore.databases.contract import Reader, Statement, Unit
from petstore.events.model import SERVICE, Author
from petstore.pets.console_imports import ConsoleImport, locked_import, stopped
from petstore.pets.model import Pet
from petstore.pets.store import KeptBecause, delete_untouched

_SELECT_NEXT = (
    "SELECT start, added, stayed FROM console_import_batches"
    " WHERE import_id = ?1 AND added <> '[]' ORDER BY start LIMIT 1"
)
_encode = msgspec.json.Encoder().encode
_decode_pets = msgspec.json.Decoder(list[Pet]).decode


class StayingPet(Struct, frozen=True):
    """An animal that an undo left, as it was when it was added, and the reason."""

    pet: Pet
    reason: KeptBecause


_decode_staying = msgspec.json.Decoder(list[StayingPet]).decode


def undo_batch(
    import_id: int, key_id: int, *, now: Milliseconds, limit: int, by: Author = SERVICE
) -> Unit[ConsoleImport]:
    """Take back at most ``limit`` animals of an import; return the import as it is then.

    Rows that it has not added yet are not added any more.

    Raises:
        NotFound: the key has no such import.
    """
    present = yield from locked_import(import_id, key_id)
    if present.is_open:
        yield from stopped(import_id, now)
    batches = yield Statement(_SELECT_NEXT, (import_id,), name="select_next_added_batch")
    if not batches:
        return present
    start, added, stayed = batches[0]
    animals = _decode_pets(added)
    looked_at, others = animals[:limit], animals[limit:]
    kept = yield from delete_untouched(looked_at, now=now, by=by)
    staying = [StayingPet(pet, kept[pet.id]) for pet in looked_at if pet.id in kept]
    yield Statement(
        "UPDATE console_import_batches SET added = ?1, stayed = ?2"
        " WHERE import_id = ?3 AND start = ?4",
        (
            _encode(others).decode(),
            _encode(_decode_staying(stayed) + staying).decode(),
            *(import_id, start),
        ),
        name="update_undone_batch",
    )
    yield Statement(
        "UPDATE console_imports SET undoable = undoable - ?1, undone = undone + ?2,"
        " stayed = stayed + ?3 WHERE id = ?4",
        (len(looked_at), len(looked_at) - len(staying), len(staying), import_id),
        name="update_undone_import",
    )
    return (yield from locked_import(import_id, key_id))


async def count_next_undo(store: Reader, import_id: int) -> int:
    """Return how many animals of an import ``undo_batch`` can take back next."""
    batches = await store.read(Statement(_SELECT_NEXT, (import_id,), name="select_next_added"))
    return len(_decode_pets(batches[0][1])) if batches else 0


async def read_staying(store: Reader, import_id: int, limit: int) -> AsyncIterator[StayingPet]:
    """Yield the first ``limit`` animals that an undo left, batch by batch."""
    start = -1
    sql = (
        "SELECT start, stayed FROM console_import_batches"
        " WHERE import_id = ?1 AND start > ?2 AND stayed <> '[]' ORDER BY start LIMIT 1"
    )
    while limit > 0:
        batches = await store.read(Statement(sql, (import_id, start), name="select_stayed_batch"))
        if not batches:
            return
        start, text = batches[0]
        staying = _decode_staying(text)
        for each in staying[:limit]:
            yield each
        limit -= len(staying)
