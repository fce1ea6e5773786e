"""The page that undoes an import: what will happen, how far it is, and what stays and why."""

from petstore.console.allowance import affordable, allowance_of, charge
from petstore.console.page import ConsolePage, PageRequest
from petstore.http.messages import Response
from petstore.pets.console_imports import (
    IMPORTS_KEPT,
    ROWS_AT_ONCE,
    ConsoleImport,
    find_import,
)
from petstore.pets.import_undo import count_next_undo, read_staying, undo_batch

_ANIMALS_A_REQUEST = 1_000
_SHOWN = 50
_REASONS = {
    "changed": "Somebody changed it after the import.",
    "ordered": "It was ordered.",
    "deleted": "Somebody deleted it already.",
}


async def _show(visit: PageRequest) -> Response:
    return await _page(visit, await _find(visit))


async def _undo(visit: PageRequest) -> Response:
    """Take the next animals back, as long as the key has requests left: each costs one.

    They are charged before they are looked at, as a deletion is. Two tabs share them.
    """
    services, looked_at = visit.services, 0
    found = await _find(visit)
    while (count := await _next(visit, found, _ANIMALS_A_REQUEST - looked_at)) and await charge(
        visit, count
    ):
        unit = undo_batch(
            found.id, visit.caller.id, now=services.clock(), limit=count, by=visit.author
        )
        found = await services.store.write(unit)
        looked_at += count
    if await _next(visit, found, 1):
        return await _page(visit, found, goes_on=True)
    return await visit.redirect(f"/import/{found.id}/undo")


async def _next(visit: PageRequest, found: ConsoleImport, limit: int) -> int:
    """Return how many animals may be taken back next, at most ``limit``."""
    if not found.undoable:
        return 0
    count = await count_next_undo(visit.services.store, found.id)
    return await affordable(visit, min(count, ROWS_AT_ONCE, limit))


async def _page(visit: PageRequest, found: ConsoleImport, *, goes_on: bool = False) -> Response:
    staying = read_staying(visit.services.store, found.id, _SHOWN)
    return visit.page(
        "import_undo.html",
        found=found,
        goes_on=goes_on,
        allowance=await allowance_of(visit),
        kept_until=found.created_at + IMPORTS_KEPT,
        staying=[each async for each in staying],
        reasons=_REASONS,
    )


async def _find(visit: PageRequest) -> ConsoleImport:
    return await find_import(visit.services.store, visit.path_id, visit.caller.id)


PAGES = (
    ConsolePage("GET", "/import/{importId}/undo", _show, needs="deletePet"),
    ConsolePage("POST", "/import/{importId}/undo", _undo, needs="deletePet", has_file=True),
)
