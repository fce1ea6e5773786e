"""The page of one's own account."""

import asyncio

import pytest

from petstore.clock import DAY, SECOND
from petstore.databases.contract import read_unit
from petstore.people.store import end_sessions, find_account
from support.cases import case
from support.page_forms import form_to, press, succeed
from support.passwords import (
    LOGIN,
    OTHER_PASSWORD,
    PASSWORD,
    WRONG_PASSWORD,
    add_with_password,
    hash_cheaply,
    person_at,
    sign_in,
)
from support.people import alter
from support.service import Service
from support.visitor import Visitor, newcomer, owner_of_key, signed_in, words

pytestmark = pytest.mark.anyio

FIREFOX = "Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0"


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_cheaply(monkeypatch)


@pytest.fixture
async def grace(service: Service) -> Visitor:
    return await person_at(service)


async def name_of(service: Service, visitor: Visitor) -> str:
    account = await read_unit(service.store, find_account(visitor.key_id))
    return account.caller.name if account else ""


async def is_signed_in(visitor: Visitor) -> bool:
    return (await visitor.get("/account")).status_code == 200


async def phone_of(service: Service) -> Visitor:
    """Return Grace at another browser."""
    phone = newcomer(service)
    phone.client.headers["User-Agent"] = FIREFOX
    assert (await sign_in(phone, stays="true")).status_code == 303
    return phone


# Who has one


async def test_the_owner_of_a_key_has_an_account_without_a_password(service: Service) -> None:
    owner = await owner_of_key(service, name="Till")
    again = newcomer(service)
    assert (await again.post("/sign-in", key=owner.token)).status_code == 303
    page = await owner.get("/account")
    assert f"KeyTill (#{owner.key_id})" in words(page)
    assert 'type="password"' not in page.text
    for path, fields in (
        ("/account", {"name": "Ada"}),
        ("/account/password", {"current": PASSWORD, "password": OTHER_PASSWORD}),
    ):
        assert (await owner.post(path, **fields)).status_code == 404
    await succeed(owner, page, "Sign out everywhere else")
    assert [await is_signed_in(each) for each in (owner, again)] == [True, False]


# The name


async def test_a_person_changes_the_own_name(service: Service, grace: Visitor) -> None:
    changed = await succeed(grace, await grace.get("/account"), "Save", name="Grace Hopper")
    assert "Your name is changed." in words(changed)
    assert 'title="Your account"><bdi>Grace Hopper</bdi>' in changed.text
    back = await succeed(grace, changed, "Undo")
    assert await name_of(service, grace) == "Grace"
    assert "Your name is as it was before." in words(back)


async def test_a_name_that_somebody_else_changed_is_not_overwritten(
    service: Service, grace: Visitor
) -> None:
    page = await grace.get("/account")
    await alter(service.store, service.clock, grace.key_id, name="Grace H.")
    refused = await press(grace, page, "Save", name="Grace Hopper")
    assert refused.status_code == 412
    assert "Another user changed this account" in words(refused)
    assert "you want Grace Hopper" in words(refused)
    assert await name_of(service, grace) == "Grace H."


# The password


async def test_a_password_is_changed_with_the_old_one(service: Service, grace: Visitor) -> None:
    phone, before = await phone_of(service), grace.client.cookies["petstore_console"]
    page = await grace.get("/account")
    changed = await succeed(
        grace, page, "Change the password", current=PASSWORD, password=OTHER_PASSWORD
    )
    assert "Your new password is set." in words(changed)
    assert not await is_signed_in(phone)
    assert "or your password, your key or your access was changed" in words(
        await phone.get("/sign-in")
    )
    assert await is_signed_in(grace)
    assert grace.client.cookies["petstore_console"] != before
    assert (await sign_in(phone)).status_code == 401
    assert (await sign_in(phone, password=OTHER_PASSWORD)).status_code == 303


async def test_a_password_that_cannot_be_set_is_refused(grace: Visitor) -> None:
    page = await grace.get("/account")
    for current, password, told in (
        (WRONG_PASSWORD, OTHER_PASSWORD, "Current password: this is not your password"),
        ("", OTHER_PASSWORD, "Current password: this is not your password"),
        (PASSWORD, "x" * 201, "New password: expected 10 to 200 characters"),
        (PASSWORD, LOGIN, "New password: expected something other than the login"),
    ):
        with case(current, password):
            typed = {"current": current, "password": password}
            refused = await press(grace, page, "Change the password", **typed)
            assert refused.status_code == 400
            assert told in words(refused)
            assert 'aria-invalid="true"' in refused.text
            for hidden in filter(None, {current, password} - {LOGIN}):
                assert hidden not in refused.text
    assert (await sign_in(grace)).status_code == 303


async def test_whoever_found_an_open_console_cannot_guess_the_password(
    service: Service, grace: Visitor
) -> None:
    page, thief = await grace.get("/account"), await phone_of(service)
    wrong = {"current": WRONG_PASSWORD, "password": OTHER_PASSWORD}
    statuses = [
        (await press(thief, page, "Change the password", **wrong)).status_code for _ in range(11)
    ]
    assert statuses == [400] * 10 + [429]
    right = {"current": PASSWORD, "password": OTHER_PASSWORD}
    assert (await press(thief, page, "Change the password", **right)).status_code == 429
    # The owner still can, and that ends the thief's session.
    assert (await press(grace, page, "Change the password", **right)).status_code == 303
    assert not await is_signed_in(thief)


async def test_a_password_sent_too_late_is_not_kept(service: Service, grace: Visitor) -> None:
    page = await grace.get("/account")
    await service.store.write(end_sessions(grace.key_id))
    typed = {"current": PASSWORD, "password": OTHER_PASSWORD}
    late = await press(grace, page, "Change the password", **typed)
    assert late.status_code == 401
    assert "fill in the form again" in words(late)
    for hidden in typed.values():
        assert hidden not in late.text


async def test_of_two_changes_sent_at_once_one_counts(service: Service, grace: Visitor) -> None:
    page, phone = await grace.get("/account"), await phone_of(service)
    sent = [
        press(visitor, page, "Change the password", current=PASSWORD, password=f"{n} {PASSWORD}")
        for n, visitor in enumerate((grace, phone))
    ]
    responses = await asyncio.gather(*sent)
    assert sorted(response.status_code for response in responses) == [303, 401]
    (late,) = [response for response in responses if response.status_code == 401]
    assert "You are signed out" in words(late)


# The devices


async def test_a_person_sees_and_ends_the_own_devices_and_nobody_else_does(
    service: Service, grace: Visitor
) -> None:
    phone, colleague = await phone_of(service), await signed_in(service)
    page = await grace.get("/account")
    assert "Firefox on Android" in words(page)
    assert "(this one)" in words(page)
    forms = page.text.split('name="device" value="')[1:]
    for form in forms:
        await colleague.post("/account/devices/end", device=form.partition('"')[0])
    assert await is_signed_in(phone)
    (of_phone,) = [form for form in forms if "Firefox on Android" in form.partition("</form>")[0]]
    for _ in range(2):
        ended = await grace.submit("/account/devices/end", device=of_phone.partition('"')[0])
        assert "You are signed out there." in words(ended)
        assert "Firefox on Android" not in words(ended)
        assert [await is_signed_in(each) for each in (phone, grace)] == [False, True]
    phone = await phone_of(service)
    ended = await succeed(grace, await grace.get("/account"), "Sign out everywhere else")
    assert "You are signed out everywhere else." in words(ended)
    signed = [await is_signed_in(each) for each in (phone, grace, colleague)]
    assert signed == [False, True, True]


async def test_in_an_old_session_changing_people_needs_the_own_password(service: Service) -> None:
    ada = await person_at(service, stays=True, name="Ada", role="administrator", login="ada")
    clerk = await add_with_password(service)
    path, wanted = f"/people/{clerk}", {"name": "Eve", "login": "eve@shop.example", "role": "clerk"}
    assert 'name="current"' not in (await ada.get(path)).text
    service.clock.advance(DAY / SECOND + 1)
    page = await ada.get(path)
    assert page.text.count('name="current"') == 2  # of the details, and of the link
    assert page.text.count('id="current"') == 1
    for sent, typed in (
        (path, form_to(page, path).fields | {"role": "manager", "login": "grace"}),
        (f"{path}/invite", {}),
        ("/people", wanted),
    ):
        for current in ("", WRONG_PASSWORD):
            refused = await ada.post(sent, **typed | {"current": current})
            assert refused.status_code == 400
            assert "Your own password: this is not your password" in words(refused)
        accepted = await ada.post(sent, **typed | {"current": PASSWORD})
        assert accepted.status_code in (200, 201, 303), words(accepted)
    late = newcomer(service)
    kept = await late.post(path, role="manager", current=PASSWORD)
    assert PASSWORD not in kept.text
