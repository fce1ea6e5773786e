"""The page of a key's owner: usage, limits, bans, deprecated calls, and rotation."""

import re

import pytest

from petstore.clock import MINUTE
from support.keys import rotate
from support.service import Service
from support.visitor import owner_of_key, signed_in, words

pytestmark = pytest.mark.anyio


async def test_meters_show_the_usage_and_count_against_no_limit(service: Service) -> None:
    owner = await owner_of_key(service, plan="free", scopes=frozenset({"pets:read"}))
    for _ in range(50):
        await service.request("GET", "/v1/pets", owner.token)
    for _ in range(3):
        shown = words(await owner.get("/usage"))
        assert "This minute: 50 of 60 \N{EN DASH} nearly at the limit" in shown
        assert "Today: 50 of 1 000" in shown
        assert shown.count("Resets at") == 2


async def test_owners_and_administrators_see_deprecated_calls_with_sunset_and_replacement(
    service: Service,
) -> None:
    owner, admin = await owner_of_key(service), await signed_in(service)
    for visitor, path in ((owner, "/usage"), (admin, "/keys")):
        assert "Deprecated calls" not in words(await visitor.get(path))
    agent = {"User-Agent": "<b>till</b>/1"}
    await service.request("GET", "/v1/pets/1", owner.token, headers=agent)
    await service.app.services.counter.save()
    page = await owner.get("/usage")
    assert "/docs/operations/getPet" in page.text
    assert "&lt;b&gt;till&lt;/b&gt;/1" in page.text
    assert "Deprecated calls (1)" in words(page)
    assert "GET /v1/pets/{petId} Use instead: GET /v1/pets, with id" in words(page)
    assert "5 Dec 2030, 00:00" in words(page)
    assert "Use instead: GET /v1/pets" in words(await admin.get("/keys"))


async def test_an_approaching_expiry_is_shown(service: Service) -> None:
    for days, times in ((13, 1), (20, 0)):
        owner = await owner_of_key(service, expires_in=days * 86_400)
        shown = words(await owner.get("/usage"))
        assert shown.count("Your token expires at") == times
        assert shown.count(f"({days} days left)") == times
        assert "Token expiresnever" not in words(await owner.get("/account"))


@pytest.mark.parametrize(("grace", "ends"), [("3600", "in 1 hour"), ("0", "at once")])
async def test_a_rotation_shows_the_token_once_and_the_session_ends_with_the_old_one(
    service: Service, grace: str, ends: str
) -> None:
    owner = await owner_of_key(service)
    page = await owner.post("/usage/rotate", graceSeconds=grace)
    assert f"The old token ends {ends}." in words(page)
    (new,) = re.findall(r'<code id="token">([^<]+)</code>', page.text)
    assert (await service.request("GET", "/v1/pets", new)).status_code == 200
    for _ in range(int(grace) // 1200):
        assert new not in (await owner.get("/usage")).text
        service.clock.now += 20 * MINUTE
    assert (await owner.get("/usage")).status_code == 303
    assert "your key or your access was changed" in (await owner.get("/sign-in")).text
    assert (await owner.post("/sign-in", key=new)).status_code == 303
    assert (await owner.get("/usage")).status_code == 200


async def test_a_planned_rotation_asks_when_and_a_refused_one_says_why_and_rotates_nothing(
    service: Service,
) -> None:
    owner = await owner_of_key(service)
    leaked, planned = (await owner.get("/usage")).text.split('action="/console/usage/rotate"')[1:3]
    assert 'type="hidden" name="graceSeconds" value="0"' in leaked
    assert re.findall(r'<option value="(\d+)">', planned) == ["86400", "604800", "3600"]
    for grace in ("soon", "9" * 5000):
        page = await owner.post("/usage/rotate", graceSeconds=grace)
        assert page.status_code == 400
        assert "expected an integer from 0" in page.text
        assert (await service.request("GET", "/v1/pets", owner.token)).status_code == 200
    await rotate(service.store, service.clock, owner.key_id, 60 * MINUTE)
    page = await owner.post("/usage/rotate", graceSeconds="3600")
    assert page.status_code == 403
    assert "token was replaced; use the newest token" in page.text


async def test_a_person_has_no_page_of_usage(service: Service) -> None:
    person = await signed_in(service)
    assert 'href="/console/usage"' not in (await person.get("/account")).text
    assert (await person.get("/usage")).status_code == 403
    assert (await person.post("/usage/rotate", graceSeconds="0")).status_code == 403
