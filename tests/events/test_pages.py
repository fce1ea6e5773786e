"""What an open page learns of changes, in a long poll."""

import asyncio

import httpx
import pytest

from petstore.databases.contract import Unit
from petstore.events.model import NewEvent
from petstore.events.store import record
from support.service import Service
from support.visitor import Visitor, newcomer, words
from support.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("dogs")]

BY_ITSELF = {"Console-Refresh": "1"}
BELLA = {"name": "Bella", "categoryId": "1", "status": "available"}


async def changes(visitor: Visitor, after: str = "", kinds: str = "pet") -> httpx.Response:
    query = {"after": after, "kinds": kinds}
    return await visitor.client.get("/console/changes", params=query, headers=BY_ITSELF)


async def newest(visitor: Visitor, kinds: str = "pet") -> str:
    """Return the cursor behind the newest event."""
    response = await changes(visitor, kinds=kinds)
    assert response.status_code == 200, response.text
    assert response.json()["resources"] is None
    cursor: str = response.json()["cursor"]
    return cursor


async def waiting(
    service: Service, visitor: Visitor, kinds: str = "pet"
) -> asyncio.Task[httpx.Response]:
    """Begin to wait for a change, and return once the service waits."""
    cursor = await newest(visitor, kinds)
    feed = service.app.services.feed
    before = feed.waiting
    task = asyncio.create_task(changes(visitor, cursor, kinds))
    await eventually(lambda: feed.waiting > before)
    return task


@pytest.mark.parametrize("kinds", ["", "fish", "pet fish"])
async def test_an_invalid_kind_or_cursor_or_no_session_is_refused(
    service: Service, staff: Visitor, kinds: str
) -> None:
    response = await changes(staff, kinds=kinds)
    assert response.status_code == 400
    assert "Kinds: expected some of pet, order, category, key, person, webhook" in words(response)
    assert (await changes(staff, after="somewhere")).status_code == 400
    assert (await changes(newcomer(service), kinds="pet")).status_code == 401


@pytest.mark.each_database
async def test_a_change_since_the_page_was_opened_or_a_stop_ends_the_wait_at_once(
    service: Service, staff: Visitor
) -> None:
    page = await staff.get("/pets")
    opened = page.text.partition('data-cursor="')[2].partition('"')[0]
    waits = await waiting(service, staff)
    await staff.submit("/pets", **BELLA)
    for response in (await waits, await changes(staff, opened)):
        assert response.json()["resources"] == ["pet/1"]
        assert response.headers["cache-control"] == "no-store"
    waits = await waiting(service, staff)
    service.app.shut_down()
    assert (await waits).json()["resources"] == []


async def test_too_many_changes_are_reported_as_unknown(service: Service, staff: Visitor) -> None:
    cursor = await newest(staff)

    def as_many_as_are_told_at_once() -> Unit[None]:
        yield record(service.clock(), *[NewEvent("pet.created", "pet/1", {})] * 100)

    await service.store.write(as_many_as_are_told_at_once())
    response = await changes(staff, cursor)
    assert response.json() == {"cursor": await newest(staff), "resources": None}
