"""Signing in with a key or a link, sessions from beginning to end, and signing out."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from petstore.console.console import PAGES
from petstore.keys.model import new_token
from support.keys import change
from support.service import Service, running_service
from support.visitor import SAME_ORIGIN, Visitor, newcomer, owner_of_key, signed_in, words

pytestmark = pytest.mark.anyio


@pytest.fixture
def stranger(service: Service) -> Visitor:
    """Somebody who is not signed in."""
    return newcomer(service)


@pytest.fixture
async def secure(database: Path) -> AsyncIterator[Service]:
    """A service behind https."""
    async with running_service(database, public_url="https://shop.example") as service:
        yield service


async def is_signed_in(visitor: Visitor) -> bool:
    return (await visitor.get("/account")).status_code == 200


def bearer(service: Service, secret: str, name: str = "petstore_console") -> Visitor:
    """Return somebody whose browser has this cookie and no other."""
    person = newcomer(service)
    person.client.headers["cookie"] = f"{name}={secret}"
    return person


async def sign_in_status(visitor: Visitor, token: str) -> int:
    return (await visitor.post("/sign-in", key=token)).status_code


def cookie_of(response: httpx.Response) -> str:
    return response.headers["set-cookie"]


# Signing in with a key


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "Enter your key."),
        ("   ", "Enter your key."),
        ("ps_live_" + "x" * 38, "Check that you copied all of it; it begins with ps_live_."),
        ("nonsense \N{DOG FACE}", "Check that you copied all of it"),
        ("ps_test_" + "x" * 38, "it begins with ps_live_."),
    ],
)
async def test_a_wrong_key_is_refused_clearly(stranger: Visitor, key: str, words: str) -> None:
    refused = await stranger.post("/sign-in", key=key)
    assert refused.status_code == 401
    assert words in refused.text
    assert "set-cookie" not in refused.headers
    assert "www-authenticate" not in refused.headers
    assert not key.strip() or key not in refused.text


async def test_a_key_outside_its_networks_is_refused_with_the_reason(
    service: Service, stranger: Visitor
) -> None:
    issued = await service.issue(allowed_networks=("192.0.2.0/24",))
    refused = await stranger.post("/sign-in", key=issued.token)
    assert refused.status_code == 403
    assert "may not be used from 127.0.0.1" in refused.text


async def test_new_keys_are_limited_by_address_and_known_ones_are_not(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=3) as service:
        issued, unseen, stranger = await service.issue(), await service.issue(), newcomer(service)
        assert await sign_in_status(stranger, issued.token) == 303
        made_up = [new_token("production") for _ in range(4)]
        statuses = [await sign_in_status(stranger, token) for token in made_up]
        assert statuses == [401, 401, 401, 429]
        assert await sign_in_status(stranger, unseen.token) == 429
        assert await sign_in_status(newcomer(service), issued.token) == 303
        service.clock.advance(60)
        assert await sign_in_status(stranger, unseen.token) == 303


async def test_a_valid_key_does_not_count_against_its_address(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=1) as service:
        issued, stranger = await service.issue(), newcomer(service)
        for _ in range(3):
            assert await sign_in_status(stranger, issued.token) == 303
        assert await sign_in_status(stranger, "wrong") == 401


async def test_an_unreachable_database_does_not_count_as_a_failed_attempt(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=1) as service:
        issued, stranger = await service.issue(), newcomer(service)
        await service.store.close()
        for _ in range(2):
            failed = await stranger.post("/sign-in", key=issued.token, next="/orders")
            assert failed.status_code == 503
            assert "Wait a moment" in words(failed)
            assert issued.token not in failed.text
        await service.store.open()
        assert await sign_in_status(stranger, "wrong") == 401


async def test_the_form_keeps_browsers_from_remembering_the_key(stranger: Visitor) -> None:
    page = await stranger.get("/sign-in")
    assert page.status_code == 200
    assert 'name="key" type="password" autocomplete="off"' in page.text
    assert "data-plain" in page.text


@pytest.mark.each_database
async def test_the_owner_of_a_key_sees_nothing_of_the_shop(service: Service) -> None:
    owner = await owner_of_key(service)
    for path in ("", "/"):
        assert (await owner.get(path)).headers["location"] == "/console/usage"
    offered = (await owner.get("/usage")).text
    assert re.findall(r'<li><a href="/console/([a-z]+)"', offered) == ["usage", "webhooks"]
    seen = {"", "/", "/usage", "/account", "/help"}
    seen |= {"/webhooks", "/webhooks/new"}
    for page in PAGES:
        if page.public or page.path in seen or page.path.startswith("/webhooks/"):
            continue
        path = re.sub(r"{\w+}", "1", page.path)
        ask = owner.get if page.method == "GET" else owner.post
        own = path.startswith(("/account", "/usage/rotate")) and page.method == "POST"
        if not own:
            refused = await ask(path)
            assert refused.status_code == 403, page
            assert "the shop is for people" in refused.text, page
    for path in seen - {"", "/"}:
        assert (await owner.get(path)).status_code == 200, path


async def test_signing_in_leads_to_the_wanted_page(service: Service, stranger: Visitor) -> None:
    issued = await service.issue()
    sent = await stranger.client.get("/console/pets?name=bel%20la", headers=SAME_ORIGIN)
    assert sent.status_code == 303
    assert sent.headers["location"] == "/console/sign-in?next=%2Fpets%3Fname%3Dbel%2520la"
    form = await stranger.client.get(sent.headers["location"])
    assert 'value="/pets?name=bel%20la"' in form.text
    arrived = await stranger.post("/sign-in", key=issued.token, next="/pets?name=bel%20la")
    assert arrived.headers["location"] == "/console/pets?name=bel%20la"


@pytest.mark.parametrize(
    "elsewhere",
    [
        *("//evil.example", "/\\evil.example", "/\t/evil.example", "https://evil.example/"),
        *("/../docs", "/pets/../../docs", "/./pets", "/pets\r\nset-cookie: a=b", "/pets?a=\r\nb"),
        *("/pets?a=\N{SNOWMAN}", "/p\N{LATIN SMALL LETTER A WITH ACUTE}", "pets", "javascript:1"),
        *("/pets?q=" + "x" * 2000, "/pets?a=\\", "/pets/", "@evil.example", ".evil.example"),
    ],
)
async def test_signing_in_redirects_only_within_the_console(
    service: Service, stranger: Visitor, elsewhere: str
) -> None:
    issued = await service.issue()
    arrived = await stranger.post("/sign-in", key=issued.token, next=elsewhere)
    assert (arrived.status_code, arrived.headers["location"]) == (303, "/console")


# The cookie


async def test_the_cookie_is_http_only_and_same_site(service: Service, stranger: Visitor) -> None:
    issued = await service.issue()
    name, value = cookie_of(await stranger.post("/sign-in", key=issued.token)).split("=", 1)
    assert name == "petstore_console"
    assert value.partition("; ")[2] == "Path=/; HttpOnly; SameSite=Strict"
    assert issued.token not in value


async def test_over_https_the_cookie_is_bound_to_the_host(secure: Service) -> None:
    issued = await secure.issue()
    cookie = cookie_of(await newcomer(secure).post("/sign-in", key=issued.token))
    assert cookie.startswith("__Host-petstore_console=")
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict; Secure")
    value = cookie.partition("=")[2].partition(";")[0]
    for name, status in [("__Host-petstore_console", 200), ("petstore_console", 303)]:
        shown = await bearer(secure, value, name).get("/account")
        assert shown.status_code == status


async def test_the_cookie_is_found_at_any_position(staff: Visitor) -> None:
    cookie = f"petstore_console={staff.client.cookies['petstore_console']}"
    staff.client.cookies.clear()
    beside = "x=petstore_console=1"  # the value of another cookie
    for sent, status in [
        (f"a=1;{cookie}", 200),
        (f"a=1;\t {cookie} ;b=2", 200),
        (f"{beside}; {cookie}; my_{cookie}", 200),
        (f"my_{cookie}", 303),
        (f"a=1, {cookie}", 303),
        (f"{cookie}, a=1", 303),
        (f"{cookie}; petstore_console=x", 303),  # two of the name count as none
        ("petstore_console", 303),
        ("petstore_console=", 303),
        ('petstore_console="\xe9;;', 303),
        ("; ".join([beside] * 20 + [cookie]), 303),
    ]:
        staff.client.headers["cookie"] = sent
        assert (await staff.get("/account")).status_code == status, sent


async def test_signing_in_ends_the_previous_session(service: Service) -> None:
    person = await owner_of_key(service)
    before = person.client.cookies["petstore_console"]
    await person.post("/sign-in", key=person.token)
    after = person.client.cookies["petstore_console"]
    assert await is_signed_in(person)
    assert after != before
    assert not await is_signed_in(bearer(service, before))


async def test_a_session_works_only_in_its_environment(database: Path) -> None:
    async with running_service(database) as production:
        person = await signed_in(production)
        async with running_service(database, environment="staging") as staging:
            there = newcomer(staging)
            there.client.cookies = person.client.cookies
            assert not await is_signed_in(there)


async def test_a_session_ends_half_an_hour_after_its_last_use(
    service: Service, staff: Visitor
) -> None:
    for _ in range(3):
        service.clock.advance(29 * 60)
        assert await is_signed_in(staff)
    service.clock.advance(30 * 60)
    assert not await is_signed_in(staff)


# Its end


async def test_background_requests_keep_no_session_alive(service: Service, staff: Visitor) -> None:
    headers = {**SAME_ORIGIN, "Console-Refresh": "1"}
    for minutes, status in [(20, 200), (10, 401)]:
        service.clock.advance(minutes * 60)
        refreshed = await staff.client.get("/console/account", headers=headers)
        assert refreshed.status_code == status
    assert "You are signed out" in refreshed.text


async def test_a_session_outside_the_networks_of_its_key_ends(service: Service) -> None:
    person = await owner_of_key(service)
    wanted = ("192.0.2.0/24",)
    await change(service.store, service.clock, person.key_id, allowed_networks=wanted)
    refused = await person.get("/account")
    assert refused.status_code == 403
    assert "may not be used from 127.0.0.1" in refused.text
    assert 'name="key"' in refused.text  # another key may work
    assert (await person.get("/sign-in")).status_code == 200


# Signing out


async def test_signing_out_ends_the_session_on_the_server(service: Service, staff: Visitor) -> None:
    secret = staff.client.cookies["petstore_console"]
    left = await staff.post("/sign-out")
    location = "/console/sign-in?signed-out=true"
    assert (left.status_code, left.headers["location"]) == (303, location)
    assert "You are signed out." in words(await staff.client.get(location))
    assert "You are signed out." not in words(await staff.get("/sign-in"))
    assert "Max-Age=0" in cookie_of(left)
    assert not await is_signed_in(bearer(service, secret))


# The limit of pages


async def test_each_caller_has_pages_of_their_own_in_each_network(database: Path) -> None:
    proxies = ("127.0.0.0/8",)
    async with running_service(database, console_per_minute=3, trusted_proxy=proxies) as service:
        thief, colleague = await signed_in(service), await signed_in(service)
        statuses = [(await thief.get("/pets")).status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        assert await is_signed_in(colleague)
        thief.client.headers["X-Forwarded-For"] = "192.0.2.1"
        assert await is_signed_in(thief)
        del thief.client.headers["X-Forwarded-For"]
        assert (await thief.post("/sign-out")).status_code == 303
        assert not await is_signed_in(thief)
