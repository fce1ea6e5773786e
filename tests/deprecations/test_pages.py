"""The page of calls that will end, for administrators."""

import re

import pytest

from petstore.keys.status import get_key
from support.service import Service
from support.visitor import Visitor
from support.waiting import eventually

pytestmark = pytest.mark.anyio


async def test_the_page_says_if_no_key_calls_deprecated_operations(staff: Visitor) -> None:
    assert "No key calls anything that will end." in (await staff.get("/deprecations")).text


async def test_a_key_with_deprecated_calls_can_start_and_stop_rehearsing_the_sunset(
    staff: Visitor, service: Service
) -> None:
    issued = await service.issue(name="Till")
    headers = {"User-Agent": "corner-shop/1.4 <b>"}
    for _ in range(3):
        await service.request("GET", "/v1/pets/7", issued.token, headers=headers)

    async def is_listed() -> bool:
        return "Till" in (await staff.get("/deprecations")).text

    await eventually(is_listed, 30)
    key_id = issued.id
    page = (await staff.get("/deprecations")).text
    assert f'<a href="/console/keys/{key_id}"><bdi>Till</bdi></a>' in page
    assert "GET /v1/pets/{petId}" in page
    assert "5 Dec 2030" in page
    assert "corner-shop/1.4 &lt;b&gt;" in page
    assert re.search(r'class="number"><data value="3">3</data></td>', page)

    path = f"/keys/{key_id}/rehearse"
    rehearsing = await staff.submit(path, on="true")
    assert f'action="/console{path}"' in rehearsing.text.partition("<h1>")[0]  # the undo
    assert (await get_key(service.store, key_id, None, service.clock)).rehearse_sunset
    assert "Stop the rehearsal" in (await staff.get("/deprecations")).text
    stopped = await staff.submit(path)
    assert "Stop the rehearsal" not in stopped.text
    assert not (await get_key(service.store, key_id, None, service.clock)).rehearse_sunset
