"""Signing in with a key or a link, sessions from beginning to end, and signing out."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from petstore.keys.model import new_token
from petstore.sessions.store import create_link
from support.keys import change, revoke, rotate
from support.service import Service, running_service
from support.visitor import SAME_ORIGIN, Visitor, newcomer, signed_in, words

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
    return (await visitor.get("/session")).status_code == 200


def bearer(service: Service, secret: str, name: str = "petstore_console") -> Visitor:
    """Return somebody whose browser has this cookie and no other."""
    person = newcomer(service)
    person.client.headers["cookie"] = f"{name}={secret}"
    return person


async def sign_in_status(visitor: Visitor, token: str) -> int:
    return (await visitor.post("/sign-in", key=token)).status_code


async def link_of(service: Service, key_id: int) -> str:
    return f"/link/{await service.store.write(create_link(key_id, service.clock()))}"


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
        ("ps_test_" + "x" * 38, "This is a key for staging, and this service is for production."),
    ],
)
async def test_a_wrong_key_is_refused_with_a_clear_message(
    stranger: Visitor, key: str, words: str
) -> None:
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


async def test_new_keys_are_limited_by_address_and_one_that_is_known_is_not(
    database: Path,
) -> None:
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


async def test_beyond_the_limit_the_form_keeps_every_field_except_the_key(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=1) as service:
        stranger = newcomer(service)
        secret = new_token("production")
        kept = {"next": "/orders", "again": "/pets", "typed.name": "Bella"}
        for status, told in [(401, "This key does not work here."), (429, "wait 60 seconds")]:
            page = await stranger.post("/sign-in", key=secret, **kept)
            assert page.status_code == status
            assert told in words(page)
            assert secret not in page.text
            for name, value in kept.items():
                assert f'name="{name}" value="{value}"' in page.text
        assert page.headers["retry-after"] == "60"


async def test_a_key_can_sign_in_sixty_times_a_minute_from_one_address(service: Service) -> None:
    issued, stranger = await service.issue(), newcomer(service)
    statuses = [await sign_in_status(stranger, issued.token) for _ in range(61)]
    assert statuses == [303] * 60 + [429]
    elsewhere = await stranger.client.post(
        "/console/sign-in", data={"key": (await service.issue()).token}, headers=SAME_ORIGIN
    )
    assert elsewhere.status_code == 303


async def test_an_unreachable_database_does_not_count_as_a_failed_attempt(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=1) as service:
        issued, stranger = await service.issue(), newcomer(service)
        link = await link_of(service, issued.id)
        await service.store.close()
        for path in ("/sign-in", link):
            for _ in range(2):
                failed = await stranger.post(path, key=issued.token, next="/orders")
                assert failed.status_code == 503
                assert "Wait a moment" in words(failed)
                assert issued.token not in failed.text
                assert f'action="/console{path}"' in failed.text
        assert failed.headers.get_list("referrer-policy") == ["strict-origin"]
        await service.store.open()
        assert (await stranger.post(link)).status_code == 303
        assert await sign_in_status(stranger, "wrong") == 401


async def test_the_form_keeps_browsers_from_remembering_the_key(stranger: Visitor) -> None:
    page = await stranger.get("/sign-in")
    assert page.status_code == 200
    assert 'name="key" type="password" autocomplete="off"' in page.text
    assert "data-plain" in page.text


async def test_signing_in_redirects_to_a_page_that_the_key_can_read(service: Service) -> None:
    for scopes, start in [
        ({"pets:read"}, "/console/pets"),
        ({"orders:read"}, "/console/today"),
        ({"webhooks:write"}, "/console/usage"),
    ]:
        person = await signed_in(service, scopes=frozenset(scopes))
        for path in ("", "/"):
            assert (await person.get(path)).headers["location"] == start


async def test_signing_in_redirects_to_the_requested_page(
    service: Service, stranger: Visitor
) -> None:
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


async def test_the_sign_in_page_redirects_a_signed_in_person(staff: Visitor) -> None:
    passed = await staff.get("/sign-in", next="/pets?status=sold")
    assert (passed.status_code, passed.headers["location"]) == (303, "/console/pets?status=sold")


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
        shown = await bearer(secure, value, name).get("/session")
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
        assert (await staff.get("/session")).status_code == status, sent


async def test_a_flood_from_an_address_does_not_sign_out_its_users(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=3) as service:
        person = await signed_in(service)
    # Also in a process that has never seen the session.
    async with running_service(database, service.clock, anonymous_per_minute=3) as service:
        crowd = newcomer(service)
        made_up = [new_token("production") for _ in range(4)]
        assert [await sign_in_status(crowd, token) for token in made_up][-1] == 429
        for n in range(5):
            assert not await is_signed_in(bearer(service, f"invented-{n}"))
        there = newcomer(service)
        there.client.cookies = person.client.cookies
        assert await is_signed_in(there)
        assert (await there.post("/sign-out")).status_code == 303


async def test_signing_in_ends_the_previous_session(service: Service) -> None:
    person = await signed_in(service)
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


# Its end


async def test_a_session_ends_half_an_hour_after_its_last_use(
    service: Service, staff: Visitor
) -> None:
    for _ in range(3):
        service.clock.advance(29 * 60)
        assert await is_signed_in(staff)
    service.clock.advance(30 * 60)
    assert not await is_signed_in(staff)


async def test_background_requests_do_not_keep_a_session_alive(
    service: Service, staff: Visitor
) -> None:
    headers = {**SAME_ORIGIN, "Console-Refresh": "1"}
    for minutes, status in [(20, 200), (10, 401)]:
        service.clock.advance(minutes * 60)
        refreshed = await staff.client.get("/console/session", headers=headers)
        assert refreshed.status_code == status
    assert "You are signed out" in refreshed.text


async def test_a_session_outside_the_networks_of_its_key_shows_the_reason(
    service: Service,
) -> None:
    person = await signed_in(service)
    wanted = ("192.0.2.0/24",)
    await change(service.store, service.clock, person.key_id, allowed_networks=wanted)
    refused = await person.get("/session")
    assert refused.status_code == 403
    assert "may not be used from 127.0.0.1" in refused.text
    assert 'name="key"' in refused.text  # another key may work
    assert (await person.get("/sign-in")).status_code == 200


async def test_an_ended_session_shows_the_reason(service: Service) -> None:
    revoked, replaced, left = [await signed_in(service) for _ in range(3)]
    expired = await signed_in(service, expires_in=60)
    await revoke(service.store, service.clock, revoked.key_id)
    await rotate(service.store, service.clock, replaced.key_id)
    service.clock.advance(60)
    for person, told in [
        (revoked, "Your key was revoked."),
        (expired, "Your key has expired."),
        (replaced, "your key has a new token"),
    ]:
        sent = await person.get("/pets")
        page = await person.client.get(sent.headers["location"])
        assert page.status_code == 200
        assert told in words(page)
        # The key that they try next is another matter.
        assert told not in words(await person.post("/sign-in", key="wrong"))
    service.clock.advance(29 * 60)
    assert "because you did nothing here for 30 minutes" in words(await left.get("/sign-in"))
    service.clock.advance(12 * 60 * 60)
    assert "because 12 hours have passed" in words(await left.get("/sign-in"))


async def test_a_form_of_a_revoked_key_shows_the_reason(service: Service) -> None:
    person = await signed_in(service)
    await revoke(service.store, service.clock, person.key_id)
    late = await person.post("/pets", name="Bella", categoryId="1")
    assert late.status_code == 401
    assert "Your key was revoked." in words(late)
    assert "you can send what you typed" in words(late)


async def test_the_reason_is_shown_only_to_the_owner_of_the_session(service: Service) -> None:
    person = await signed_in(service)
    secret = person.client.cookies["petstore_console"]
    await revoke(service.store, service.clock, person.key_id)
    plain = words(await newcomer(service).get("/sign-in"))
    for invented in (secret[:-1], secret.swapcase(), "x"):
        assert words(await bearer(service, invented).get("/sign-in")) == plain
    assert "Your key was revoked." in words(await bearer(service, secret).get("/sign-in"))


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


async def test_signing_out_works_without_a_session(stranger: Visitor) -> None:
    assert (await stranger.post("/sign-out")).status_code == 303


async def test_signing_out_works_when_the_limit_of_the_key_is_used_up(database: Path) -> None:
    async with running_service(database, console_per_minute=2) as service:
        thief, colleague = await signed_in(service), await signed_in(service)
        owner, phone = newcomer(service), newcomer(service)
        for person in (owner, phone):
            assert await sign_in_status(person, thief.token) == 303
        assert [(await thief.get("/pets")).status_code for _ in range(3)] == [200, 200, 429]
        refused = await owner.get("/pets")
        assert refused.status_code == 429
        assert 'href="/console/session"' in refused.text
        assert (await owner.get("/sign-in")).status_code == 303
        assert (await phone.post("/sign-out")).status_code == 303
        assert "Sign out everywhere" in words(await owner.get("/session"))
        left = await owner.post("/session/end-all")
        assert left.headers["location"] == "/console/sign-in?signed-out=true"
        for person in (thief, owner, phone):
            assert not await is_signed_in(person)
        assert await is_signed_in(colleague)


async def test_the_session_pages_have_their_own_limit(service: Service) -> None:
    person, colleague = await signed_in(service), await signed_in(service)
    again = newcomer(service)
    await again.post("/sign-in", key=person.token)
    statuses = [(await person.get("/session")).status_code for _ in range(59)]
    assert statuses == [200] * 58 + [429]
    # A thief with many sessions has no more than with one.
    refused = await again.get("/session")
    assert refused.status_code == 429
    assert "signing in and out with this key from this address" in words(refused)
    assert (await person.get("/pets")).status_code == 200
    assert await is_signed_in(colleague)


# Links


async def test_a_link_works_once(service: Service, stranger: Visitor) -> None:
    issued = await service.issue()
    link = await link_of(service, issued.id)
    signed = await stranger.post(link)
    assert (signed.status_code, signed.headers["location"]) == (303, "/console")
    assert await is_signed_in(stranger)
    again = await newcomer(service).post(link)
    assert again.status_code == 401
    told = "This link was used before, or it has ended. Ask for another one. Sign in"
    assert told in words(again)


async def test_opening_a_link_does_not_use_it_up(service: Service, stranger: Visitor) -> None:
    issued = await service.issue()
    link = await link_of(service, issued.id)
    for method in ("GET", "HEAD", "GET"):
        opened = await stranger.client.request(method, f"/console{link}")
        assert opened.status_code == 200
        assert "set-cookie" not in opened.headers
    assert f'action="/console{link}"' in opened.text
    assert (await stranger.post(link)).status_code == 303


async def test_the_secret_of_a_link_is_in_no_referrer_and_no_log(database: Path) -> None:
    async with running_service(database) as service:
        issued, person = await service.issue(), newcomer(service)
        link = await link_of(service, issued.id)
        secret = link.rpartition("/")[2]
        opened = await person.get(link)
        # "no-referrer" would make the Origin of the form null, and the form be refused.
        assert opened.headers.get_list("referrer-policy") == ["strict-origin"]
        signed = await person.post(link)
        page = await person.client.get(signed.headers["location"], follow_redirects=True)
        assert secret not in f"{page.url} {page.text}"
    log = service.log.getvalue().decode()
    assert secret not in log
    assert log.count('"/console/link/{secret}"') == 2


async def test_a_link_ends_with_its_key_and_works_only_in_its_environment(
    service: Service, stranger: Visitor
) -> None:
    issued, other = await service.issue(), await service.issue(environment="staging")
    links = [await link_of(service, each.id) for each in (issued, other)]
    await revoke(service.store, service.clock, issued.id)
    for link in links:
        assert (await stranger.post(link)).status_code == 401
