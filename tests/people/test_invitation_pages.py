"""The page of an invitation."""

import asyncio
import re
from pathlib import Path

import pytest

from petstore.people.store import Added
from support.page_forms import form_of
from support.passwords import (
    LOGIN,
    OTHER_PASSWORD,
    PASSWORD,
    hash_cheaply,
    person_at,
    sign_in,
)
from support.people import add, alter, invite
from support.service import Service, running_service
from support.stores import do
from support.visitor import Visitor, newcomer, signed_in_person, words

pytestmark = pytest.mark.anyio

BUTTON = "Set the password"


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_cheaply(monkeypatch)


@pytest.fixture
async def invited(service: Service) -> Added:
    return await add(service.store, service.clock)


@pytest.fixture
def visitor(service: Service) -> Visitor:
    return newcomer(service)


def path_of(invited: Added) -> str:
    return f"/invitation/{invited.secret}"


async def test_the_page_asks_the_person_for_a_password(visitor: Visitor, invited: Added) -> None:
    for method in ("GET", "HEAD", "GET"):  # opening it does not use it up
        page = await visitor.client.request(method, f"/console{path_of(invited)}")
        assert page.status_code == 200
        assert "set-cookie" not in page.headers
    assert "Welcome, Grace" in words(page)
    assert 'value="true" checked' not in page.text
    form = form_of(page, BUTTON)
    assert form.path == path_of(invited)
    assert form.fields["login"] == LOGIN
    assert 'spellcheck="false" readonly' in page.text
    assert 'autocomplete="new-password"' in page.text


@pytest.mark.parametrize("stays", [True, False])
async def test_a_person_sets_the_password_and_is_signed_in(
    service: Service, visitor: Visitor, invited: Added, *, stays: bool
) -> None:
    others = {"stays": "true"} if stays else {}
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


async def test_an_invitation_of_somebody_with_a_password_sets_another(service: Service) -> None:
    person = await person_at(service)
    again = await invite(service.store, service.clock, person.key_id)
    assert (await person.get("/account")).status_code == 200
    visitor = newcomer(service)
    page = words(await visitor.get(path_of(again)))
    assert "Set a new password You are then signed out on every other device." in page
    assert "Welcome" not in page
    assert (await visitor.post(path_of(again), password=OTHER_PASSWORD)).status_code == 303
    assert (await person.get("/account")).status_code == 303
    assert (await sign_in(newcomer(service))).status_code == 401


async def test_whoever_opens_the_link_of_somebody_else_is_told_so(
    service: Service, invited: Added
) -> None:
    ada = await signed_in_person(service)
    told = "You are signed in as Ada. This is the link of Grace."
    assert told in words(await ada.get(path_of(invited)))
    own = await invite(service.store, service.clock, ada.key_id)
    assert "You are signed in as" not in words(await ada.get(path_of(own)))


@pytest.mark.parametrize("what", ["used", "expired", "replaced", "disabled", "made up"])
async def test_every_link_that_does_not_work_has_the_same_page(
    service: Service, visitor: Visitor, invited: Added, what: str
) -> None:
    store, clock, path = service.store, service.clock, path_of(invited)
    match what:
        case "used":
            assert (await newcomer(service).post(path, password=PASSWORD)).status_code == 303
        case "expired":
            clock.advance(72 * 60 * 60)
        case "replaced":
            await invite(store, clock, invited.person.id)
        case "disabled":
            await alter(store, clock, invited.person.id, state="disabled")
        case _:
            path = f"/invitation/{'x' * 65}"
    for page in (await visitor.get(path), await visitor.post(path, password=OTHER_PASSWORD)):
        assert page.status_code == 404
        assert words(page).startswith("This link has ended It was used already")
        assert "set-cookie" not in page.headers
        assert page.headers.get_list("referrer-policy") == ["strict-origin"]


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


async def test_an_unreachable_database_leaves_the_link_for_later(
    service: Service, visitor: Visitor, invited: Added
) -> None:
    await visitor.get(path_of(invited))
    await service.store.close()
    for page in (
        await visitor.get(path_of(invited)),
        await visitor.post(path_of(invited), password=PASSWORD),
    ):
        assert page.status_code == 503
        assert "Wait a moment" in words(page)
        assert f'href="/console{path_of(invited)}"' in page.text
        assert page.headers.get_list("referrer-policy") == ["strict-origin"]
    await service.store.open()
    assert (await visitor.post(path_of(invited), password=PASSWORD)).status_code == 303


async def test_of_several_forms_one_sets_the_password(service: Service, invited: Added) -> None:
    passwords = [f"{PASSWORD} {number}" for number in range(4)]
    sent = [newcomer(service).post(path_of(invited), password=each) for each in passwords]
    statuses = [response.status_code for response in await asyncio.gather(*sent)]
    assert sorted(statuses) == [303, 404, 404, 404]
    right = [(await sign_in(newcomer(service), LOGIN, each)).status_code for each in passwords]
    assert right == [303 if status == 303 else 401 for status in statuses]
