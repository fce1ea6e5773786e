"""The pages that undo an import."""

import asyncio

import pytest

from petstore.categories.model import CategoryCreate
from petstore.databases.contract import Statement
from support.changes import create_category
from support.manual_clock import ManualClock
from support.page_forms import buttons_of, form_to, press, succeed
from support.service import Service
from support.staff import signed_in_person
from support.stores import do
from support.visitor import Visitor, left_today, signed_in, words

pytestmark = pytest.mark.anyio

COUNT = Statement("SELECT count(*) FROM pets")


@pytest.fixture
async def service(service: Service) -> Service:
    """The service, with the category of the animals in the files."""
    await service.store.write(create_category(CategoryCreate("Animals")))
    return service


async def imported(staff: Visitor, count: int, *, rounds: int = 1) -> str:
    """Import so many animals, and return the path of the import."""
    rows = "".join(f"Animal {number},1,available\n" for number in range(1, count + 1))
    content = f"name,categoryId,status\n{rows}".encode()
    sent = await staff.post("/import", {"file": ("animals.csv", content, "text/csv")})
    path = sent.headers["location"].removeprefix("/console")
    for _ in range(rounds):
        assert (await staff.post(path)).status_code in (200, 303)
    return path


async def count_of(service: Service) -> int:
    ((count,),) = await service.store.read(COUNT)
    return int(count)


async def test_an_import_is_undone_after_a_page_that_says_what_happens(
    staff: Visitor, service: Service
) -> None:
    path = await imported(staff, 3)
    page = await staff.get(path)
    assert f'href="/console{path}/undo">Undo this import…</a>' in page.text
    asked = await staff.get(f"{path}/undo")
    assert "UTC added 3 animals. Those that nobody changed" in words(asked)
    assert "You can undo it until" in words(asked)
    assert await count_of(service) == 3
    done = await succeed(staff, asked, "Delete 3 animals")
    assert "3 animals deleted." in words(done)
    assert "Animals that stay" not in done.text
    assert buttons_of(done) == []
    assert await count_of(service) == 0
    assert "What the undo did" in (await staff.get(path)).text


async def test_what_stays_is_listed_with_its_reason_and_a_link(staff: Visitor) -> None:
    path = await imported(staff, 4)
    await staff.submit("/pets/1", name="<b>Bella</b>")
    await staff.submit("/pets/2/reserve", once="a")
    await staff.submit("/pets/3/delete")
    done = await succeed(staff, await staff.get(f"{path}/undo"), "Delete 4 animals")
    assert "1 animal deleted. 3 animals stay." in words(done)
    for number, name, reason in (
        (1, "Animal 1", "Somebody changed it after the import."),
        (2, "Animal 2", "It was ordered."),
        (3, "Animal 3", "Somebody deleted it already."),
    ):
        row = done.text.partition(f'<a href="/console/pets/{number}">')[2].partition("</tr>")[0]
        assert f"<bdi>{name}</bdi>" in row
        assert reason in row
        assert (await staff.get(f"/pets/{number}")).status_code == (404 if number == 3 else 200)


async def test_of_many_that_stay_the_first_are_listed(staff: Visitor, service: Service) -> None:
    path = await imported(staff, 60)
    await service.store.write(do("UPDATE pets SET name = 'Other'"))
    done = await succeed(staff, await staff.get(f"{path}/undo"), "Delete 60 animals")
    assert "0 animals deleted. 60 animals stay." in words(done)
    assert "Animals that stay: the first 50 of 60" in words(done)
    assert done.text.count("Somebody changed it after the import.") == 50


async def test_a_large_import_is_undone_in_steps(staff: Visitor, service: Service) -> None:
    path = await imported(staff, 1_200, rounds=2)
    going = await staff.post(f"{path}/undo")
    assert going.status_code == 200
    assert '<progress id="done" max="1200" value="1000">' in going.text
    assert "data-continue" in going.text
    later = await staff.get(f"{path}/undo")
    assert "1 000 animals deleted so far." in words(later)
    assert "data-continue" not in later.text
    assert "Go on with the undo" in (await staff.get(path)).text
    done = await succeed(staff, later, "Go on")
    assert "1 200 animals deleted." in words(done)
    assert await count_of(service) == 0


async def test_an_unfinished_import_can_be_undone_and_adds_no_more(
    staff: Visitor, service: Service
) -> None:
    path = await imported(staff, 1_200)
    assert "Undo this import…" in (await staff.get(path)).text
    asked = await staff.get(f"{path}/undo")
    assert "Nothing more of the file is added." in words(asked)
    await succeed(staff, asked, "Delete 1\N{NARROW NO-BREAK SPACE}000 animals")
    await staff.post(path)
    assert await count_of(service) == 0
    assert "1 000 animals added, 0 rows refused." in words(await staff.get(path))


async def test_two_tabs_and_a_double_click_undo_once(staff: Visitor, service: Service) -> None:
    path = await imported(staff, 250)
    await staff.submit("/pets/7", name="Bella")
    await asyncio.gather(*(staff.post(f"{path}/undo") for _ in range(3)))
    done = await staff.get(f"{path}/undo")
    assert "249 animals deleted. 1 animal stays." in words(done)
    again = await staff.submit(f"{path}/undo")
    assert words(again) == words(done)
    deleted = "SELECT count(*) FROM events WHERE type = 'pet.deleted' AND actor = ?1"
    events = await service.store.read(Statement(deleted, (f"key/{staff.key_id}",)))
    assert events == [(249,)]


async def test_each_animal_costs_a_request_of_the_day(service: Service, clock: ManualClock) -> None:
    shop = await signed_in(service, plan="free")
    path = await imported(shop, 600)
    page = await shop.get(f"{path}/undo")
    assert "Each animal costs a request of your key, and it has 400 left until" in words(page)
    stopped = await succeed(shop, page, "Delete 600 animals")
    assert await left_today(shop, service) == 0
    assert await count_of(service) == 200
    assert "Go on after that." in words(stopped)
    assert buttons_of(stopped) == []
    clock.advance(24 * 60 * 60)
    await shop.post("/sign-in", key=shop.token)
    done = await succeed(shop, await shop.get(f"{path}/undo"), "Go on")
    assert "600 animals deleted." in words(done)


async def test_a_banned_key_cannot_undo(service: Service, clock: ManualClock) -> None:
    shop = await signed_in(service, plan="free")
    path = await imported(shop, 1)
    while "banned" not in (await service.request("GET", "/v1/pets", shop.token)).text:
        clock.advance(0.1)
    page = await shop.submit(f"{path}/undo")
    assert "Your key is banned until" in words(page)
    assert await count_of(service) == 1


async def test_the_undo_is_for_the_one_who_imported(staff: Visitor, service: Service) -> None:
    path = await imported(staff, 1)
    other = await signed_in(service)
    for response in (
        await other.get(f"{path}/undo"),
        await other.post(f"{path}/undo"),
        await staff.get("/import/99/undo"),
        await staff.post("/import/x/undo"),
    ):
        assert response.status_code == 404
    assert await count_of(service) == 1


async def test_an_undo_needs_the_right_to_delete(service: Service) -> None:
    viewer = await signed_in_person(service, "viewer", "Ada")
    assert (await viewer.get("/import/1/undo")).status_code == 403
    assert (await viewer.post("/import/1/undo")).status_code == 403


async def test_a_clerk_undoes_an_import(service: Service) -> None:
    clerk = await signed_in_person(service, "clerk", "Grace")
    path = await imported(clerk, 2)
    done = await succeed(clerk, await clerk.get(f"{path}/undo"), "Delete 2 animals")
    assert "2 animals deleted." in words(done)


async def test_without_the_right_to_list_animals_there_are_no_links(service: Service) -> None:
    writer = await signed_in(service, scopes=frozenset({"pets:write"}))
    path = await imported(writer, 1)
    await service.store.write(do("UPDATE pets SET name = 'Other'"))
    done = await writer.submit(f"{path}/undo")
    assert "Animal 1 Somebody changed it after the import." in words(done)
    assert "/console/pets/1" not in done.text


async def test_there_is_nothing_to_undo_of_an_import_that_added_nothing(staff: Visitor) -> None:
    path = await imported(staff, 1, rounds=0)
    assert "Undo this import" not in (await staff.get(path)).text
    page = await staff.get(f"{path}/undo")
    assert "There is nothing to undo: no animal was added." in words(page)
    assert buttons_of(page) == []


async def test_an_import_of_an_earlier_version_cannot_be_undone(
    staff: Visitor, service: Service
) -> None:
    path = await imported(staff, 1)
    await service.store.write(do("UPDATE console_imports SET undoable = 0"))
    assert "Undo this import" not in (await staff.get(path)).text
    done = await staff.submit(f"{path}/undo")
    assert "There is nothing to undo: this version of the service did not add" in words(done)
    assert await count_of(service) == 1


async def test_a_file_whose_import_is_undone_is_imported_again_without_a_warning(
    staff: Visitor,
) -> None:
    first = await imported(staff, 2)
    second = await imported(staff, 2, rounds=0)
    assert "You have already imported this file" in (await staff.get(second)).text
    await staff.submit(f"{first}/undo")
    assert "already imported" not in (await staff.get(second)).text


async def test_the_question_has_a_way_out(staff: Visitor) -> None:
    path = await imported(staff, 1)
    asked = await staff.get(f"{path}/undo")
    assert f'href="/console{path}">Keep them</a>' in asked.text
    assert form_to(asked, f"{path}/undo").fields == {}
    assert (await press(staff, asked, "Delete 1 animal")).status_code == 303
