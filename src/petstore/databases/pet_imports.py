"""How far each file of animals has been imported, in SQL."""

from collections.abc import Iterable

from petstore.clock import Milliseconds
from petstore.databases.contract import Statement, Unit
from petstore.databases.pets import add_pets
from petstore.domain.pets import NewPet
from petstore.errors import Conflict


def begin_import(digest: bytes, *, again: bool) -> Unit[tuple[int, bool]]:
    """Return how many rows of a file were imported before, and whether that was all of it.

    With ``again``, a file that was finished starts anew.
    """
    yield Statement(
        "INSERT INTO pet_imports (digest, rows_done) VALUES (?1, 0)"
        " ON CONFLICT (digest) DO NOTHING",
        (digest,),
        name="insert_pet_import",
    )
    if again:
        yield Statement(
            "UPDATE pet_imports SET rows_done = 0, finished_at = NULL"
            " WHERE digest = ?1 AND finished_at IS NOT NULL",
            (digest,),
            name="restart_pet_import",
        )
    ((rows_done, finished_at),) = yield Statement(
        "SELECT rows_done, finished_at FROM pet_imports WHERE digest = ?1",
        (digest,),
        name="select_pet_import",
    )
    return rows_done, finished_at is not None


def import_batch(
    digest: bytes,
    rows: range,
    pets: Iterable[NewPet],
    finished_at: Milliseconds | None,
    is_retry: bool = False,  # noqa: FBT001, FBT002 - as a retry calls it
) -> Unit[None]:
    """Add the animals of ``rows`` of a file, and note that these rows are done.

    A retry adds nothing if they are done already: the attempt before may have been committed
    without a confirmation.

    Raises:
        Conflict: another import of the same file has come in between.
    """
    moved = yield Statement(
        "UPDATE pet_imports SET rows_done = ?1, finished_at = ?2"
        " WHERE digest = ?3 AND rows_done = ?4 AND finished_at IS NULL RETURNING rows_done",
        (rows.stop, finished_at, digest, rows.start),
        name="update_pet_import",
    )
    if moved:
        yield from add_pets(pets)
        return
    ((rows_done,),) = yield Statement(
        "SELECT rows_done FROM pet_imports WHERE digest = ?1", (digest,), name="select_rows_done"
    )
    if not (is_retry and rows_done == rows.stop):
        msg = "another import of the same file is under way"
        raise Conflict(msg)
