"""The pages of people, for administrators."""

import re
from functools import partial

import pytest

from petstore.databases.contract import Statement
from petstore.people.store import find_person
from support.page_forms import buttons_of, form_of, form_to, press, succeed
from support.people import add, add_active, alter
from support.races import just_before_a_write
from support.service import Service
from support.stores import do
from support.visitor import Visitor, signed_in_again, signed_in_person, words

pytestmark = pytest.mark.anyio

GRACE = {"name": "Grace Hopper", "login": "grace@shop.example", "role": "clerk"}
LINK = re.compile(r"http://petstore\.test/console/invitation/([\w-]+)<")


@pytest.fixture
async def ada(service: Service) -> Visitor:
    """An administrator at the console, who is person 1."""
    return await signed_in_person(service, login="ada@shop.example")


async def person_id_of(service: Service, login: str = "grace@shop.example") -> int:
    sql = "SELECT id FROM people WHERE login = ?1"
    ((person_id,),) = await service.store.read(Statement(sql, (login,)))
    return int(person_id)


async def test_the_link_of_a_person_shows_once(service: Service, ada: Visitor) -> None:
    page = await press(ada, await ada.get("/people/new"), "Add and get the link", **GRACE)
    assert page.status_code == 201
    (secret,) = LINK.findall(page.text)
    assert "Give this link only to Grace Hopper" in words(page)
    assert "until 4 Dec 2026, 12:00" in words(page)
    assert page.headers["Cache-Control"] == "no-store"
    person = await find_person(service.store, await person_id_of(service), None)
    assert (person.name, person.login, person.role) == tuple(GRACE.values())
    for path in ("/people", f"/people/{person.id}"):
        assert secret not in (await ada.get(path)).text
    assert secret not in service.log.getvalue().decode()


async def test_a_form_sent_twice_adds_one_person_and_shows_the_link_once(
    service: Service, ada: Visitor
) -> None:
    form = form_to(await ada.get("/people/new"), "/people").fields | GRACE
    await ada.post("/people", **form)
    refused = await ada.post("/people", **form)
    assert (await ada.get("/people")).text.count("Grace Hopper") == 1
    assert refused.status_code == 409
    assert "and showed the link; invite them again for another" in words(refused)
    assert not LINK.search(refused.text)
    person_id = await person_id_of(service)
    once = form_of(await ada.get(f"/people/{person_id}"), "Create invitation link").fields
    await ada.post(f"/people/{person_id}/invite", **once)
    refused = await ada.post(f"/people/{person_id}/invite", **once)
    assert refused.status_code == 409
    assert "and showed the link; invite them again for another" in words(refused)


async def test_people_are_listed_with_role_state_and_last_use(
    service: Service, ada: Visitor
) -> None:
    for number in range(50):
        await add(service.store, service.clock, role="manager", login=f"grace{number}")
    first = await ada.get("/people")
    assert "Ada ada@shop.example Administrator active" in words(first)
    assert "Grace grace0 Manager invited never" in words(first)
    (more,) = re.findall(r'<a href="/console/people\?cursor=(.*?)" rel="next"', first.text)
    assert "grace49" in (await ada.get("/people", cursor=more)).text


@pytest.mark.parametrize(
    ("is_active", "button", "told"),
    [
        (True, "Create reset link", "The current password works until the link is used."),
        (False, "Create invitation link", "can then sign in as grace@shop.example"),
    ],
)
async def test_a_link_sets_a_password(
    service: Service, ada: Visitor, *, is_active: bool, button: str, told: str
) -> None:
    make = add_active if is_active else add
    await make(service.store, service.clock)
    shown = await press(ada, await ada.get("/people/2"), button)
    assert shown.status_code == 200
    assert LINK.search(shown.text)
    assert told in words(shown)
    assert ("Add another person" in words(shown)) != is_active


async def test_a_change_is_undone_and_redone(service: Service, ada: Visitor) -> None:
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
    await succeed(ada, undone, "Redo")
    assert await find_person(service.store, before.id, None) == after


@pytest.mark.parametrize("is_late", [False, True])
async def test_using_the_console_causes_no_conflict(
    service: Service, ada: Visitor, *, is_late: bool
) -> None:
    person = await add_active(service.store, service.clock)
    path = f"/people/{person.id}"
    form = form_to(await ada.get(path), path).fields
    seen = do("UPDATE callers SET seen_at = ?1 WHERE id = ?2", service.clock(), person.id)
    use = partial(service.store.write, seen)
    if is_late:
        just_before_a_write(service.store, use)
    else:
        await use()
    changed = await ada.submit(path, **form | {"name": "Grace H."})
    assert "Grace H. is changed." in words(changed)


async def test_a_conflict_shows_both_changes(service: Service, ada: Visitor) -> None:
    person = await add_active(service.store, service.clock)
    path = f"/people/{person.id}"
    form = form_to(await ada.get(path), path).fields
    eve = await signed_in_person(service, name="Eve", login="eve")
    await succeed(eve, await eve.get(path), "Save", name="Hopper", role="viewer")
    service.clock.advance(61)
    conflict = await ada.post(path, **form | {"role": "manager"})
    assert conflict.status_code == 412
    assert "Another user changed this person while you were looking at it." in words(conflict)
    assert (
        "Name: Grace → Hopper. Eve changed the name a minute ago."
        " Role: clerk → viewer, and you want manager. Eve changed the role a minute ago."
    ) in words(conflict)
    await succeed(ada, conflict, "Save mine anyway")
    after = await find_person(service.store, person.id, None)
    assert (after.name, after.role) == ("Hopper", "manager")


async def test_the_last_administrator_stays(ada: Visitor) -> None:
    path = f"/people/{ada.key_id}"
    page = await ada.get(path)
    assert "This is you." in words(page)
    assert "Set a password under" not in words(page)
    for refused in (
        await press(ada, page, "Save", role="clerk"),
        await press(ada, page, "Remove access"),
    ):
        assert refused.status_code == 409
        assert (
            "You are the last administrator. First make another person with a password an"
            " administrator."
        ) in words(refused)


async def test_a_disabled_person_is_out_at_once_and_can_be_enabled_again(
    service: Service, ada: Visitor
) -> None:
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
    page = await ada.get(path)
    await succeed(ada, page, "Restore access")
    assert (await find_person(service.store, person.id, None)).state == "active"
    assert (await grace.get("/pets")).status_code == 303


async def test_an_administrator_who_was_just_demoted_changes_nothing(
    service: Service, ada: Visitor
) -> None:
    await add_active(service.store, service.clock, role="administrator")
    await alter(service.store, service.clock, ada.key_id, role="manager")
    assert (await ada.post("/keys", name="Till", plan="free")).status_code == 403
    assert (await ada.post("/people", **GRACE)).status_code == 403


async def test_nobody_is_offered_a_password_link_for_themselves(ada: Visitor) -> None:
    own = (await ada.get(f"/people/{ada.key_id}")).text
    assert "/invite" not in own
    refused = await ada.post(f"/people/{ada.key_id}/invite", once="1")
    assert refused.status_code == 403
    assert "change your password there" in words(refused)


async def test_an_administrator_signs_a_person_out_on_one_device(
    service: Service, ada: Visitor
) -> None:
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
