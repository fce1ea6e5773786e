"""The two doors of the console, a password and a key; sessions, and what no attempt gains."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from hashlib import blake2b
from pathlib import Path

import httpx
import pytest

from petstore.clock import DAY, SECOND
from petstore.console.console import PAGES
from petstore.console.sign_in import device_of
from petstore.databases.contract import Statement, read_unit
from petstore.keys.model import new_token
from petstore.people.passwords import Passwords
from petstore.people.store import find_session_in_unit
from support.cases import case
from support.keys import change
from support.passwords import (
    CHEAP,
    LOGIN,
    OTHER_PASSWORD,
    PASSWORD,
    WRONG_PASSWORD,
    add_with_password,
    is_signed_in,
    person_at,
    sign_in,
)
from support.people import add, alter
from support.service import Service, http_request, running_service
from support.stores import do
from support.visitor import (
    COOKIE,
    FORM,
    SAME_ORIGIN,
    Visitor,
    newcomer,
    owner_of_key,
    signed_in,
    words,
)
from support.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("cheap_passwords")]

WRONG = "The login or the password is wrong."


@pytest.fixture
async def shop(database: Path) -> AsyncIterator[Service]:
    """A service that believes a proxy which address a client has, with one person: Grace."""
    async with running_service(database, trusted_proxy=("127.0.0.0/8",)) as service:
        await add_with_password(service)
        yield service


async def sign_in_from(
    service: Service, address: str, login: str = LOGIN, password: str = WRONG_PASSWORD
) -> int:
    """Send the form from an address, with an unknown browser, and return the status."""
    response = await newcomer(service).client.post(
        "/console/sign-in",
        data={"login": login, "password": password},
        headers=SAME_ORIGIN | FORM | {"X-Forwarded-For": address},
    )
    return response.status_code


def bearer(service: Service, secret: str, name: str = COOKIE) -> Visitor:
    """Return somebody whose browser has this cookie and no other."""
    person = newcomer(service)
    person.client.headers["cookie"] = f"{name}={secret}"
    return person


def cookies_of(response: httpx.Response) -> dict[str, str]:
    """Return the cookies that a response sets, by their names."""
    return dict(line.split("=", 1) for line in response.headers.get_list("set-cookie"))


# With a password


async def test_whatever_is_wrong_the_response_is_the_same(service: Service) -> None:
    await add_with_password(service)
    await add(service.store, service.clock, login="invited@shop.example")
    disabled = await add_with_password(service, login="disabled@shop.example")
    await alter(service.store, service.clock, disabled, state="disabled")
    await add_with_password(service, login="staging@shop.example", environment="staging")
    expected = words(await sign_in(newcomer(service), "someone@shop.example", WRONG_PASSWORD))
    assert WRONG in expected
    for login, password in (
        *((LOGIN, text) for text in (WRONG_PASSWORD, PASSWORD.upper(), PASSWORD + " ", "short")),
        *(("", ""), (LOGIN, ""), ("x" * 10_000, PASSWORD), ("\0", PASSWORD)),
        *(
            (f"{name}@shop.example", PASSWORD)
            for name in ("nobody", "invited", "disabled", "staging")
        ),
    ):
        with case(login, password):
            refused = await sign_in(newcomer(service), login, password)
            assert refused.status_code == 401
            assert words(refused) == expected
            assert "set-cookie" not in refused.headers
            assert not password.strip() or password not in refused.text


async def test_the_right_password_signs_in_with_the_login_in_any_case(service: Service) -> None:
    await add_with_password(service)
    visitor = newcomer(service)
    (focused,) = re.findall(r"<input[^>]* autofocus[^>]*>", (await visitor.get("/sign-in")).text)
    assert 'name="login"' in focused
    signed = await sign_in(visitor, f"  {LOGIN.upper()} ", next="/orders")
    assert (signed.status_code, signed.headers["location"]) == (303, "/console/orders")
    assert "Grace" in (await visitor.get("/pets")).text
    assert LOGIN in words(await visitor.get("/account"))


async def test_a_form_of_a_stranger_is_small(service: Service) -> None:
    """Thousands may wait with one for a password."""
    stranger, long = newcomer(service), "x" * 8_100
    for text, status in ((long, 401), (2 * long + "x" * 300, 413)):
        refused = await sign_in(stranger, again="/pets", **{"typed.a": text})
        assert refused.status_code == status
    kept = await stranger.post("/pets", name=long)
    assert f'name="typed.name" value="{long}"' in kept.text
    lost = await stranger.post("/pets", name=long, categoryId="x" * 100)
    assert lost.status_code == 401
    assert "Sign in again, and then fill in the form again." in words(lost)


async def test_a_password_that_changes_during_its_check_signs_nobody_in(shop: Service) -> None:
    turns = shop.app.services.admission.passwords
    with await turns.take("a"), await turns.take("b"):
        waiting = asyncio.create_task(sign_in_from(shop, "192.0.2.1", password=PASSWORD))
        await eventually(lambda: turns._all._waiters)  # noqa: SLF001
        hashed = await Passwords(CHEAP).hash(OTHER_PASSWORD)
        await shop.store.write(do("UPDATE people SET password = ?1", hashed))
    await waiting
    sessions = await shop.store.read(Statement("SELECT digest, expires_at FROM console_sessions"))
    for digest, _ in sessions:
        assert await read_unit(shop.store, find_session_in_unit(digest, shop.clock())) is None
    assert await sign_in_from(shop, "192.0.2.1", password=OTHER_PASSWORD) == 303


# With a key


async def test_a_wrong_key_is_refused_clearly(service: Service) -> None:
    for key, told in (
        *(("", "Enter your key."), ("   ", "Enter your key.")),
        ("ps_live_" + "x" * 38, "Check that you copied all of it; it begins with ps_live_."),
        ("nonsense \N{DOG FACE}", "Check that you copied all of it"),
        ("ps_test_" + "x" * 38, "it begins with ps_live_."),
    ):
        with case(key):
            refused = await newcomer(service).post("/sign-in", key=key)
            assert refused.status_code == 401
            assert told in refused.text
            assert not {"set-cookie", "www-authenticate"} & {*refused.headers}
            assert not key.strip() or key not in refused.text


async def test_a_key_outside_its_networks_is_refused_with_the_reason(service: Service) -> None:
    owner = await owner_of_key(service)
    wanted = ("192.0.2.0/24",)
    await change(service.store, service.clock, owner.key_id, allowed_networks=wanted)
    await service.app.services.keys.refresh()
    for refused in (await owner.get("/account"), await owner.post("/sign-in", key=owner.token)):
        assert refused.status_code == 403
        assert "may not be used from 127.0.0.1" in refused.text
        assert 'name="key"' in refused.text  # another key may work
    assert (await owner.get("/sign-in")).status_code == 200


async def test_only_keys_that_are_unknown_are_limited_by_address(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=3) as service:
        issued, unseen, stranger = await service.issue(), await service.issue(), newcomer(service)
        await service.store.close()
        for _ in range(4):
            failed = await stranger.post("/sign-in", key=issued.token, next="/orders")
            assert failed.status_code == 503
            assert "Wait a moment" in words(failed)
            assert issued.token not in failed.text
        await service.store.open()
        made_up = [new_token("production") for _ in range(4)]
        tokens = [issued.token, *made_up, unseen.token, issued.token]
        sent = [await newcomer(service).post("/sign-in", key=token) for token in tokens]
        statuses = [response.status_code for response in sent]
        assert statuses == [303, 401, 401, 401, 429, 429, 303]
        service.clock.advance(60)
        assert (await stranger.post("/sign-in", key=unseen.token)).status_code == 303


async def test_the_owner_of_a_key_sees_nothing_of_the_shop(service: Service) -> None:
    owner = await owner_of_key(service)
    for path in ("", "/"):
        assert (await owner.get(path)).headers["location"] == "/console/usage"
    offered = (await owner.get("/usage")).text
    assert re.findall(r'<li><a href="/console/([a-z]+)"', offered) == ["usage", "webhooks"]
    own = {"/usage", "/account", "/help", "/webhooks", "/webhooks/new"}
    for path in own:
        assert (await owner.get(path)).status_code == 200, path
    of_keys = ("/webhooks/", "/account/", "/usage/rotate")
    for page in PAGES:
        if page.public or page.path in {"", "/", *own} or page.path.startswith(of_keys):
            continue
        ask = owner.get if page.method == "GET" else owner.post
        refused = await ask(re.sub(r"{\w+}", "1", page.path))
        assert refused.status_code == 403, page
        assert "the shop is for people" in refused.text, page


async def test_signing_in_leads_to_the_wanted_page_of_the_console_and_nowhere_else(
    service: Service,
) -> None:
    issued, stranger = await service.issue(), newcomer(service)
    sent = await stranger.client.get("/console/pets?name=bel%20la", headers=SAME_ORIGIN)
    assert sent.status_code == 303
    assert sent.headers["location"] == "/console/sign-in?next=%2Fpets%3Fname%3Dbel%2520la"
    form = await stranger.client.get(sent.headers["location"])
    assert 'value="/pets?name=bel%20la"' in form.text
    # Browsers are not to remember the key.
    assert 'name="key" type="password" autocomplete="off"' in form.text
    assert "data-plain" in form.text
    arrived = await stranger.post("/sign-in", key=issued.token, next="/pets?name=bel%20la")
    assert arrived.headers["location"] == "/console/pets?name=bel%20la"
    for elsewhere in (
        *("//evil.example", "/\\evil.example", "/\t/evil.example", "https://evil.example/"),
        *("/../docs", "/pets/../../docs", "/./pets", "/pets\r\nset-cookie: a=b", "/pets?a=\r\nb"),
        *("/pets?a=\N{SNOWMAN}", "/p\N{LATIN SMALL LETTER A WITH ACUTE}", "pets", "javascript:1"),
        *("/pets?q=" + "x" * 2000, "/pets?a=\\", "/pets/", "@evil.example", ".evil.example", ""),
    ):
        for fields in ({"next": elsewhere}, {"again": elsewhere, "typed.name": "Bella"}):
            with case(fields):
                arrived = await stranger.post("/sign-in", key=issued.token, **fields)
                assert (arrived.status_code, arrived.headers["location"]) == (303, "/console")


# The session


async def test_a_session_ends_half_an_hour_after_its_last_use(service: Service) -> None:
    person = await person_at(service)
    stays = newcomer(service)
    assert (await sign_in(stays, stays="true")).status_code == 303
    service.clock.advance(20 * 60)
    headers = SAME_ORIGIN | {"Console-Refresh": "1"}  # of a script, which is no use
    refreshed = await person.client.get("/console/account", headers=headers)
    assert refreshed.status_code == 200
    service.clock.advance(10 * 60)
    refreshed = await person.client.get("/console/account", headers=headers)
    assert refreshed.status_code == 401
    assert "You are signed out" in refreshed.text
    assert not await is_signed_in(person)
    for _ in range(3):
        service.clock.advance(29 * DAY / SECOND)
        assert await is_signed_in(stays)
    service.clock.advance(30 * DAY / SECOND)
    assert not await is_signed_in(stays)
    assert "you did nothing here for a while" in words(await stays.get("/sign-in"))


async def test_only_a_session_of_a_person_that_stays_outlives_the_browser_and_is_renewed_by_use(
    service: Service,
) -> None:
    await add_with_password(service)
    issued, lasts = await service.issue(), f"; Max-Age={30 * DAY // SECOND}"
    known = {"login": LOGIN, "password": PASSWORD}
    for form, is_lasting in (
        *((known, False), (known | {"stays": "true"}, True), (known | {"stays": "no"}, False)),
        ({"key": issued.token, "stays": "true"}, False),
    ):
        visitor = newcomer(service)
        signed = await visitor.post("/sign-in", **form)
        assert signed.headers["cache-control"] == "no-store"
        value, _, attributes = cookies_of(signed)[COOKIE].partition("; ")
        assert attributes == "Path=/; HttpOnly; SameSite=Strict" + lasts * is_lasting
        assert issued.token not in value
        service.clock.advance(61)
        assert ("set-cookie" in (await visitor.get("/account")).headers) is is_lasting
    person = newcomer(service)
    await sign_in(person, stays="true")
    secret = person.client.cookies[COOKIE]
    for minutes, is_renewed in ((0, False), (1, True), (0, False), (60, True)):
        service.clock.advance(60 * minutes)
        cookies = cookies_of(await person.get("/pets"))
        assert (COOKIE in cookies) is is_renewed
        if is_renewed:
            assert cookies[COOKIE].startswith(f"{secret}; ")
    service.clock.advance(60)
    refresh = await person.client.get("/console/pets", headers={"Console-Refresh": "1"})
    assert "set-cookie" not in refresh.headers
    left = await person.post("/sign-out")
    assert left.headers.get_list("set-cookie")[0].endswith("; Max-Age=0")
    assert len(left.headers.get_list("set-cookie")) == 1


async def test_over_https_the_cookie_is_bound_to_the_host(database: Path) -> None:
    async with running_service(database, public_url="https://shop.example") as service:
        issued = await service.issue()
        signed = await newcomer(service).post("/sign-in", key=issued.token)
        cookie = cookies_of(signed)[f"__Host-{COOKIE}"]
        assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict; Secure")
        value = cookie.partition(";")[0]
        for name, status in ((f"__Host-{COOKIE}", 200), (COOKIE, 303)):
            shown = await bearer(service, value, name).get("/account")
            assert shown.status_code == status


async def test_the_cookie_is_found_at_any_position(staff: Visitor) -> None:
    cookie = f"{COOKIE}={staff.client.cookies[COOKIE]}"
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
        ("; ".join([beside] * 20 + [cookie]), 200),
    ]:
        staff.client.headers["cookie"] = sent
        assert (await staff.get("/account")).status_code == status, sent


async def test_a_session_ends_on_the_server_and_is_never_taken_over(service: Service) -> None:
    person = await person_at(service, stays=True)
    secret = person.client.cookies[COOKIE]
    left = await person.post("/sign-out")
    location = "/console/sign-in?signed-out=true"
    assert (left.status_code, left.headers["location"]) == (303, location)
    assert "You are signed out." in words(await person.client.get(location))
    assert "You are signed out." not in words(await person.get("/sign-in"))
    assert "Max-Age=0" in cookies_of(left)[COOKIE]
    assert left.headers["cache-control"] == "no-store"
    assert not await is_signed_in(bearer(service, secret))
    assert (await sign_in(person, stays="true")).status_code == 303
    assert not await is_signed_in(bearer(service, secret))


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


CHROME = "(KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"


@pytest.mark.parametrize(
    ("device", "agent"),
    [
        *(("", ""), ("", "curl/8.5.0"), ("", "<script>alert(1)</script>")),
        *(("Linux", "Something (Linux)"), ("Firefox", "Firefox/1")),
        ("Chrome on Windows", f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME}"),
        ("Edge on Windows", f"Mozilla/5.0 (Windows NT 10.0) {CHROME} Edg/140.0"),
        ("Chrome on ChromeOS", f"Mozilla/5.0 (X11; CrOS x86_64) {CHROME}"),
        ("Opera on Mac", f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {CHROME} OPR/120"),
        ("Safari on iPhone", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Safari/604.1"),
        ("Chrome on iPad", "Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) CriOS/140 Safari/604.1"),
        ("Firefox on iPhone", "Mozilla/5.0 (iPhone; like Mac OS X) FxiOS/140 Safari/605"),
        ("Samsung Internet on Android", "(Linux; Android 14) SamsungBrowser/28.0 Chrome/130.0"),
        ("Firefox on Linux", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"),
    ],
)
def test_a_device_is_named_in_a_few_words(device: str, agent: str) -> None:
    assert device_of(http_request("GET", b"/", [(b"user-agent", agent.encode())])) == device


# Guessing


async def test_wrong_passwords_are_limited_by_login_and_network(shop: Service) -> None:
    statuses = [await sign_in_from(shop, "192.0.2.1") for _ in range(11)]
    assert statuses == [401] * 10 + [429]
    # The right one, too: else guessing could continue.
    assert await sign_in_from(shop, "192.0.2.1", password=PASSWORD) == 429
    assert await sign_in_from(shop, "192.0.2.1", login="ada@shop.example") == 401
    assert await sign_in_from(shop, "192.0.2.2", password=PASSWORD) == 303
    shop.clock.advance(60)
    assert await sign_in_from(shop, "192.0.2.1", password=PASSWORD) == 303
    # The page tells when to try again, and keeps the form.
    for _ in range(11):
        refused = await sign_in(newcomer(shop), password=WRONG_PASSWORD, next="/orders")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    told = "The limit of wrong passwords for this login, 10 requests a minute, is reached: wait 60"
    assert told in words(refused)
    assert 'name="next" value="/orders"' in refused.text
    # Addresses of one IPv6 network count together.
    statuses = [await sign_in_from(shop, f"2001:db8:0:{n:x}::1") for n in range(11)]
    assert statuses[-1] == 429
    assert await sign_in_from(shop, "2001:db8:1::1", password=PASSWORD) == 303
    # At once, there are as many as one after another.
    statuses = await asyncio.gather(*(sign_in_from(shop, "192.0.2.3") for _ in range(30)))
    assert sorted(statuses) == [401] * 10 + [429] * 20
    # A text that is too long for a login counts by its beginning, and one that no password has for
    # no login; right passwords cost nothing.
    statuses = [await sign_in_from(shop, "192.0.2.4", "x" * 65 + str(n)) for n in range(11)]
    assert statuses == [401] * 10 + [429]
    statuses = [await sign_in_from(shop, "192.0.2.5", LOGIN, "short") for _ in range(30)]
    statuses += [await sign_in_from(shop, "192.0.2.5", LOGIN, PASSWORD) for _ in range(12)]
    statuses += [await sign_in_from(shop, "192.0.2.5") for _ in range(11)]
    assert statuses == [401] * 30 + [303] * 12 + [401] * 10 + [429]


async def test_beyond_its_limit_a_network_guesses_no_password(shop: Service) -> None:
    """Also not with another login at each attempt, nor from another subnet of a subscriber."""
    for network in ("192.0.2.1", "2001:db8:1:{:x}::1"):
        guesses = [
            sign_in_from(shop, network.format(n), login=f"{n}@shop.example") for n in range(60)
        ]
        assert {await each for each in guesses} == {401}
        address = network.format(0xFFFF)
        assert await sign_in_from(shop, address, password=PASSWORD) == 429
    assert await sign_in_from(shop, "192.0.2.2", password=PASSWORD) == 303
    assert await sign_in_from(shop, "2001:db8:2::1", password=PASSWORD) == 303


async def test_a_browser_that_knows_the_password_is_not_kept_out(shop: Service) -> None:
    """Also not by a colleague behind the same address, whose browser knows only the own one."""
    await add_with_password(shop, login="ada@shop.example")
    grace, insider = newcomer(shop), newcomer(shop)
    assert (await sign_in(grace)).status_code == 303
    await grace.post("/sign-out")
    assert (await sign_in(insider, "ada@shop.example")).status_code == 303
    for _ in range(10):
        await sign_in(insider, password=WRONG_PASSWORD)
    assert (await sign_in(insider)).status_code == 429
    assert (await sign_in(newcomer(shop))).status_code == 429
    assert (await sign_in(insider, "ada@shop.example")).status_code == 303
    assert (await sign_in(grace)).status_code == 303
    # What such a browser may try is limited as well.
    statuses = [(await sign_in(grace, password=WRONG_PASSWORD)).status_code for _ in range(11)]
    assert statuses == [401] * 10 + [429]


async def test_many_browsers_that_know_one_login_delay_no_other_login(shop: Service) -> None:
    await add_with_password(shop, login="ada@shop.example")
    served: list[str] = []

    async def in_turn(visitor: Visitor, login: str, password: str) -> None:
        await sign_in(visitor, login, password)
        served.append(login)

    grace, *insiders = [newcomer(shop) for _ in range(40)]
    assert (await sign_in(grace)).status_code == 303
    for each in insiders:
        assert (await sign_in(each, "ada@shop.example")).status_code == 303
    await grace.post("/sign-out")
    crowd = [in_turn(each, "ada@shop.example", WRONG_PASSWORD) for each in insiders]
    await asyncio.gather(*crowd, in_turn(grace, LOGIN, PASSWORD))
    assert served.index(LOGIN) < len(insiders) / 2


async def test_the_cookie_of_a_known_browser_signs_nobody_in(shop: Service) -> None:
    person = newcomer(shop)
    known, attributes = cookies_of(await sign_in(person))["petstore_known"].split("; ", 1)
    assert attributes == "Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
    assert LOGIN not in known
    await person.post("/sign-out")
    assert person.client.cookies["petstore_known"] == known
    for name in ("petstore_known", COOKIE):
        assert not await is_signed_in(bearer(shop, known, name))


async def test_too_many_at_once_or_no_database_is_told_and_charges_nobody(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = shop.app.services.admission.passwords
    monkeypatch.setattr(turns, "_seconds", 0)
    with await turns.take("a"), await turns.take("b"):
        for _ in range(12):
            refused = await sign_in(newcomer(shop))
            assert refused.status_code == 503
    assert "too busy now" in words(refused)
    assert "database" not in words(refused)
    assert refused.headers["retry-after"] == "1"
    assert f'value="{LOGIN}"' in refused.text
    monkeypatch.undo()
    await shop.store.close()
    assert (await newcomer(shop).get("/sign-in")).status_code == 200
    for _ in range(12):
        assert (await sign_in(newcomer(shop))).status_code == 503
    await shop.store.open()
    assert (await sign_in(newcomer(shop))).status_code == 303


async def test_thousands_of_wrong_passwords_keep_nobody_out(shop: Service) -> None:
    """From as many addresses, while a person who knows hers signs in at once, from anywhere."""
    grace, stays = newcomer(shop), newcomer(shop)
    assert (await sign_in(stays, stays="true")).status_code == 303
    assert (await sign_in(grace)).status_code == 303
    await grace.post("/sign-out")
    addresses = [f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(2_000)]
    statuses = set()
    for start in range(0, len(addresses), 500):
        guesses = [
            asyncio.create_task(sign_in_from(shop, address))
            for address in addresses[start : start + 500]
        ]
        await asyncio.sleep(0)
        assert (await sign_in(grace)).status_code == 303
        statuses |= {*await asyncio.gather(*guesses)}
        if start % 1_000 == 0:
            # A new browser gets in as soon as the crowd is served.
            assert await sign_in_from(shop, f"192.0.2.{start // 1_000}", password=PASSWORD) == 303
            await grace.post("/sign-out")
            shop.clock.advance(60)
    assert statuses <= {401, 503}
    # The crowd has begun no session, so none of Grace's was pushed out.
    assert await is_signed_in(stays)
    rows = await shop.store.read(next(do("SELECT count(*) FROM console_sessions")))
    assert rows[0][0] < 100


async def test_the_log_names_the_caller_and_no_login_or_secret(database: Path) -> None:
    async with running_service(database) as service:
        issued = await service.issue()
        await newcomer(service).post("/sign-in", key="wrong-key")
        owner, person = newcomer(service), newcomer(service)
        await owner.post("/sign-in", key=issued.token)
        person_id = await add_with_password(service)
        await sign_in(person, password=WRONG_PASSWORD)
        await sign_in(person)
        await person.get("/pets/7", name="secret-name")
        await person.get("/secret-path")
    log = service.log.getvalue().decode()
    digest = blake2b(LOGIN.encode(), digest_size=4).hexdigest()
    named = ("person", "key", "login", "route", "status")
    lines = [[json.loads(line).get(name) for name in named] for line in log.splitlines()]
    assert lines == [
        [None, None, None, "/console/sign-in", 401],
        [None, issued.id, None, "/console/sign-in", 303],
        [None, None, digest, "/console/sign-in", 401],
        [person_id, None, None, "/console/sign-in", 303],
        [person_id, None, None, "/console/pets/{petId}", 404],
        [person_id, None, None, None, 404],
    ]
    cookies = [*owner.client.cookies.values(), *person.client.cookies.values()]
    assert len(cookies) == 3
    texts = ("wrong-key", issued.token, LOGIN, PASSWORD, WRONG_PASSWORD, "secret-")
    assert not [text for text in (*texts, *cookies) if text in log]


async def poll(visitor: Visitor, after: str = "") -> httpx.Response:
    """Wait for changes of pets after a cursor, as the script does; without one, ask for it."""
    query, headers = {"kinds": "pet"}, SAME_ORIGIN | {"Console-Refresh": "1"}
    query |= {"after": after} if after else {}
    return await visitor.client.get("/console/changes", params=query, headers=headers)


@pytest.mark.usefixtures("dogs")
@pytest.mark.each_database
@pytest.mark.parametrize("what", ["disabled", "role", "password", "device"])
async def test_a_long_poll_ends_with_its_session_and_delivers_nothing(
    service: Service, what: str
) -> None:
    person = await person_at(service)
    colleague, admin = newcomer(service), await signed_in(service)
    assert (await sign_in(colleague)).status_code == 303
    waiting = asyncio.create_task(poll(person, (await poll(person)).json()["cursor"]))
    await eventually(lambda: service.app.services.feed.waiting == 1)
    store, clock = service.store, service.clock
    if what == "disabled":
        await alter(store, clock, person.key_id, state="disabled")
    elif what == "role":
        # The session goes on, and so does the poll of what the new role may see.
        await alter(store, clock, person.key_id, role="viewer")
    elif what == "password":
        changed = await colleague.post(
            "/account/password", current=PASSWORD, password=OTHER_PASSWORD
        )
        assert changed.status_code == 303
    else:
        assert (await colleague.post("/account/devices/end-others")).status_code == 303
    if what != "role":
        response = await asyncio.wait_for(waiting, 20)  # without an event, and long before its end
        assert response.status_code == 401
    await admin.submit("/pets", name="Bella", categoryId="1")
    if what == "role":
        response = await asyncio.wait_for(waiting, 20)
        assert response.json()["resources"] == ["pet/1"]
        assert (await person.post("/pets", name="Rex", categoryId="1")).status_code == 403
