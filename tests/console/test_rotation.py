"""What a rotation ends: an attacker with an old token keeps nothing that it gave."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from petstore.clock import MINUTE, SECOND
from support.history import told_of
from support.keys import change, rotate
from support.service import Service
from support.visitor import FORM, SAME_ORIGIN, Visitor, newcomer, words

pytestmark = pytest.mark.anyio


async def is_signed_in(visitor: Visitor) -> bool:
    return (await visitor.get("/session")).status_code == 200


async def link_made_by(maker: Visitor, key_id: int) -> str:
    page = await maker.post(f"/keys/{key_id}/link")
    (secret,) = re.findall(r"/console/link/([\w-]+)<", page.text)
    return f"/link/{secret}"


async def by_link(service: Service, maker: Visitor, key_id: int) -> Visitor:
    """Return somebody who is signed in with a link that ``maker`` made."""
    visitor = newcomer(service, key_id=key_id)
    assert (await visitor.post(await link_made_by(maker, key_id))).status_code == 303
    return visitor


async def test_a_rotation_ends_the_links_of_its_key_and_their_sessions(
    service: Service, staff: Visitor
) -> None:
    thief = await by_link(service, staff, staff.key_id)
    unused = await link_made_by(thief, staff.key_id)
    await rotate(service.store, service.clock, staff.key_id)
    assert not await is_signed_in(thief)
    told = words(await thief.get("/sign-in"))
    assert "your key has a new token" in told
    refused = await newcomer(service).post(unused)
    assert refused.status_code == 401
    assert "This link was used before, or it has ended." in words(refused)


async def test_sessions_and_links_of_an_old_token_end_with_its_grace_period(
    service: Service, staff: Visitor
) -> None:
    before = await link_made_by(staff, staff.key_id)
    new = await rotate(service.store, service.clock, staff.key_id, grace=5 * MINUTE)
    thief, late = newcomer(service), newcomer(service)
    assert (await thief.post(before)).status_code == 303
    assert (await late.post("/sign-in", key=staff.token)).status_code == 303
    for person in (staff, thief, late):
        refused = await person.post(f"/keys/{staff.key_id}/link")
        assert "your key cannot give a longer life than its own" in words(refused)
        refused = await person.post("/usage/rotate", graceSeconds="0")
        assert "only its newest token can do that" in words(refused)
    owner = newcomer(service, new.token, staff.key_id)
    await owner.post("/sign-in", key=new.token)
    helper = await by_link(service, owner, staff.key_id)
    service.clock.advance(5 * MINUTE / SECOND - 1)
    assert await is_signed_in(thief)
    service.clock.advance(1)
    ended = [await is_signed_in(each) for each in (staff, thief, late, owner, helper)]
    assert ended == [False, False, False, True, True]


@pytest.mark.parametrize("path", ["/keys/1/rotate", "/usage/rotate", "/keys/1/link", "/pets"])
@pytest.mark.parametrize("ends", ["rotated", "signed out", "elsewhere"])
async def test_a_form_that_arrives_after_its_session_has_ended_changes_nothing(
    service: Service, staff: Visitor, path: str, ends: str
) -> None:
    owner = newcomer(service, staff.token, staff.key_id)
    await owner.post("/sign-in", key=staff.token)
    before = len(await told_of(service.store, "key/1"))

    async def late() -> AsyncIterator[bytes]:
        yield b"graceSeconds=0"
        if ends == "rotated":
            staff.token = (await rotate(service.store, service.clock, 1)).token
        elif ends == "signed out":
            await asyncio.create_task(owner.post("/session/end-all"))
        else:
            await change(service.store, service.clock, 1, allowed_networks=("192.0.2.0/24",))
        yield b"&name=Bella&categoryId=1"

    response = await staff.client.post(
        f"/console{path}", content=late(), headers=SAME_ORIGIN | FORM
    )
    assert response.status_code == (403 if ends == "elsewhere" else 401)
    if ends == "elsewhere":
        assert "may not be used from" in words(response)
        await change(service.store, service.clock, 1, allowed_networks=())
    else:
        assert "Your session has ended. Sign in again." in words(response)
    await service.status_becomes(staff.token, 404)
    assert (await service.request("GET", "/v1/pets", staff.token)).json() == []
    events = (await told_of(service.store, "key/1"))[before:]
    assert [event for event in events if event["actor"] != {"type": "operator"}] == []


async def test_a_rotation_in_a_session_from_a_link_keeps_that_session(
    service: Service, staff: Visitor
) -> None:
    person = await by_link(service, staff, staff.key_id)
    page = await person.post("/usage/rotate", graceSeconds="0")
    assert "You stay signed in." in words(page)
    assert await is_signed_in(person)
    assert not await is_signed_in(staff)
