"""The pages of keys, for administrators."""

import re
from typing import Any

import pytest

from petstore.clock import DAY, MINUTE
from petstore.keys.store import get_key
from support.keys import issue
from support.page_forms import form_to, succeed
from support.service import Service
from support.visitor import Visitor, signed_in, words

pytestmark = pytest.mark.anyio

TILL = {
    "name": "Till 2",
    "plan": "pro",
    "scopes": ["orders:read", "pets:read"],
    "allowedNetworks": "203.0.113.0/24\r\n2001:db8::1",
}
TOKEN = re.compile(r"ps_live_[0-9A-Za-z]{38}")


async def change_form(visitor: Visitor, key_id: int) -> dict[str, Any]:
    return form_to(await visitor.get(f"/keys/{key_id}"), f"/keys/{key_id}").fields


async def test_a_form_sent_twice_creates_one_key_whose_token_is_shown_once(
    staff: Visitor, service: Service
) -> None:
    form = form_to(await staff.get("/keys/new"), "/keys").fields | TILL
    created = await staff.post("/keys", **form)
    assert created.status_code == 201
    (token,) = TOKEN.findall(created.text)
    assert "You will not see this token again." in created.text
    key = await get_key(service.store, staff.key_id + 1, None, service.clock)
    assert (key.name, key.plan, key.scopes) == ("Till 2", "pro", ["orders:read", "pets:read"])
    assert key.allowed_networks == ["203.0.113.0/24", "2001:db8::1/128"]
    refused = await staff.post("/keys", **form)
    assert (await staff.get("/keys")).text.count("Till 2") == 1
    assert refused.status_code == 409
    assert "showed its token; rotate the key to get another" in refused.text
    for page in (refused, await staff.get("/keys"), await staff.get(f"/keys/{key.id}")):
        assert not TOKEN.search(page.text)
    assert token not in service.log.getvalue().decode()


async def test_a_refused_form_keeps_the_input(staff: Visitor) -> None:
    typed = TILL | {"perMinute": "many", "expiresAt": "2027-01-31"}
    del typed["scopes"]  # no box is checked, and none is afterwards
    refused = await staff.post("/keys", **typed)
    assert refused.status_code == 400
    assert "Expected an integer from 1 to 2147483646</p>" in refused.text
    again = form_to(refused, "/keys").fields
    assert again.pop("once")
    assert again == typed | {"perDay": "", "allowedNetworks": "2001:db8::1\n203.0.113.0/24"}


async def test_undo_restores_edited_fields_and_a_conflict_shows_both_changes(
    staff: Visitor, service: Service
) -> None:
    ends_at = service.clock() + 30 * DAY + 5 * MINUTE
    key_id = (await issue(service.store, service.clock, expires_at=ends_at)).id
    before = await get_key(service.store, key_id, None, service.clock)
    form = await change_form(staff, key_id)
    wanted = {"plan": "pro", "scopes": ["pets:read"], "expiresAt": "2030-01-31"}
    changed = await staff.submit(f"/keys/{key_id}", **form | wanted)
    assert "test is changed." in words(changed)
    key = await get_key(service.store, key_id, None, service.clock)
    assert (key.name, key.plan, key.scopes) == ("test", "pro", ["pets:read"])
    assert f"{key.expires_at}" == "2030-01-31 23:59:59+00:00"
    assert "test is as it was before." in words(await succeed(staff, changed, "Undo"))
    assert await get_key(service.store, key_id, None, service.clock) == before
    other, path = await signed_in(service, name="Other"), f"/keys/{key_id}"
    mine, theirs = [await change_form(each, key_id) for each in (staff, other)]
    await other.submit(path, **theirs | {"plan": "business", "name": "Till 3"})
    conflict = await staff.post(path, **mine | {"plan": "pro"})
    assert conflict.status_code == 412
    assert "Another user changed this key while you were looking at it." in conflict.text
    assert (
        "Name: test → Till 3. Other changed the name just now."
        " Plan: free → business, and you want pro. Other changed the plan just now."
    ) in words(conflict)
    saved = await staff.submit(path, **form_to(conflict, path).fields)
    assert "Till 3 is changed." in words(saved)
    assert (await get_key(service.store, key_id, None, service.clock)).plan == "pro"


async def test_the_old_token_of_a_rotated_key_works_for_the_chosen_time_and_leads_to_it(
    staff: Visitor, service: Service
) -> None:
    old = await service.issue(name="Leaked")
    path = f"/keys/{old.id}/rotate"
    (token,) = TOKEN.findall((await staff.post(path, graceSeconds="3600")).text)
    for each in (token, old.token):
        assert (await service.request("GET", "/v1/pets", each)).status_code == 200
    for typed in (f" {old.token}", old.token[-4:]):
        found = await staff.submit("/keys/find", name=typed)
        assert found.url.query.decode() == f"name={old.token[-4:]}"
        assert "Leaked" in words(found)


async def test_a_revoked_key_stops_working_and_shows_only_its_history(
    staff: Visitor, service: Service
) -> None:
    issued = await service.issue("free", name="Till")
    path = f"/keys/{issued.id}"
    form = await change_form(staff, issued.id)
    other = await signed_in(service)
    assert "This cannot be undone." in (await other.get(path)).text
    assert "Till is revoked." in words(await other.submit(f"{path}/revoke"))
    assert (await service.request("GET", "/v1/pets", issued.token)).status_code == 401
    refused = await staff.post(path, **form | {"name": "Till 3"})
    assert refused.status_code == 412
    assert "Another user revoked this key while you were editing." in refused.text
    page = await staff.get(path)
    assert 'class="status revoked"' in page.text
    assert '<form method="post" action="/console/keys' not in page.text


async def test_a_key_shows_its_usage(staff: Visitor, service: Service) -> None:
    limited = await service.issue("enterprise", name="Limited", per_minute=5, per_day=2000)
    for _ in range(3):
        await service.request("GET", "/v1/pets", limited.token)
    await service.limiter.save()
    text = words(await staff.get("/keys", name="limited"))
    assert f"Limited {limited.token[-4:]} active 1 Dec 2026, 12:00 enterprise never" in text
    text = words(await staff.get(f"/keys/{limited.id}"))
    assert "This minute: 3 of 5" in text
    assert "Today: 3 of 2 000" in text
