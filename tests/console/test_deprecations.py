"""The page of calls that will end, for administrators."""

import re

import pytest

from petstore.store.key_status import get_key
from support.service import Service
from support.visitor import Visitor
from support.waiting import eventually

pytestmark = pytest.mark.anyio


async def test_nobody_who_calls_what_ends_is_said(staff: Visitor) -> None:
    assert "No key calls anything that will end." in (await staff.get("/deprecations")).text


async def test_a_key_that_calls_what_ends_can_rehearse_its_end_and_go_back(
    staff: Visitor, service: Service
) -> None:
    issued = await service.issue(name="Till")
    headers = {"User-Agent": "corner-shop/1.4 <b>"}
    for _ in range(3):
        await service.request("GET", "/v1/pets/7", issued.token, headers=headers)

    async def is_listed() -> bool:
        return "Till" in (await staff.get("/deprecations")).text

    await eventually(is_listed, 30)
    key_id = issued.key.id
    page = (await staff.get("/deprecations")).text
    assert f'<a href="/console/keys/{key_id}"><bdi>Till</bdi></a>' in page
    assert "GET /v1/pets/{petId}" in page
    assert "5 Dec 2030" in page
    assert "corner-shop/1.4 &lt;b&gt;" in page
    assert re.search(r'<td class="number"><data value="3">3</data></td>', page)

    path = f"/keys/{key_id}/rehearse"
    rehearsing = await staff.submit(path, on="true")
    assert f'action="/console{path}"' in rehearsing.text.partition("<h1>")[0]  # the undo
    assert (await get_key(service.store, key_id, None, service.clock)).rehearseSunset
    assert "Stop the rehearsal" in (await staff.get("/deprecations")).text
    stopped = await staff.submit(path)
    assert "Stop the rehearsal" not in stopped.text
    assert not (await get_key(service.store, key_id, None, service.clock)).rehearseSunset
