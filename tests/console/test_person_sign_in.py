"""Signing in with a login and a password, and what nobody can do by trying others."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from hashlib import blake2b
from pathlib import Path

import httpx
import pytest

from petstore.clock import DAY, SECOND
from petstore.console.sign_in import device_of
from petstore.databases.contract import Statement, read_unit
from petstore.people.model import Device
from petstore.people.passwords import Passwords
from petstore.people.store import find_session_in_unit, list_devices
from support.passwords import (
    CHEAP,
    LOGIN,
    OTHER_PASSWORD,
    PASSWORD,
    WRONG_PASSWORD,
    add_with_password,
    hash_cheaply,
    person_at,
    sign_in,
)
from support.people import add, alter
from support.service import Service, http_request, running_service
from support.stores import do
from support.visitor import FORM, SAME_ORIGIN, Visitor, newcomer, owner_of_key, signed_in, words
from support.waiting import eventually

pytestmark = pytest.mark.anyio

WRONG = "The login or the password is wrong."


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_cheaply(monkeypatch)


@pytest.fixture
async def shop(database: Path) -> AsyncIterator[Service]:
    """A service that believes a proxy which address a client has, with one person: Grace."""
    async with running_service(database, trusted_proxy=("127.0.0.0/8",)) as service:
        await add_with_password(service)
        yield service


async def sign_in_from(
    service: Service, address: str, login: str = LOGIN, password: str = WRONG_PASSWORD
) -> int:
    """Send the form from an address, with a browser that knows nobody, and return the status."""
    response = await newcomer(service).client.post(
        "/console/sign-in",
        data={"login": login, "password": password},
        headers=SAME_ORIGIN | FORM | {"X-Forwarded-For": address},
    )
    return response.status_code


async def is_signed_in(visitor: Visitor) -> bool:
    return (await visitor.get("/account")).status_code == 200


def bearer(service: Service, secret: str) -> Visitor:
    """Return somebody whose browser has this session and no other cookie."""
    person = newcomer(service)
    person.client.headers["cookie"] = f"petstore_console={secret}"
    return person


def focused(page: str) -> str:
    """Return the one field that has the focus."""
    (field,) = re.findall(r"<input[^>]* autofocus[^>]*>", page)
    return str(field)


def cookies_of(response: httpx.Response) -> dict[str, str]:
    """Return the cookies that a response sets, by their names."""
    lines = response.headers.get_list("set-cookie")
    return dict(line.split("=", 1) for line in lines)


# Right and wrong


@pytest.mark.parametrize(
    ("login", "password"),
    [
        (LOGIN, WRONG_PASSWORD),
        (LOGIN, PASSWORD.upper()),
        (LOGIN, PASSWORD + " "),
        (LOGIN, "short"),
        (LOGIN, ""),
        ("", ""),
        ("nobody@shop.example", PASSWORD),
        ("invited@shop.example", PASSWORD),
        ("disabled@shop.example", PASSWORD),
        ("staging@shop.example", PASSWORD),
        ("x" * 10_000, PASSWORD),
        ("\0", PASSWORD),
    ],
)
async def test_whatever_is_wrong_the_response_is_the_same(
    service: Service, login: str, password: str
) -> None:
    await add_with_password(service)
    await add(service.store, service.clock, login="invited@shop.example")
    disabled = await add_with_password(service, login="disabled@shop.example")
    await alter(service.store, service.clock, disabled, state="disabled")
    await add_with_password(service, login="staging@shop.example", environment="staging")
    expected = await sign_in(newcomer(service), "someone@shop.example", WRONG_PASSWORD)
    refused = await sign_in(newcomer(service), login, password)
    assert refused.status_code == expected.status_code == 401
    assert WRONG in words(refused)
    assert words(refused) == words(expected)
    assert "set-cookie" not in refused.headers
    assert not password.strip() or password not in refused.text


async def test_a_text_that_is_too_long_for_a_login_counts_by_its_beginning(shop: Service) -> None:
    statuses = [await sign_in_from(shop, "192.0.2.9", "x" * 65 + str(n)) for n in range(11)]
    assert statuses == [401] * 10 + [429]


async def test_a_text_that_no_password_has_counts_for_no_login(shop: Service) -> None:
    statuses = [await sign_in_from(shop, "192.0.2.9", LOGIN, "short") for _ in range(30)]
    statuses += [await sign_in_from(shop, "192.0.2.9") for _ in range(11)]
    assert statuses == [401] * 40 + [429]


async def test_the_right_password_signs_in_with_the_login_in_any_case(service: Service) -> None:
    await add_with_password(service)
    visitor = newcomer(service)
    assert 'name="login"' in focused((await visitor.get("/sign-in")).text)
    signed = await sign_in(visitor, f"  {LOGIN.upper()} ", next="/orders")
    assert (signed.status_code, signed.headers["location"]) == (303, "/console/orders")
    assert "Grace" in (await visitor.get("/pets")).text
    assert LOGIN in words(await visitor.get("/account"))


async def test_a_form_that_was_sent_too_late_is_kept_with_a_password_too(service: Service) -> None:
    await add_with_password(service)
    late = await newcomer(service).post("/pets", name="Bella", categoryId="1")
    assert late.status_code == 401
    assert late.text.count('name="typed.name" value="Bella"') == 2  # also in the form of a key
    kept = {"again": "/pets", "typed.name": "Bella", "typed.categoryId": "1"}
    visitor = newcomer(service)
    refused = await sign_in(visitor, password=WRONG_PASSWORD, **kept)
    assert 'name="typed.name" value="Bella"' in refused.text
    again = await sign_in(visitor, **kept)
    assert again.status_code == 200
    assert "Bella" in words(again)
    assert "petstore_console" in visitor.client.cookies


async def test_a_form_of_a_stranger_is_small(service: Service) -> None:
    """Thousands may wait with one for a password."""
    stranger, long = newcomer(service), "x" * 8_100
    assert (await sign_in(stranger, again="/pets", **{"typed.a": long})).status_code == 401
    assert (
        await sign_in(stranger, again="/pets", **{"typed.a": 2 * long + "x" * 300})
    ).status_code == 413
    kept = await stranger.post("/pets", name=long)
    assert f'name="typed.name" value="{long}"' in kept.text
    lost = await stranger.post("/pets", name=long, categoryId="x" * 100)
    assert lost.status_code == 401
    assert "Sign in again, and then fill in the form again." in words(lost)


async def test_a_disabled_person_is_told_nothing_else_than_a_wrong_password(
    service: Service,
) -> None:
    person = await person_at(service)
    await alter(service.store, service.clock, person.key_id, state="disabled")
    assert not await is_signed_in(person)
    assert WRONG in words(await sign_in(newcomer(service)))


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


async def test_the_page_opens_while_the_database_is_unreachable(service: Service) -> None:
    await service.store.close()
    page = await newcomer(service).get("/sign-in")
    assert page.status_code == 200
    await service.store.open()


# The session


async def test_a_session_ends_half_an_hour_after_its_last_use(service: Service) -> None:
    person = await person_at(service)
    stays = newcomer(service)
    assert (await sign_in(stays, stays="true")).status_code == 303
    service.clock.advance(30 * 60)
    assert not await is_signed_in(person)
    for _ in range(3):
        service.clock.advance(29 * DAY / SECOND)
        assert await is_signed_in(stays)
    service.clock.advance(30 * DAY / SECOND)
    assert not await is_signed_in(stays)
    assert "you did nothing here for a while" in words(await stays.get("/sign-in"))


async def test_only_a_session_that_stays_outlives_the_browser(service: Service) -> None:
    await add_with_password(service)
    lasts = f"; Max-Age={30 * DAY // SECOND}"
    for wanted, is_lasting in (({}, False), ({"stays": "true"}, True), ({"stays": "no"}, False)):
        cookies = cookies_of(await sign_in(newcomer(service), **wanted))
        assert (lasts in cookies["petstore_console"]) is is_lasting
        assert "HttpOnly; SameSite=Strict" in cookies["petstore_console"]


async def test_the_cookie_of_a_session_that_stays_is_renewed_by_use(service: Service) -> None:
    person = await person_at(service, stays=True)
    secret = person.client.cookies["petstore_console"]
    for minutes, is_renewed in ((0, False), (1, True), (0, False), (60, True)):
        service.clock.advance(60 * minutes)
        cookies = cookies_of(await person.get("/pets"))
        assert ("petstore_console" in cookies) is is_renewed
        if is_renewed:
            assert cookies["petstore_console"].startswith(f"{secret}; ")
            assert "Max-Age=2592000" in cookies["petstore_console"]
    service.clock.advance(60)
    refresh = await person.client.get("/console/pets", headers={"Console-Refresh": "1"})
    assert "set-cookie" not in refresh.headers
    left = await person.post("/sign-out")
    assert left.headers.get_list("set-cookie")[0].endswith("; Max-Age=0")
    assert len(left.headers.get_list("set-cookie")) == 1


async def test_other_sessions_have_no_lasting_cookie(service: Service) -> None:
    person, key = await person_at(service), await owner_of_key(service)
    for visitor in (person, key):
        service.clock.advance(61)
        assert "set-cookie" not in (await visitor.get("/account")).headers
    stays = newcomer(service)
    signed = await stays.post("/sign-in", key=key.token, stays="true")
    assert "Max-Age" not in signed.headers["set-cookie"]


async def test_a_session_of_before_is_not_taken_over(service: Service) -> None:
    """Session fixation: a secret from elsewhere is never that of the new session."""
    await add_with_password(service)
    thief = await person_at(service, login="thief@shop.example")
    planted = thief.client.cookies["petstore_console"]
    victim = newcomer(service)
    victim.client.cookies.set("petstore_console", planted, domain="petstore.test")
    assert (await sign_in(victim)).status_code == 303
    assert victim.client.cookies["petstore_console"] != planted
    assert LOGIN in words(await victim.get("/account"))
    assert not await is_signed_in(bearer(service, planted))


async def test_another_site_cannot_sign_anybody_in(service: Service) -> None:
    await add_with_password(service)
    refused = await newcomer(service).client.post(
        "/console/sign-in",
        data={"login": LOGIN, "password": PASSWORD},
        headers={"Sec-Fetch-Site": "cross-site"},
    )
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers


async def test_the_secret_of_an_ended_session_works_no_more(service: Service) -> None:
    person = await person_at(service, stays=True)
    secret = person.client.cookies["petstore_console"]
    await person.post("/sign-out")
    assert not await is_signed_in(bearer(service, secret))
    again = await sign_in(person, stays="true")
    assert again.status_code == 303
    assert not await is_signed_in(bearer(service, secret))


async def test_neither_password_nor_session_is_in_the_log(database: Path) -> None:
    async with running_service(database) as service:
        person = await person_at(service)
        secret = person.client.cookies["petstore_console"]
        known = person.client.cookies["petstore_known"]
        await sign_in(newcomer(service), password=WRONG_PASSWORD)
        await person.get("/account")
    log = service.log.getvalue().decode()
    for hidden in (PASSWORD, WRONG_PASSWORD, LOGIN, secret, known):
        assert hidden not in log
    assert f'"person": {person.key_id}' in log or f'"person":{person.key_id}' in log


async def test_a_session_names_its_browser(service: Service) -> None:
    visitor, key = newcomer(service), await service.issue()
    person_id = await add_with_password(service)
    phone = "Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0"
    visitor.client.headers["User-Agent"] = phone
    await sign_in(visitor)
    devices = await devices_of(service, person_id)
    assert "Firefox on Android" in [device.device for device in devices]
    await visitor.post("/sign-in", key=key.token)
    (device,) = await devices_of(service, key.id)
    assert device.device == "Firefox on Android"


async def devices_of(service: Service, caller_id: int) -> list[Device]:
    return await read_unit(service.store, list_devices(caller_id, service.clock()))


CHROME = "(KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"


@pytest.mark.parametrize(
    ("agent", "device"),
    [
        ("", ""),
        ("curl/8.5.0", ""),
        ("<script>alert(1)</script>", ""),
        ("Something (Linux)", "Linux"),
        ("Firefox/1", "Firefox"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME}", "Chrome on Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0) {CHROME} Edg/140.0", "Edge on Windows"),
        (f"Mozilla/5.0 (X11; CrOS x86_64) {CHROME}", "Chrome on ChromeOS"),
        (f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {CHROME} OPR/120", "Opera on Mac"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1",
            "Safari on iPhone",
        ),
        ("Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) CriOS/140 Safari/604.1", "Chrome on iPad"),
        ("Mozilla/5.0 (iPhone; like Mac OS X) FxiOS/140 Safari/605", "Firefox on iPhone"),
        (
            "Mozilla/5.0 (Linux; Android 14) SamsungBrowser/28.0 Chrome/130.0 Safari/537.36",
            "Samsung Internet on Android",
        ),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0", "Firefox on Linux"),
    ],
)
def test_a_device_is_named_in_a_few_words(agent: str, device: str) -> None:
    request = http_request("GET", b"/", [(b"user-agent", agent.encode())])
    assert device_of(request) == device


# Guessing


async def test_wrong_passwords_are_limited_by_login_and_network(shop: Service) -> None:
    statuses = [await sign_in_from(shop, "192.0.2.1") for _ in range(11)]
    assert statuses == [401] * 10 + [429]
    # The right one, too: or somebody could guess on.
    assert await sign_in_from(shop, "192.0.2.1", password=PASSWORD) == 429
    assert await sign_in_from(shop, "192.0.2.1", login="ada@shop.example") == 401
    assert await sign_in_from(shop, "192.0.2.2", password=PASSWORD) == 303
    shop.clock.advance(60)
    assert await sign_in_from(shop, "192.0.2.1", password=PASSWORD) == 303


async def test_addresses_of_one_ipv6_network_count_together(shop: Service) -> None:
    statuses = [await sign_in_from(shop, f"2001:db8:0:{n:x}::1") for n in range(11)]
    assert statuses[-1] == 429
    assert await sign_in_from(shop, "2001:db8:1::1", password=PASSWORD) == 303


async def test_guesses_at_once_are_no_more_than_one_after_another(shop: Service) -> None:
    guesses = (sign_in_from(shop, "192.0.2.1") for _ in range(30))
    statuses = await asyncio.gather(*guesses)
    assert sorted(statuses) == [401] * 10 + [429] * 20


async def test_the_limit_tells_when_to_try_again_and_keeps_the_form(shop: Service) -> None:
    visitor = newcomer(shop)
    for _ in range(11):
        refused = await sign_in(visitor, password=WRONG_PASSWORD, next="/orders")
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "60"
    told = "The limit of wrong passwords for this login, 10 requests a minute, is reached: wait 60"
    assert told in words(refused)
    assert 'name="next" value="/orders"' in refused.text


async def test_right_passwords_cost_nothing(shop: Service) -> None:
    statuses = [await sign_in_from(shop, "192.0.2.1", password=PASSWORD) for _ in range(12)]
    assert set(statuses) == {303}
    assert await sign_in_from(shop, "192.0.2.1") == 401


async def test_a_browser_that_knows_the_password_is_not_kept_out(shop: Service) -> None:
    """Also not by a colleague behind the same address."""
    grace = newcomer(shop)
    assert (await sign_in(grace)).status_code == 303
    await grace.post("/sign-out")
    for _ in range(11):
        status = await sign_in_from(shop, "127.0.0.1")
    assert status == 429
    assert (await sign_in(newcomer(shop))).status_code == 429
    assert (await sign_in(grace)).status_code == 303
    # What such a browser may try is limited as well.
    statuses = [(await sign_in(grace, password=WRONG_PASSWORD)).status_code for _ in range(11)]
    assert statuses[-1] == 429


async def test_a_browser_knows_only_who_has_signed_in_there(shop: Service) -> None:
    await add_with_password(shop, login="ada@shop.example")
    insider = newcomer(shop)
    assert (await sign_in(insider, "ada@shop.example")).status_code == 303
    for _ in range(10):
        await sign_in(insider, LOGIN, WRONG_PASSWORD)
    assert (await sign_in(insider, LOGIN)).status_code == 429
    assert (await sign_in(insider, "ada@shop.example")).status_code == 303


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
    await sign_in(person)
    known = person.client.cookies["petstore_known"]
    for name in ("petstore_known", "petstore_console"):
        thief = newcomer(shop)
        thief.client.headers["cookie"] = f"{name}={known}"
        assert not await is_signed_in(thief)
    assert LOGIN not in known


async def test_the_cookie_of_a_known_browser_lasts_a_year(shop: Service) -> None:
    person = newcomer(shop)
    cookies = cookies_of(await sign_in(person))
    assert cookies["petstore_known"].endswith(
        "; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
    )
    await person.post("/sign-out")
    assert "petstore_known" in person.client.cookies


async def test_beyond_its_limit_a_network_guesses_no_password(shop: Service) -> None:
    """Also not with another login at each attempt, nor from another subnet of a subscriber."""
    person = newcomer(shop)
    assert (await sign_in(person)).status_code == 303
    for network in ("192.0.2.1", "2001:db8:1:{:x}::1"):
        guesses = [
            sign_in_from(shop, network.format(n), login=f"{n}@shop.example") for n in range(60)
        ]
        assert {await each for each in guesses} == {401}
        address = network.format(0xFFFF)
        assert await sign_in_from(shop, address, password=PASSWORD) == 429
    assert await sign_in_from(shop, "192.0.2.2", password=PASSWORD) == 303
    assert await sign_in_from(shop, "2001:db8:2::1", password=PASSWORD) == 303


@pytest.mark.parametrize("by_person", [True, False])
async def test_the_log_names_who_signed_in_or_the_digest_of_the_login(
    database: Path, *, by_person: bool
) -> None:
    async with running_service(database) as service:
        person_id, issued = await add_with_password(service), await service.issue()
        if by_person:
            await sign_in(newcomer(service), password=WRONG_PASSWORD)
            await sign_in(newcomer(service))
        else:
            await newcomer(service).post("/sign-in", key="wrong")
            await newcomer(service).post("/sign-in", key=issued.token)
    lines = [json.loads(line) for line in service.log.getvalue().splitlines()]
    failed, succeeded = (line for line in lines if line.get("route") == "/console/sign-in")
    expected = blake2b(LOGIN.encode(), digest_size=4).hexdigest() if by_person else None
    assert failed.get("login") == expected
    assert failed["person"] is None
    assert "login" not in succeeded
    expected_ids = (person_id, None) if by_person else (None, issued.id)
    assert (succeeded["person"], succeeded["key"]) == expected_ids
    assert LOGIN not in service.log.getvalue().decode()


async def test_when_too_many_wait_the_page_says_so_and_nobody_is_charged(
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


async def test_an_unreachable_database_charges_nobody(shop: Service) -> None:
    await shop.store.close()
    for _ in range(12):
        refused = await sign_in(newcomer(shop))
        assert refused.status_code == 503
    await shop.store.open()
    assert (await sign_in(newcomer(shop))).status_code == 303


async def test_thousands_of_wrong_passwords_keep_nobody_out(shop: Service) -> None:
    """From as many addresses, while a person who knows hers signs in at once, from anywhere."""
    grace = newcomer(shop)
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
    # Nobody of the crowd has begun a session, so none of Grace's was pushed out.
    rows = await shop.store.read(next(do("SELECT count(*) FROM console_sessions")))
    assert rows[0][0] < 100


async def test_no_guess_pushes_out_a_session(shop: Service) -> None:
    person = newcomer(shop)
    await sign_in(person, stays="true")
    for n in range(30):
        await sign_in_from(shop, f"192.0.2.{n}")
    assert await is_signed_in(person)


# Its end, everywhere


async def poll(visitor: Visitor, cursor: str) -> httpx.Response:
    """Wait for changes of pets after a cursor, as the script does."""
    headers = {"Console-Refresh": "1", **SAME_ORIGIN}
    return await visitor.client.get(
        "/console/changes", params={"kinds": "pet", "after": cursor}, headers=headers
    )


async def cursor_of(visitor: Visitor) -> str:
    response = await visitor.client.get("/console/changes?kinds=pet", headers=SAME_ORIGIN)
    return str(response.json()["cursor"])


@pytest.mark.usefixtures("dogs")
@pytest.mark.each_database
@pytest.mark.parametrize("what", ["disabled", "role", "password", "device"])
async def test_a_long_poll_ends_with_its_session_and_delivers_nothing(
    service: Service, what: str
) -> None:
    person = await person_at(service)
    colleague, admin = newcomer(service), await signed_in(service)
    assert (await sign_in(colleague)).status_code == 303
    waiting = asyncio.create_task(poll(person, await cursor_of(person)))
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


@pytest.mark.usefixtures("dogs")
@pytest.mark.each_database
async def test_a_new_role_acts_at_once(service: Service) -> None:
    person = await person_at(service, role="clerk")
    assert (await person.post("/pets", name="Bella", categoryId="1")).status_code == 303
    await alter(service.store, service.clock, person.key_id, role="viewer")
    assert (await person.post("/pets", name="Rex", categoryId="1")).status_code == 403
