"""The pages of people, of one's own account, and of an invitation."""

import asyncio
import re
from functools import partial
from pathlib import Path

import pytest

from petstore.clock import DAY, SECOND
from petstore.keys.model import Scope
from petstore.people.store import Added, find_person
from support.cases import case
from support.page_forms import buttons_of, form_of, form_to, press, succeed
from support.passwords import (
    LOGIN,
    OTHER_PASSWORD,
    PASSWORD,
    WRONG_PASSWORD,
    add_with_password,
    is_signed_in,
    person_at,
    sign_in,
)
from support.people import add, add_active, alter, invite
from support.races import just_before_a_write
from support.service import Service, running_service
from support.stores import do
from support.visitor import (
    Visitor,
    newcomer,
    owner_of_key,
    signed_in,
    signed_in_again,
    signed_in_person,
    words,
)

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("cheap_passwords")]

GRACE = {"name": "Grace Hopper", "login": "grace@shop.example", "role": "clerk"}
LINK = re.compile(r"http://petstore\.test/console/invitation/([\w-]+)<")


async def test_a_person_is_added_and_listed_and_the_link_shown_once(
    service: Service, ada: Visitor
) -> None:
    form = form_to(await ada.get("/people/new"), "/people").fields | GRACE
    page, again = [await ada.post("/people", **form) for _ in range(2)]
    assert page.status_code == 201
    (secret,) = LINK.findall(page.text)
    assert "Give this link only to Grace Hopper" in words(page)
    assert "until 4 Dec 2026, 12:00" in words(page)
    assert "can then sign in as grace@shop.example" in words(page)
    assert "Add another person" in words(page)
    assert page.headers["Cache-Control"] == "no-store"
    listed = await ada.get("/people")
    assert listed.text.count("Grace Hopper") == 1
    person = await find_person(service.store, 2, None)
    assert (person.name, person.login, person.role) == tuple(GRACE.values())
    path = f"/people/{person.id}"
    shown = await ada.get(path)
    once = form_of(shown, "Create invitation link").fields
    _, invited_again = [await ada.post(f"{path}/invite", **once) for _ in range(2)]
    for refused in (again, invited_again):
        assert refused.status_code == 409
        assert "and showed the link; invite them again for another" in words(refused)
    assert not [each for each in (again, listed, shown, invited_again) if secret in each.text]
    assert secret not in service.log.getvalue().decode()
    for number in range(49):
        await add(service.store, service.clock, role="manager", login=f"grace{number}")
    first = await ada.get("/people")
    assert "Ada login-1 Administrator active" in words(first)
    assert "Grace Hopper grace@shop.example Clerk invited never" in words(first)
    (more,) = re.findall(r'<a href="/console/people\?cursor=(.*?)" rel="next"', first.text)
    assert "grace48" in (await ada.get("/people", cursor=more)).text


async def test_a_change_is_undone_and_redone_and_a_conflict_shows_both_changes(
    service: Service, ada: Visitor
) -> None:
    before = await add_active(service.store, service.clock)
    path = f"/people/{before.id}"
    wanted = {"name": "Grace H.", "login": "hopper", "role": "manager"}
    changed = await succeed(ada, await ada.get(path), "Save", **wanted)
    assert "Grace H. is changed." in words(changed)
    after = await find_person(service.store, before.id, None)
    assert (after.name, after.login, after.role) == tuple(wanted.values())
    undone = await succeed(ada, changed, "Undo")
    assert "Grace is as it was before." in words(undone)
    assert await find_person(service.store, before.id, None) == before
    # That the person uses the console meanwhile is no conflict.
    seen = do("UPDATE callers SET seen_at = ?1 WHERE id = ?2", service.clock(), before.id)
    just_before_a_write(service.store, partial(service.store.write, seen))
    await succeed(ada, undone, "Redo")
    person = await find_person(service.store, before.id, None)
    assert (person.name, person.login, person.role) == tuple(wanted.values())
    form = form_to(await ada.get(path), path).fields
    eve = await signed_in_person(service, name="Eve", login="eve")
    await succeed(eve, await eve.get(path), "Save", name="Hopper", role="viewer")
    service.clock.advance(61)
    conflict = await ada.post(path, **form | {"role": "clerk"})
    assert conflict.status_code == 412
    assert "Another user changed this person while you were looking at it." in words(conflict)
    assert (
        "Name: Grace H. → Hopper. Eve changed the name a minute ago."
        " Role: manager → viewer, and you want clerk. Eve changed the role a minute ago."
    ) in words(conflict)
    await succeed(ada, conflict, "Save mine anyway")
    after = await find_person(service.store, person.id, None)
    assert (after.name, after.role) == ("Hopper", "clerk")
    page, other = await ada.get(path), alter(service.store, service.clock, person.id, name="G.")
    just_before_a_write(service.store, lambda: other)
    assert (await press(ada, page, "Save", name="Grace")).status_code == 412


async def test_the_last_administrator_stays_and_invites_others_only(ada: Visitor) -> None:
    path = f"/people/{ada.key_id}"
    page = await ada.get(path)
    assert "This is you." in words(page)
    for refused in (
        await press(ada, page, "Save", role="clerk"),
        await press(ada, page, "Remove access"),
    ):
        assert refused.status_code == 409
        assert "Person 1 is the last active administrator: make another" in words(refused)
    assert "/invite" not in page.text
    refused = await ada.post(f"{path}/invite", once="1")
    assert refused.status_code == 403
    assert "change your password there" in words(refused)


async def test_a_disabled_person_is_out_until_enabled_again(service: Service, ada: Visitor) -> None:
    person = await add_active(service.store, service.clock)
    grace = await signed_in_again(service, person.id)
    assert (await grace.get("/pets")).status_code == 200
    path = f"/people/{person.id}"
    disabled = await succeed(ada, await ada.get(path), "Remove access")
    assert "Grace no longer has access, and is signed out everywhere." in words(disabled)
    assert (await grace.get("/pets")).status_code == 303
    assert "You were signed out" in words(await grace.get("/sign-in"))
    assert "Remove access" not in buttons_of(disabled)
    assert "Create reset link" not in buttons_of(disabled)
    refused = await ada.post(f"{path}/invite")
    assert refused.status_code == 409
    assert "Person 2 is disabled; enable the account first" in words(refused)
    enabled = await succeed(ada, disabled, "Undo")
    assert "Grace has access again." in words(enabled)
    assert (await find_person(service.store, person.id, None)).state == "active"
    await succeed(ada, enabled, "Undo")
    await succeed(ada, await ada.get(path), "Restore access")
    assert (await find_person(service.store, person.id, None)).state == "active"
    assert (await grace.get("/pets")).status_code == 303


async def test_an_administrator_ends_one_device_of_a_person(service: Service, ada: Visitor) -> None:
    person = await add_active(service.store, service.clock)
    first, second = [await signed_in_again(service, person.id) for _ in range(2)]
    path = f"/people/{person.id}"
    service.clock.advance(120)
    await second.get("/pets")  # the last used comes first
    page = await ada.get(path)
    assert "(this one)" not in page.text
    newest, oldest = re.findall(r'name="device" value="(\d+)"', page.text)
    for _ in range(2):
        ended = await ada.submit(f"{path}/end-device", device=oldest)
        assert "That device is signed out." in words(ended)
    assert (await first.get("/pets")).status_code == 303
    assert (await second.get("/pets")).status_code == 200
    assert re.findall(r'name="device" value="(\d+)"', (await ada.get(path)).text) == [newest]
    assert (await ada.post("/people/99/end-device", device=newest)).status_code == 404


@pytest.fixture
async def grace(service: Service) -> Visitor:
    return await person_at(service)


async def phone_of(service: Service) -> Visitor:
    """Return Grace at another browser."""
    phone = newcomer(service)
    phone.client.headers["User-Agent"] = "Mozilla/5.0 (Android 15; Mobile; rv:140.0) Firefox/140.0"
    assert (await sign_in(phone, stays="true")).status_code == 303
    return phone


async def test_the_owner_of_a_key_has_an_account_without_a_password(service: Service) -> None:
    scopes, networks = frozenset[Scope]({"pets:read"}), ("127.0.0.0/8",)
    owner = await owner_of_key(service, name="<i>", scopes=scopes, allowed_networks=networks)
    again = newcomer(service)
    assert (await again.post("/sign-in", key=owner.token)).status_code == 303
    page = await owner.get("/account")
    assert f"Key<i> (#{owner.key_id}) Networks127.0.0.0/8 Token expiresnever Permissions" in words(
        page
    )
    assert owner.token not in page.text
    assert 'type="password"' not in page.text
    typed = {"current": PASSWORD, "password": OTHER_PASSWORD}
    assert (await owner.post("/account/password", **typed)).status_code == 404
    await succeed(owner, page, "Sign out everywhere else")
    assert [await is_signed_in(each) for each in (owner, again)] == [True, False]


async def test_a_password_is_changed_with_the_old_one(service: Service) -> None:
    grace = await person_at(service, stays=True)
    phone, before = await phone_of(service), grace.client.cookies["petstore_console"]
    page = await grace.get("/account")
    service.clock.advance(61)  # so that the cookie of the session would be renewed
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


async def test_a_password_that_cannot_be_set_is_refused_and_the_current_one_not_guessed(
    service: Service, grace: Visitor
) -> None:
    page, thief = await grace.get("/account"), await phone_of(service)
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
    service.clock.advance(60)
    wrong = {"current": WRONG_PASSWORD, "password": OTHER_PASSWORD}
    statuses = [
        (await press(thief, page, "Change the password", **wrong)).status_code for _ in range(11)
    ]
    assert statuses == [400] * 10 + [429]
    right = wrong | {"current": PASSWORD}
    assert (await press(thief, page, "Change the password", **right)).status_code == 429
    # The owner still can, and that ends the thief's session.
    assert (await press(grace, page, "Change the password", **right)).status_code == 303
    assert not await is_signed_in(thief)


async def test_of_two_changes_sent_at_once_one_counts_and_none_sent_later_is_kept(
    service: Service, grace: Visitor
) -> None:
    page, phone = await grace.get("/account"), await phone_of(service)
    visitors = (grace, phone)
    sent = [
        press(visitor, page, "Change the password", current=PASSWORD, password=f"{n} {PASSWORD}")
        for n, visitor in enumerate(visitors)
    ]
    responses = await asyncio.gather(*sent)
    assert sorted(response.status_code for response in responses) == [303, 401]
    for visitor, response in zip(visitors, responses, strict=True):
        if response.status_code == 401:
            assert "You are signed out" in words(response)
            typed = {"current": PASSWORD, "password": OTHER_PASSWORD}
            late = await press(visitor, page, "Change the password", **typed)
            assert late.status_code == 401
            assert "fill in the form again" in words(late)
            assert not [hidden for hidden in typed.values() if hidden in late.text]


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
    for sent, changed in (
        *((path, {"role": "manager"}), (path, {"login": "grace"})),
        *((f"{path}/invite", {}), ("/people", wanted)),
    ):
        opened = form_of(await ada.get(path), "Save").fields if sent == path else {}
        typed = opened | changed
        for current in ("", WRONG_PASSWORD):
            refused = await ada.post(sent, **typed | {"current": current})
            assert refused.status_code == 400
            assert "Your own password: this is not your password" in words(refused)
        accepted = await ada.post(sent, **typed | {"current": PASSWORD})
        assert accepted.status_code in (200, 201, 303), words(accepted)
    late = newcomer(service)
    kept = await late.post(path, role="manager", current=PASSWORD)
    assert PASSWORD not in kept.text


@pytest.fixture
async def invited(service: Service) -> Added:
    return await add(service.store, service.clock)


def path_of(invited: Added) -> str:
    return f"/invitation/{invited.secret}"


async def test_the_page_asks_the_person_for_a_password(
    service: Service, invited: Added, ada: Visitor
) -> None:
    visitor = newcomer(service)
    for method in ("GET", "HEAD", "GET"):  # opening it does not use it up
        page = await visitor.client.request(method, f"/console{path_of(invited)}")
        assert page.status_code == 200
        assert "set-cookie" not in page.headers
    assert "Welcome, Grace" in words(page)
    assert 'value="true" checked' not in page.text
    form = form_of(page, "Set the password")
    assert form.path == path_of(invited)
    assert form.fields["login"] == LOGIN
    assert 'spellcheck="false" readonly' in page.text
    assert 'autocomplete="new-password"' in page.text
    told = "You are signed in as Ada. This is the link of Grace."
    assert told in words(await ada.get(path_of(invited)))
    own = await invite(service.store, service.clock, ada.key_id)
    assert "You are signed in as" not in words(await ada.get(path_of(own)))


@pytest.mark.parametrize("stays", [True, False])
async def test_a_person_sets_the_password_and_is_signed_in(
    service: Service, invited: Added, *, stays: bool
) -> None:
    visitor, others = newcomer(service), {"stays": "true"} if stays else {}
    # One that cannot be is refused, and the link works on.
    for password, told in (("", "expected 10 to 200 characters"), ("password123", "most common")):
        refused = await visitor.post(path_of(invited), password=password, **others)
        assert refused.status_code == 400
        assert ('value="true" checked' in refused.text) is stays
        assert re.search(f"Password: .*{told}", words(refused))
        assert 'aria-invalid="true"' in refused.text
    accepted = await visitor.post(path_of(invited), password=PASSWORD, **others)
    assert (accepted.status_code, accepted.headers["location"]) == (303, "/console")
    led = await visitor.get("")
    assert led.headers["location"] == "/console/today"
    told = "Your password is set. From now on you sign in with it and your login."
    assert told in words(await visitor.get("/today"))
    _, session, known = accepted.headers.get_list("set-cookie")
    assert ("Max-Age" in session) is stays
    assert known.startswith("petstore_known=")
    assert LOGIN in words(await visitor.get("/account"))
    assert (await sign_in(newcomer(service))).status_code == 303


async def test_an_invitation_of_somebody_with_a_password_sets_another(
    service: Service, ada: Visitor
) -> None:
    person = await person_at(service)
    shown = await press(ada, await ada.get(f"/people/{person.key_id}"), "Create reset link")
    assert shown.status_code == 200
    assert "The current password works until the link is used." in words(shown)
    assert "Add another person" not in words(shown)
    assert await is_signed_in(person)
    path, visitor = f"/invitation/{LINK.findall(shown.text)[0]}", newcomer(service)
    page = words(await visitor.get(path))
    assert "Set a new password You are then signed out on every other device." in page
    assert "Welcome" not in page
    assert (await visitor.post(path, password=OTHER_PASSWORD)).status_code == 303
    assert not await is_signed_in(person)
    assert (await sign_in(newcomer(service))).status_code == 401


async def test_the_secret_of_an_invitation_is_in_no_referrer_and_no_log(database: Path) -> None:
    async with running_service(database) as service:
        invited, person = await add(service.store, service.clock), newcomer(service)
        path = path_of(invited)
        opened = await person.get(path)
        assert opened.headers.get_list("referrer-policy") == ["strict-origin"]
        refused = await person.post(path, password="")
        assert refused.headers.get_list("referrer-policy") == ["strict-origin"]
        accepted = await person.post(path, password=PASSWORD)
        page = await person.client.get(accepted.headers["location"], follow_redirects=True)
        assert invited.secret not in f"{page.url} {page.text}"
        history = await service.store.read(next(do("SELECT * FROM events")))
        assert invited.secret not in repr(history)
    log = service.log.getvalue().decode()
    assert invited.secret not in log
    assert log.count('"/console/invitation/{secret}"') == 3


async def test_a_link_waits_for_the_database_sets_one_password_and_has_then_ended(
    service: Service, invited: Added
) -> None:
    visitor, path = newcomer(service), path_of(invited)
    await service.store.close()
    for page in (await visitor.get(path), await visitor.post(path, password=PASSWORD)):
        assert page.status_code == 503
        assert "Wait a moment" in words(page)
        assert page.headers.get_list("referrer-policy") == ["strict-origin"]
    await service.store.open()
    passwords = [f"{PASSWORD} {number}" for number in range(4)]
    sent = [newcomer(service).post(path, password=each) for each in passwords]
    statuses = [response.status_code for response in await asyncio.gather(*sent)]
    assert sorted(statuses) == [303, 404, 404, 404]
    right = [(await sign_in(newcomer(service), LOGIN, each)).status_code for each in passwords]
    assert right == [303 if status == 303 else 401 for status in statuses]
    for ended in (path, f"/invitation/{'x' * 65}"):
        for page in (await visitor.get(ended), await visitor.post(ended, password=OTHER_PASSWORD)):
            assert page.status_code == 404
            assert words(page).startswith("This link has ended It was used already")
            assert "set-cookie" not in page.headers
            assert page.headers.get_list("referrer-policy") == ["strict-origin"]
