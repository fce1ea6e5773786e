"""Signing in with a key or a link, sessions from beginning to end, and signing out."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from petstore.clock import MINUTE, SECOND
from petstore.store.console_sessions import create_link, end_sessions
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


async def link_of(service: Service, key_id: int) -> str:
    return (
        f"/link/{await service.store.write(create_link(key_id, 'the operator', service.clock()))}"
    )


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
async def test_a_wrong_key_is_refused_in_plain_words(
    stranger: Visitor, key: str, words: str
) -> None:
    refused = await stranger.post("/sign-in", key=key)
    assert refused.status_code == 401
    assert words in refused.text
    assert "set-cookie" not in refused.headers
    assert "www-authenticate" not in refused.headers
    assert not key.strip() or key not in refused.text


async def test_a_revoked_key_and_an_expired_key_sign_nobody_in(
    service: Service, stranger: Visitor
) -> None:
    revoked, expired = await service.issue(), await service.issue(expires_in=60)
    await revoke(service.store, service.clock, revoked.key.id)
    service.clock.advance(60)
    for issued in (revoked, expired):
        assert (await stranger.post("/sign-in", key=issued.token)).status_code == 401


async def test_a_key_of_other_networks_is_told_so(service: Service, stranger: Visitor) -> None:
    issued = await service.issue(allowed_networks=("192.0.2.0/24",))
    refused = await stranger.post("/sign-in", key=issued.token)
    assert refused.status_code == 403
    assert "may not be used from 127.0.0.1" in refused.text


async def test_attempts_to_sign_in_are_limited_by_address(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=3) as service:
        issued, stranger = await service.issue(), newcomer(service)
        for key in ("wrong", issued.token, "wrong"):
            assert (await stranger.post("/sign-in", key=key)).status_code != 429
        refused = await stranger.post("/sign-in", key=issued.token)
        assert refused.status_code == 429
        assert "wait 60 seconds" in refused.text
        assert refused.headers["retry-after"] == "60"


async def test_the_form_keeps_browsers_from_remembering_the_key(stranger: Visitor) -> None:
    page = await stranger.get("/sign-in")
    assert page.status_code == 200
    assert 'name="key" type="password" autocomplete="off"' in page.text
    assert "data-plain" in page.text


async def test_signing_in_leads_to_a_page_that_the_key_may_see(service: Service) -> None:
    for scopes, start in [
        ({"pets:read"}, "/console/pets"),
        ({"orders:read"}, "/console/orders"),
        ({"webhooks:write"}, "/console/usage"),
    ]:
        person = await signed_in(service, scopes=frozenset(scopes))
        for path in ("", "/"):
            assert (await person.get(path)).headers["location"] == start


async def test_a_person_gets_back_to_the_page_that_they_wanted(
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
async def test_signing_in_leads_nowhere_but_to_the_console(
    service: Service, stranger: Visitor, elsewhere: str
) -> None:
    issued = await service.issue()
    arrived = await stranger.post("/sign-in", key=issued.token, next=elsewhere)
    assert (arrived.status_code, arrived.headers["location"]) == (303, "/console")


async def test_somebody_who_is_signed_in_needs_no_sign_in_page(staff: Visitor) -> None:
    passed = await staff.get("/sign-in", next="/pets?status=sold")
    assert (passed.status_code, passed.headers["location"]) == (303, "/console/pets?status=sold")


# The cookie


async def test_the_cookie_is_for_the_browser_alone(service: Service, stranger: Visitor) -> None:
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


@pytest.mark.parametrize(
    "cookie", ["", "=", "petstore_console", "petstore_console=", 'petstore_console="\xe9;;']
)
async def test_a_broken_cookie_is_none(stranger: Visitor, cookie: str) -> None:
    stranger.client.headers["cookie"] = cookie
    response = await stranger.get("/session")
    assert response.status_code == 303


async def test_two_cookies_of_the_name_count_as_none(staff: Visitor) -> None:
    value = staff.client.cookies["petstore_console"]
    staff.client.cookies.clear()
    for other, status in [("theme=dark", 200), ("petstore_console=x", 303)]:
        headers = {"cookie": f"petstore_console={value}; {other}", **SAME_ORIGIN}
        shown = await staff.client.get("/console/session", headers=headers)
        assert shown.status_code == status


async def test_a_flood_from_an_address_does_not_lock_out_who_is_signed_in_there(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("petstore.console.console._MAX_KNOWN", 2)
    async with running_service(database, anonymous_per_minute=3) as service:
        people = [await signed_in(service) for _ in range(3)]
        service.clock.advance(60)
        assert [await is_signed_in(person) for person in people] == [True] * 3
        for n in range(4):
            flood = await bearer(service, f"invented-{n}").get("/session")
        assert flood.status_code == 429
        # A process knows so many sessions, and not the oldest.
        assert [await is_signed_in(person) for person in people] == [False, True, True]
        assert (await people[2].post("/sign-out")).status_code == 303
        # A session that has ended is soon one of nobody.
        await service.store.write(end_sessions(people[1].key_id))
        ended = [(await people[1].get("/session")).status_code for _ in range(2)]
        assert ended == [303, 429]


async def test_cookies_that_nobody_has_are_limited_by_address(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=3) as service:
        person = await signed_in(service)  # the first attempt of the address
        for _ in range(5):  # a cookie with a session costs the address nothing
            assert await is_signed_in(person)
        invented = bearer(service, "invented")
        statuses = [(await invented.get("/session")).status_code for _ in range(3)]
        assert statuses == [303, 303, 429]


async def test_signing_in_ends_the_session_before(service: Service) -> None:
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


async def test_sessions_survive_a_restart(database: Path) -> None:
    async with running_service(database) as service:
        person = await signed_in(service)
    async with running_service(database, service.clock) as service:
        again = newcomer(service)
        again.client.cookies = person.client.cookies
        assert await is_signed_in(again)


# Its end


async def test_a_session_ends_half_an_hour_after_its_last_use(
    service: Service, staff: Visitor
) -> None:
    for _ in range(3):
        service.clock.advance(29 * 60)
        assert await is_signed_in(staff)
    service.clock.advance(30 * 60)
    assert not await is_signed_in(staff)


async def test_what_the_script_requests_by_itself_keeps_no_session_alive(
    service: Service, staff: Visitor
) -> None:
    headers = {**SAME_ORIGIN, "Console-Refresh": "1"}
    for minutes, status in [(20, 200), (10, 401)]:
        service.clock.advance(minutes * 60)
        refreshed = await staff.client.get("/console/session", headers=headers)
        assert refreshed.status_code == status
    assert "You are signed out" in refreshed.text


async def test_a_session_ends_after_twelve_hours_of_use(service: Service, staff: Visitor) -> None:
    for _ in range(12 * 60 // 20 - 1):
        service.clock.advance(20 * 60)
        assert await is_signed_in(staff)
    service.clock.advance(20 * 60)
    assert not await is_signed_in(staff)


async def test_a_session_ends_with_its_key(service: Service) -> None:
    revoked, expired = await signed_in(service), await signed_in(service, expires_in=600)
    await revoke(service.store, service.clock, revoked.key_id)
    assert not await is_signed_in(revoked)
    assert await is_signed_in(expired)
    service.clock.advance(600)
    assert not await is_signed_in(expired)


async def test_a_session_ends_with_the_token_that_began_it(service: Service) -> None:
    person = await signed_in(service)
    await rotate(service.store, service.clock, person.key_id, grace=5 * MINUTE)
    service.clock.advance(5 * MINUTE / SECOND - 1)
    assert await is_signed_in(person)
    service.clock.advance(1)
    assert not await is_signed_in(person)


async def test_a_session_ends_at_once_with_a_token_without_grace(service: Service) -> None:
    person = await signed_in(service)
    await rotate(service.store, service.clock, person.key_id)
    assert not await is_signed_in(person)


async def test_a_session_in_a_network_that_the_key_has_lost_is_told_why(service: Service) -> None:
    person = await signed_in(service)
    wanted = ("192.0.2.0/24",)
    await change(service.store, service.clock, person.key_id, allowed_networks=wanted)
    refused = await person.get("/session")
    assert refused.status_code == 403
    assert "may not be used from 127.0.0.1" in refused.text
    assert 'name="key"' in refused.text  # another key may work
    assert (await person.get("/sign-in")).status_code == 200


async def test_scopes_that_a_key_has_lost_count_at_the_next_request(service: Service) -> None:
    person = await signed_in(service)
    assert (await person.get("/pets")).status_code == 200
    scopes = frozenset({"orders:read"})
    await change(service.store, service.clock, person.key_id, scopes=scopes)
    refused = await person.get("/pets")
    assert refused.status_code == 403
    assert "lacks the scope pets:read" in refused.text


async def test_a_person_whose_session_has_ended_is_told_why(service: Service) -> None:
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


async def test_a_form_of_a_key_that_was_revoked_is_told_so(service: Service) -> None:
    person = await signed_in(service)
    await revoke(service.store, service.clock, person.key_id)
    late = await person.post("/pets", name="Bella", categoryId="1")
    assert late.status_code == 401
    assert "Your key was revoked." in words(late)
    assert "you can send what you typed" in words(late)


async def test_nobody_else_is_told_why_a_session_ended(service: Service) -> None:
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
    assert (left.status_code, left.headers["location"]) == (303, "/console/sign-in")
    assert "Max-Age=0" in cookie_of(left)
    assert not await is_signed_in(bearer(service, secret))


async def test_somebody_without_a_session_can_sign_out(stranger: Visitor) -> None:
    assert (await stranger.post("/sign-out")).status_code == 303


async def test_all_sessions_of_a_key_can_be_ended_and_no_other(service: Service) -> None:
    person, colleague = await signed_in(service), await signed_in(service)
    phone = newcomer(service)
    await phone.post("/sign-in", key=person.token)
    left = await person.post("/session/end-all")
    assert left.headers["location"] == "/console/sign-in"
    assert not await is_signed_in(phone)
    assert await is_signed_in(colleague)


# Links


async def test_a_link_signs_in_once(service: Service, stranger: Visitor) -> None:
    issued = await service.issue()
    link = await link_of(service, issued.key.id)
    signed = await stranger.post(link)
    assert (signed.status_code, signed.headers["location"]) == (303, "/console")
    assert await is_signed_in(stranger)
    again = await newcomer(service).post(link)
    assert again.status_code == 401
    assert "used already" in again.text


async def test_opening_a_link_does_not_use_it(service: Service, stranger: Visitor) -> None:
    issued = await service.issue()
    link = await link_of(service, issued.key.id)
    for method in ("GET", "HEAD", "GET"):
        opened = await stranger.client.request(method, f"/console{link}")
        assert opened.status_code == 200
        assert "set-cookie" not in opened.headers
    assert f'action="/console{link}"' in opened.text
    assert (await stranger.post(link)).status_code == 303


async def test_the_secret_of_a_link_reaches_no_referrer_and_no_log(database: Path) -> None:
    async with running_service(database) as service:
        issued, person = await service.issue(), newcomer(service)
        link = await link_of(service, issued.key.id)
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


async def test_a_link_ends_after_ten_minutes(service: Service, stranger: Visitor) -> None:
    issued = await service.issue()
    link = await link_of(service, issued.key.id)
    service.clock.advance(600)
    assert (await stranger.post(link)).status_code == 401


async def test_a_link_outlives_neither_its_key_nor_its_environment(
    service: Service, stranger: Visitor
) -> None:
    issued, other = await service.issue(), await service.issue(environment="staging")
    links = [await link_of(service, each.key.id) for each in (issued, other)]
    await revoke(service.store, service.clock, issued.key.id)
    for link in links:
        assert (await stranger.post(link)).status_code == 401


async def test_a_session_of_a_link_outlives_neither_token_nor_key(service: Service) -> None:
    for end in (rotate, revoke):
        issued, person = await service.issue(), newcomer(service)
        await person.post(await link_of(service, issued.key.id))
        assert await is_signed_in(person)
        await end(service.store, service.clock, issued.key.id)
        assert not await is_signed_in(person)


async def test_links_that_nobody_has_are_limited_by_address(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=2) as service:
        statuses = [(await newcomer(service).post("/link/x")).status_code for _ in range(3)]
        assert statuses == [401, 401, 429]
