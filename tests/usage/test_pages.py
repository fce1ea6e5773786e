"""The page of a key's owner: usage, limits, bans, deprecated calls, and rotation."""

import re

import pytest

from petstore.clock import DAY, HOUR, MINUTE
from petstore.keys.store import MAX_OWN_ROTATIONS
from petstore.limits.decide import BanRules
from petstore.usage.counter import first_hour
from support.keys import rotate
from support.service import Service
from support.visitor import Visitor, owner_of_key, signed_in

pytestmark = pytest.mark.anyio

OLD_TOKEN_KEEPS = {"graceSeconds": "3600"}


@pytest.fixture
async def staff(service: Service) -> Visitor:
    """The owner of a key for everything, signed in with it."""
    return await owner_of_key(service)


def text_of(html: str) -> str:
    """Return the words of a page as a person reads them."""
    words = re.sub(r"<(script|style)\b.*?</\1>|<[^>]+>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", words.replace("\N{NARROW NO-BREAK SPACE}", ""))


async def usage_of(visitor: Visitor) -> str:
    response = await visitor.get("/usage")
    assert response.status_code == 200
    return text_of(response.text)


def shown_token(html: str) -> str:
    found = re.search(r'<code id="token">([^<]+)</code>', html)
    assert found is not None
    return found[1]


# Limits


async def test_the_meters_show_the_usage_and_viewing_them_counts_against_no_limit(
    service: Service,
) -> None:
    owner = await owner_of_key(service, plan="free", scopes=frozenset({"pets:read"}))
    for _ in range(50):
        await service.request("GET", "/v1/pets", owner.token)
    for _ in range(3):
        words = await usage_of(owner)
        assert re.search("This minute: 50 of 60 . nearly at the limit", words)
        assert "Today: 50 of 1000 " in words
        assert words.count("Resets at") == 2


async def test_only_the_limits_refresh_and_they_contain_no_form(staff: Visitor) -> None:
    html = (await staff.get("/usage")).text
    (refreshed,) = re.findall(r"<[^>]+ data-refresh=[^>]+>", html)
    assert 'id="limits"' in refreshed
    inner = html[html.index(refreshed) : html.index("<h2>Requests</h2>")]
    assert "<form" not in inner


async def test_a_key_without_limits_has_no_meters(staff: Visitor) -> None:
    words = await usage_of(staff)
    assert "This minute: no limit" in words
    assert "Today: no limit" in words


async def test_each_of_30_days_has_a_bar_and_a_row(service: Service) -> None:
    owner = await owner_of_key(service)
    await service.request("GET", "/v1/pets", owner.token)
    await service.app.services.limiter.save()
    service.clock.now += DAY
    await owner.post("/sign-in", key=owner.token)
    html = (await owner.get("/usage")).text
    assert html.count('<g class="bar">') == 30
    table = text_of(html[html.index("as a table") : html.index("Responses of the last")])
    numbers = re.findall(r"\d+ [A-Z][a-z]{2} (\d+)", table)
    assert numbers == ["0", "1", *["0"] * 28]


async def test_a_ban_is_shown_with_its_end_and_advice(service: Service) -> None:
    owner = await owner_of_key(service, plan="free", scopes=frozenset({"pets:read"}))
    limit = 60 + BanRules().threshold(60)
    for _ in range(limit):
        await service.request("GET", "/v1/pets", owner.token)
    service.clock.now += 2_000
    for _ in range(limit):
        await service.request("GET", "/v1/pets", owner.token)
    words = await usage_of(owner)
    assert "This key is banned until" in words
    assert "5 min left" in words
    assert "an administrator of the keys can lift it" in words
    assert "/docs/limits#back-off" in (await owner.get("/usage")).text


# Responses


async def test_responses_are_shown_by_status(service: Service) -> None:
    owner = await owner_of_key(service)
    assert "There was no request with this key yet." in await usage_of(owner)
    today, counter = service.clock() // DAY, service.app.services.counter
    for day, status in (*((today, each) for each in (200, 304, 429)), *2 * [(today - 1, 200)]):
        counter.count("response", owner.key_id, str(status), first_hour(day))
    words = await usage_of(owner)
    assert "200 OK 3 1 Dec 2026 304 Not Modified 1 1 Dec 2026 429 Too Many" in words


# What ends


async def test_deprecated_calls_are_shown_with_their_sunset_and_replacement(
    service: Service,
) -> None:
    owner = await owner_of_key(service)
    assert "Deprecated calls" not in await usage_of(owner)
    agent = {"User-Agent": "<b>till</b>/1"}
    await service.request("GET", "/v1/pets/1", owner.token, headers=agent)
    assert "Deprecated calls (1)" in await usage_of(owner)
    html = (await owner.get("/usage")).text
    assert "/docs/operations/getPet" in html
    assert "&lt;b&gt;till&lt;/b&gt;/1" in html
    words = text_of(html)
    assert "GET /v1/pets/{petId} Use instead: GET /v1/pets, with id" in words
    assert "5 Dec 2030, 00:00" in words


# The key


async def test_the_page_shows_the_fields_of_the_key_and_never_its_token(service: Service) -> None:
    owner = await owner_of_key(
        service,
        name="Kennel <i>",
        scopes=frozenset({"pets:read"}),
        allowed_networks=("127.0.0.0/8",),
    )
    response = await owner.get("/account")
    assert "Kennel &lt;i&gt;" in response.text
    words = text_of(response.text)
    assert "Networks 127.0.0.0/8 Token expires never Permissions See pets and categories" in words
    assert owner.token not in response.text


@pytest.mark.parametrize(("days", "times"), [(13, 1), (20, 0)])
async def test_an_approaching_expiry_is_shown(service: Service, days: int, times: int) -> None:
    owner = await owner_of_key(service, expires_in=days * 86_400)
    words = await usage_of(owner)
    assert words.count("Your token expires at") == times
    assert words.count(f"( {days} days left )") == times
    assert "Token expires never" not in text_of((await owner.get("/account")).text)


async def test_the_end_of_a_rotated_token_is_shown(service: Service) -> None:
    owner = await owner_of_key(service)
    await rotate(service.store, service.clock, owner.key_id, 60 * MINUTE)
    assert "If the key was rotated, use its new token" in await usage_of(owner)


# Rotation


async def test_a_leaked_token_ends_at_once_and_a_planned_change_asks_when(staff: Visitor) -> None:
    html = (await staff.get("/usage")).text
    leaked, planned = html.split('action="/console/usage/rotate"')[1:3]
    assert 'type="hidden" name="graceSeconds" value="0"' in leaked
    assert re.findall(r'<option value="(\d+)">', planned) == ["86400", "604800", "3600"]


@pytest.mark.parametrize(("grace", "ends"), [("3600", "in 1 hour"), ("0", "at once")])
async def test_a_rotation_shows_the_token_once_and_the_session_ends_with_the_old_one(
    service: Service, staff: Visitor, grace: str, ends: str
) -> None:
    page = await staff.post("/usage/rotate", graceSeconds=grace)
    assert f"The old token ends {ends}." in text_of(page.text)
    new = shown_token(page.text)
    assert (await service.request("GET", "/v1/pets", new)).status_code == 200
    if grace == "0":
        left = text_of((await staff.get("/sign-in?signed-out=rotated")).text)
        assert "The old token has ended, and this session with it." in left
        assert 'href="/console/sign-in?signed-out=rotated"' in page.text
    for _ in range(int(grace) // 1200):
        assert new not in (await staff.get("/usage")).text
        service.clock.now += 20 * MINUTE
    assert (await staff.get("/usage")).status_code == 303
    assert (await staff.post("/sign-in", key=new)).status_code == 303
    assert (await staff.get("/usage")).status_code == 200


@pytest.mark.parametrize("grace", ["soon", "9" * 5000])
async def test_a_refused_rotation_says_why_and_rotates_nothing(
    service: Service, staff: Visitor, grace: str
) -> None:
    page = await staff.post("/usage/rotate", graceSeconds=grace)
    assert page.status_code == 400
    assert "expected an integer from 0" in page.text
    assert (await service.request("GET", "/v1/pets", staff.token)).status_code == 200


async def test_a_token_in_its_grace_period_cannot_rotate_its_key(
    service: Service, staff: Visitor
) -> None:
    await rotate(service.store, service.clock, staff.key_id, 60 * MINUTE)
    page = await staff.post("/usage/rotate", **OLD_TOKEN_KEEPS)
    assert page.status_code == 403
    assert "token was replaced; use the newest token" in page.text


async def test_the_page_says_when_the_key_can_rotate_itself_again(service: Service) -> None:
    owner = await owner_of_key(service, scopes=frozenset())
    for _ in range(MAX_OWN_ROTATIONS):
        page = await owner.post("/usage/rotate", graceSeconds="0")
        assert (await owner.post("/sign-in", key=shown_token(page.text))).status_code == 303
    refused = await owner.post("/usage/rotate", graceSeconds="0")
    assert refused.status_code == 429
    assert "This key has rotated itself 5 times today, the maximum" in refused.text
    assert refused.headers["retry-after"] == "43200"
    assert (await owner.get("/usage")).status_code == 200


async def test_the_owner_of_a_banned_key_can_rotate_it_and_the_ban_stays(service: Service) -> None:
    owner = await owner_of_key(service, per_minute=1, scopes=frozenset())
    await service.request("GET", "/v1/x", owner.token)
    await service.request("GET", "/v1/x", owner.token)
    service.clock.advance(2)
    for _ in range(service.settings.ban_strikes):
        await service.request("GET", "/v1/x", owner.token)
    page = await owner.post("/usage/rotate", graceSeconds="0")
    refused = await service.request("GET", "/v1/x", shown_token(page.text))
    assert refused.json()["code"] == "api_key_banned"


# Refused by a limit


async def test_the_newest_24_refused_rows_are_shown_in_words(service: Service) -> None:
    owner = await owner_of_key(service)
    assert "No request was refused in the last 7 days." in await usage_of(owner)
    counter, hour = service.app.services.counter, service.clock() // HOUR
    for name in ("listPets", "listPets", "", "ofAnotherVersion"):
        counter.count("refused", owner.key_id, name, hour)
    words = await usage_of(owner)
    for row in ("List pets 2", "Unknown path or method 1", "ofAnotherVersion 1"):
        assert f"1 Dec 2026, 12:00 {row}" in words
    for hours in range(1, 23):
        counter.count("refused", owner.key_id, "listPets", hour - hours)
    html = (await owner.get("/usage")).text
    table = html[html.index("Refused by a limit") :]
    times = re.findall(r'<td role="cell"><time datetime="([^"]+)"', table)
    assert (len(times), times) == (24, sorted(times, reverse=True))
    assert "The newest 24 of 25 rows." in text_of(table)


async def test_a_person_has_no_page_of_usage(service: Service) -> None:
    person = await signed_in(service)
    assert 'href="/console/usage"' not in (await person.get("/account")).text
    assert (await person.get("/usage")).status_code == 403
    assert (await person.post("/usage/rotate", graceSeconds="0")).status_code == 403


async def test_administrators_see_which_keys_call_deprecated_operations(service: Service) -> None:
    staff = await signed_in(service)
    assert "Deprecated calls" not in (await staff.get("/keys")).text
    await service.request("GET", "/v1/pets/1", staff.token)
    await service.app.services.counter.save()
    assert "Use instead: GET /v1/pets" in text_of((await staff.get("/keys")).text)
