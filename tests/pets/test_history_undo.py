"""The undo that stays beside the last change in the history of a pet."""

import asyncio
import re

import httpx
import pytest

from petstore.clock import DAY
from petstore.databases.contract import Statement, Unit
from petstore.databases.schema import prune_all
from petstore.events.model import Author, NewEvent
from petstore.events.store import Change
from support.history import published_by
from support.page_forms import buttons_of, press, succeed
from support.retention import DAYS_KEPT
from support.service import Service
from support.visitor import Visitor, signed_in_person, words

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("dogs")]

BELLA = {"name": "Bella", "categoryId": "1", "status": "available"}
UNDO, AVAILABLE = "Undo", "Make it available again"
AGAIN = "Add it again, with a new number"
OFFERS = {UNDO, AVAILABLE, AGAIN}


@pytest.fixture
async def grace(service: Service) -> Visitor:
    """A clerk who has added Bella."""
    grace = await signed_in_person(service, "clerk", "Grace")
    await grace.submit("/pets", **BELLA, once="a")
    return grace


async def pet(visitor: Visitor, number: int = 1) -> httpx.Response:
    return await visitor.get(f"/pets/{number}")


async def offered(visitor: Visitor, number: int = 1) -> set[str]:
    """Return what the page of a pet offers to undo, once its notice is gone."""
    return OFFERS & {*buttons_of(await pet(visitor, number))}


def name_of(page: httpx.Response) -> str:
    return page.text.partition("<h1><bdi>")[2].partition("</bdi>")[0]


async def stored(service: Service, number: int) -> tuple[object, ...]:
    """Return what the store has of a pet."""
    sql = "SELECT name, category_id, status FROM pets WHERE id = ?1"
    return (await service.store.read(Statement(sql, (number,))))[0]


@pytest.mark.each_database
async def test_the_last_change_is_undone_from_the_history(service: Service, grace: Visitor) -> None:
    await grace.submit("/categories", name="Cats")
    await grace.submit("/pets/1", name="Bello", categoryId="2")
    page = await pet(grace)
    line = page.text.partition('id="history"')[2].partition("</li>")[0]
    assert "<button" in line
    undone = await succeed(grace, page, UNDO)
    assert "Bella is as it was before." in words(undone)
    assert await stored(service, 1) == ("Bella", 1, "available")
    await succeed(grace, await pet(grace), UNDO)  # the undo itself
    assert name_of(await pet(grace)) == "Bello"


async def earlier(grace: Visitor) -> httpx.Response:
    """Return the second page of the history of a pet."""
    page = await grace.get("/pets/1")
    (cursor,) = re.findall(r'\?cursor=([\w-]+)#history">Earlier', page.text)
    return await grace.get("/pets/1", cursor=cursor)


async def test_only_the_last_change_has_one_undo_beside_its_notice(grace: Visitor) -> None:
    assert await offered(grace) == set()  # that she was added: there is a button to delete her
    assert "Delete Bella" in buttons_of(await pet(grace))
    for number in range(25):
        changed = await grace.submit("/pets/1", name=f"Bella {number}")
    assert buttons_of(changed).count(UNDO) == 1
    page = await pet(grace)
    assert buttons_of(page).count(UNDO) == 1
    assert UNDO not in buttons_of(await earlier(grace))
    done = await asyncio.gather(*(press(grace, page, UNDO) for _ in range(2)))
    assert sorted(each.status_code for each in done) == [303, 412]
    assert name_of(await pet(grace)) == "Bella 23"
    await grace.submit("/pets/1/delete")
    assert buttons_of(await pet(grace)) == [AGAIN]
    assert buttons_of(await earlier(grace)) == []


async def test_a_colleague_may_undo_it_a_viewer_not(service: Service, grace: Visitor) -> None:
    await grace.submit("/pets/1", name="Bello")
    colleague = await signed_in_person(service, "clerk", "Ada")
    viewer = await signed_in_person(service, "viewer", "Vi")
    assert await offered(colleague) == {UNDO}
    assert await offered(viewer) == set()
    refused = await press(viewer, await pet(colleague), UNDO)
    assert refused.status_code == 403
    await succeed(colleague, await pet(colleague), UNDO)
    assert name_of(await pet(grace)) == "Bella"


@pytest.mark.parametrize(
    ("moves", "offer"),
    [
        *((("sold",), UNDO), (("pending",), UNDO), (("sold", "available"), UNDO)),
        *((("pending", "sold"), AVAILABLE), ((" ",), UNDO), ((" ", "sold"), AVAILABLE)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
async def test_a_status_that_may_not_follow_makes_the_pet_available(
    grace: Visitor, moves: tuple[str, ...], offer: str
) -> None:
    for status in moves:
        await grace.submit("/pets/1", status=status, was_status="-")
    assert await offered(grace) == {offer}
    await succeed(grace, await pet(grace), offer)


@pytest.mark.each_database
async def test_what_an_order_did_is_not_undone_here(service: Service, grace: Visitor) -> None:
    await grace.submit("/pets/1/reserve", once="b")
    await published_by(service)
    assert await offered(grace) == set()
    await grace.submit("/pets/1", name="Bello")
    assert await offered(grace) == {UNDO}
    await succeed(grace, await pet(grace), UNDO)
    assert name_of(await pet(grace)) == "Bella"
    await grace.submit("/orders/1/cancel", seen="placed")
    await published_by(service)
    assert await offered(grace) == set()
    await grace.submit("/pets/1/sell", once="c", amount="", buyer="")
    await published_by(service)
    assert await offered(grace) == set()


async def test_a_change_of_a_newer_version_and_one_no_longer_kept_have_no_undo(
    service: Service, grace: Visitor
) -> None:
    change = Change(service.clock(), Author("person/2"))

    def recorded(event: NewEvent) -> Unit[None]:
        yield change.record(event)

    for data in ({"weight": 4}, BELLA | {"categoryId": 1}):
        event = NewEvent("pet.updated", "pet/1", {"id": 1, **data}, {"weight": 3})
        await service.store.write(recorded(event))
        assert await offered(grace) == set()
    await grace.submit("/pets/1", name="Bello")
    await grace.submit("/pets", **BELLA, once="b")
    later = service.clock() + 1000 * DAY
    await prune_all(service.store, lambda: later, DAYS_KEPT)
    assert await offered(grace) == set()


@pytest.mark.each_database
async def test_a_deleted_pet_is_added_again_once(service: Service, grace: Visitor) -> None:
    deleted = await grace.submit("/pets/1/delete")
    assert "Bella is deleted." in words(deleted)
    viewer = await signed_in_person(service, "viewer", "Vi")
    assert buttons_of(await pet(viewer)) == []
    gone = await pet(grace)
    assert gone.status_code == 404
    for page in (deleted, gone, gone):  # the notice has it, too
        added = await succeed(grace, page, AGAIN)
        assert "Added Bella (#2)." in words(added)
    assert await stored(service, 2) == ("Bella", 1, "available")
    assert (await pet(grace, 3)).status_code == 404
