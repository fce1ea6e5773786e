"""Imports over HTTP: a file is sent, decided about, run in steps, and undone."""

import asyncio
import csv
import gc
import io
from time import thread_time
from typing import Any, TypeAlias

import httpx
import pytest

from petstore.categories.model import CategoryCreate
from petstore.clock import DAY, SECOND
from petstore.databases.contract import Statement
from petstore.databases.schema import prune_all
from petstore.imports.model import MAX_UNFINISHED
from support.changes import create_category, without_event
from support.error_body import assert_error
from support.full_disk import full_disk
from support.retention import DAYS_KEPT
from support.service import Service

pytestmark = pytest.mark.anyio

PATH = "/v1/imports"
CSV = "text/csv"
Json: TypeAlias = dict[str, Any]


@pytest.fixture(autouse=True)
async def with_dogs_and_cats(service: Service) -> None:
    """Every store has the categories 1, Dogs, and 2, Cats."""
    for name in ("Dogs", "Cats"):
        await service.store.write(without_event(create_category(CategoryCreate(name))))


@pytest.fixture
async def token(service: Service) -> str:
    """The token of a key without limits."""
    return (await service.issue()).token


async def send(
    service: Service, token: str, text: str | bytes, media_type: str = CSV, name: str = "pets.csv"
) -> httpx.Response:
    return await service.request(
        "POST",
        PATH,
        token,
        params={"fileName": name},
        content=text.encode() if isinstance(text, str) else text,
        headers={"Content-Type": media_type},
    )


async def sent(service: Service, token: str, text: str) -> Json:
    response = await send(service, token, text)
    assert response.status_code == 201, response.text
    found: Json = response.json()
    assert response.headers["location"].endswith(f"{PATH}/{found['id']}")
    return found


async def patch(service: Service, token: str, import_id: int, **members: Any) -> Json:
    response = await service.request("PATCH", f"{PATH}/{import_id}", token, json=members)
    assert response.status_code == 200, response.text
    changed: Json = response.json()
    return changed


async def step(service: Service, token: str, import_id: int, what: str = "run") -> Json:
    response = await service.request("POST", f"{PATH}/{import_id}/{what}", token)
    assert response.status_code == 200, response.text
    changed: Json = response.json()
    return changed


async def whole(service: Service, token: str, import_id: int, what: str = "run") -> Json:
    while (found := await step(service, token, import_id, what))["waiting"]:
        pass
    return found


async def refused(service: Service, token: str, import_id: int) -> list[list[str]]:
    response = await service.request("GET", f"{PATH}/{import_id}/refused", token)
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    return [*csv.reader(io.StringIO(response.content.decode("utf-8-sig")))]


async def pets(service: Service, token: str) -> list[tuple[str, int, str | None]]:
    found = (await service.request("GET", "/v1/pets?limit=100", token)).json()
    return [(each["name"], each["categoryId"], each.get("status")) for each in found]


def many(rows: int, prefix: str = "Pet") -> str:
    return "name,category\n" + "".join(f"{prefix} {number},Dogs\n" for number in range(rows))


async def test_a_file_is_read_and_nothing_is_added(service: Service, token: str) -> None:
    text = "Tiername,Tierart,Status,Alter\nBella,dogs,adopted,3\nMia,Cats,,\nRex,Wolves,lost,1\n"
    found = await sent(service, token, text)
    assert found["mapping"] == {"name": 0, "categoryId": 1, "status": 2}
    assert found["hasHeader"] is True
    assert found["headerLine"] == 1
    assert [column["name"] for column in found["columns"]] == text.split("\n", maxsplit=1)[0].split(
        ","
    )
    assert found["columns"][0]["values"] == ["Bella", "Mia", "Rex"]
    assert (found["state"], found["rows"], found["waiting"]) == ("open", 3, 3)
    assert found["preview"] == {
        "added": 2,
        "refused": 1,
        "alreadyHere": 0,
        "withoutCategory": 0,
        "categories": [{"text": "Wolves", "rows": 1}],
        "statuses": [{"text": "lost", "rows": 1}, {"text": "adopted", "rows": 1, "means": "sold"}],
    }
    assert await pets(service, token) == []


@pytest.mark.each_database
async def test_what_was_decided_is_added(service: Service, token: str) -> None:
    text = "Name,Species,Status\nBella,Dogs,Adopted\nMia,Wolves,Foster\nRex,wolves,\nTom,,sold\n"
    found = await sent(service, token, text)
    changed = await patch(
        service,
        token,
        found["id"],
        unknownCategories="create",
        defaultStatus="available",
        defaultCategoryId=2,
        values={"foster": "pending"},
    )
    assert (changed["preview"]["added"], changed["preview"]["refused"]) == (4, 0)
    done = await step(service, token, found["id"])
    assert (done["state"], done["added"], done["waiting"]) == ("finished", 4, 0)
    assert await pets(service, token) == [
        ("Bella", 1, "sold"),
        ("Mia", 3, "pending"),
        ("Rex", 3, "available"),
        ("Tom", 2, "sold"),
    ]


@pytest.mark.each_database
async def test_refused_rows_say_every_reason_that_holds_now(service: Service, token: str) -> None:
    text = (
        "Name,Category,Status,Remark\nBella,Dogs,available,\n,Wolves,lost,=1+1\nTom,Wolves,sold,\n"
    )
    found = await sent(service, token, text)
    reasons = [
        (
            "The row has no name. There is no category “Wolves”."
            " The meaning of the status “lost” is not decided."
        ),
        "There is no category “Wolves”.",
    ]
    rows = [
        ["Name", "Category", "Status", "Remark", "Line", "Reason"],
        ["", "Wolves", "lost", "'=1+1", "3", reasons[0]],
        ["Tom", "Wolves", "sold", "", "4", reasons[1]],
    ]
    assert await refused(service, token, found["id"]) == rows
    done = await step(service, token, found["id"])
    assert (done["added"], done["refused"]) == (1, 2)
    assert await refused(service, token, found["id"]) == rows
    await service.store.write(create_category(CategoryCreate("Wolves")))
    again = await refused(service, token, found["id"])
    assert again[2][-1] == "Nothing is wrong with it now: send it again."


async def test_refused_rows_can_be_sent_again(service: Service, token: str) -> None:
    found = await sent(service, token, "Name,Category\nRex,Wolves\n'=Tom,Dogs\n")
    await whole(service, token, found["id"])
    response = await service.request("GET", f"{PATH}/{found['id']}/refused", token)
    await service.store.write(create_category(CategoryCreate("Wolves")))
    again = await sent(service, token, response.text)
    assert again["mapping"] == {"name": 0, "categoryId": 1}
    assert (await whole(service, token, again["id"]))["added"] == 1


async def test_a_list_without_a_header_is_decided_about(service: Service, token: str) -> None:
    found = await sent(service, token, "Dogs,Rex\nCats,Mia\n")
    assert found["hasHeader"] is False
    assert found["preview"]["added"] == 0
    changed = await patch(service, token, found["id"], mapping={"name": 1, "categoryId": 0})
    assert changed["preview"]["added"] == 2
    headed = await patch(service, token, found["id"], hasHeader=True)
    assert (headed["rows"], headed["headerLine"]) == (1, 1)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"mapping": {"name": 9}}, "mapping: expected places of columns"),
        ({"mapping": {"status": 0}}, "mapping: expected another column"),
        ({"mapping": {"name": "A"}}, "mapping: expected an object with the places"),
        ({"defaultCategoryId": 9}, "defaultCategoryId: expected a registered"),
        ({"values": {"lost": "gone"}}, "values: expected an object of up to"),
        ({"categories": {"Dog": 9}}, "categories.Dog: expected a registered"),
        ({"categories": {"Dog": "Dogs"}}, "categories: expected an object of up to"),
        ({"unknownCategories": "add"}, "unknownCategories: expected one of"),
    ],
)
async def test_settings_that_do_not_fit_are_refused(
    service: Service, token: str, members: Json, message: str
) -> None:
    found = await sent(service, token, "Name,Category\nRex,Dogs\n")
    response = await service.request("PATCH", f"{PATH}/{found['id']}", token, json=members)
    assert response.status_code == 400
    assert response.json()["message"].startswith(message)


async def test_nothing_is_decided_once_pets_were_added(service: Service, token: str) -> None:
    found = await sent(service, token, "Name,Category\nRex,Dogs\n")
    await step(service, token, found["id"])
    response = await service.request("PATCH", f"{PATH}/{found['id']}", token, json={})
    message = assert_error(response, 409, "import_closed")
    assert message == f"import {found['id']} is finished: its settings can no longer change"


# Nothing doubles


@pytest.mark.each_database
async def test_the_same_file_goes_on_where_it_was(service: Service, token: str) -> None:
    found = await sent(service, token, many(2500))
    running = await step(service, token, found["id"])
    assert running["state"] == "running"
    assert 0 < running["added"] < 2500
    again = await sent(service, token, many(2500))
    assert again == running
    assert (await whole(service, token, again["id"]))["added"] == 2500
    assert (await sent(service, token, many(2500)))["state"] == "finished"


@pytest.mark.each_database
async def test_runs_at_once_add_each_row_once(service: Service, token: str) -> None:
    found = await sent(service, token, many(1_050))
    steps = [step(service, token, found["id"]) for _ in range(3)]
    await asyncio.gather(*steps)
    done = await whole(service, token, found["id"])
    assert (done["added"], done["refused"]) == (1_050, 0)
    ((count, names),) = await service.store.read(
        Statement("SELECT count(*), count(DISTINCT name) FROM pets")
    )
    assert (count, names) == (1_050, 1_050)


async def test_an_edited_export_is_told_by_its_ids(service: Service, token: str) -> None:
    await service.request("POST", "/v1/pets", token, json={"name": "Rex", "categoryId": 1})
    text = f"id,name,categoryId\n1,Rexy,1\n{2**63 - 1},Mia,2\n{2**63},Bo,1\n,Tom,2\n"
    found = await sent(service, token, text)
    assert found["mapping"]["id"] == 0
    done = await whole(service, token, found["id"])
    assert (done["added"], done["refused"]) == (3, 1)
    rows = await refused(service, token, found["id"])
    assert rows[1][-1] == "It is already in the store, as pet 1."


# Undo


@pytest.mark.each_database
async def test_an_undo_deletes_what_nobody_touched(service: Service, token: str) -> None:
    text = "name,category,status\nRex,Dogs,available\nMia,Cats,available\nTom,Cats,available\n"
    text += "Bob,Dogs,available\n"
    found = await sent(service, token, text)
    await whole(service, token, found["id"])
    await service.request("POST", "/v1/store/orders", token, json={"petId": 1})
    await service.request("PATCH", "/v1/pets/2", token, json={"name": "Mia II"})
    await service.request("DELETE", "/v1/pets/3", token)
    undone = await whole(service, token, found["id"], "undo")
    assert (undone["state"], undone["deleted"], undone["kept"]) == ("undone", 1, 3)
    assert undone["keptPets"] == [
        {"id": 1, "name": "Rex", "reason": "ordered"},
        {"id": 2, "name": "Mia", "reason": "changed"},
        {"id": 3, "name": "Tom", "reason": "deleted"},
    ]
    assert [name for name, _, _ in await pets(service, token)] == ["Rex", "Mia II"]
    assert await whole(service, token, found["id"], "undo") == undone
    assert (await sent(service, token, text))["id"] != found["id"]


async def test_an_import_that_is_half_done_can_be_undone(service: Service, token: str) -> None:
    found = await sent(service, token, many(2_100))
    running = await step(service, token, found["id"])
    undone = await whole(service, token, found["id"], "undo")
    assert undone["deleted"] == running["added"]
    response = await service.request("POST", f"{PATH}/{found['id']}/run", token)
    assert_error(response, 409, "import_closed")
    assert await pets(service, token) == []


# Who may, and how much


@pytest.mark.parametrize(
    ("method", "part", "body"),
    [
        ("GET", "", None),
        ("PATCH", "", {}),
        ("POST", "/run", None),
        ("POST", "/undo", None),
        ("GET", "/refused", None),
        ("DELETE", "", None),
    ],
)
async def test_another_caller_finds_no_import(
    service: Service, token: str, method: str, part: str, body: Json | None
) -> None:
    found = await sent(service, token, many(1))
    other = (await service.issue(scopes=frozenset({"pets:write", "keys:admin"}))).token
    options = {} if body is None else {"json": body}
    response = await service.request(method, f"{PATH}/{found['id']}{part}", other, **options)
    assert_error(response, 404, "not_found")
    assert (await service.request("GET", PATH, other)).json() == []
    assert (await service.request("GET", f"{PATH}/{found['id']}", token)).json() == found


async def test_each_row_costs_a_request_of_the_day(service: Service) -> None:
    small = (await service.issue(per_minute=1000, per_day=130)).token
    found = await sent(service, small, many(150))
    running = await step(service, small, found["id"])
    assert (running["state"], running["added"]) == ("running", 129)
    response = await service.request("POST", f"{PATH}/{found['id']}/run", small)
    assert_error(response, 429, "rate_limit_exceeded")
    service.clock.advance(DAY // SECOND)
    assert (await step(service, small, found["id"]))["added"] == 150
    usage = (await service.request("GET", "/v1/usage", small)).json()
    assert usage["day"]["remaining"] == 130 - 21


async def test_a_caller_has_at_most_twenty_unfinished_imports(service: Service, token: str) -> None:
    for number in range(MAX_UNFINISHED):
        await sent(service, token, many(1, f"Pet {number}"))
    response = await send(service, token, many(1, "One more"))
    assert_error(response, 409, "too_many_imports")
    unreadable = await send(service, token, b"%PDF")  # such files are not even read
    assert_error(unreadable, 409, "too_many_imports")
    assert (await service.request("DELETE", f"{PATH}/1", token)).status_code == 204
    assert (await send(service, token, many(1, "One more"))).status_code == 201


async def test_a_disk_without_room_is_a_503(service: Service, token: str) -> None:
    found = await sent(service, token, "name,category\n" + "Rex,Wolves\n" * 5_000)
    with full_disk():
        responses = [
            await send(service, token, "name,category\n" + "Rex,Dogs\n" * 5_000),
            await service.request("GET", f"{PATH}/{found['id']}/refused", token),
        ]
    for response in responses:
        assert "now; try again" in assert_error(response, 503, "service_unavailable")


async def test_a_file_of_more_than_eight_mebibytes_is_refused(service: Service, token: str) -> None:
    response = await send(service, token, b"x" * (8 * 2**20 + 1))
    assert_error(response, 413, "content_too_large")


# Retries, lists and the end


@pytest.mark.each_database
async def test_a_retry_gets_the_first_response(service: Service, token: str) -> None:
    found = await sent(service, token, many(2_100))
    path, once = f"{PATH}/{found['id']}/run", {"Idempotency-Key": "again"}
    first = await service.request("POST", path, token, headers=once)
    again = await service.request("POST", path, token, headers=once)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    now = (await service.request("GET", f"{PATH}/{found['id']}", token)).json()
    assert now == first.json()


@pytest.mark.each_database
async def test_an_import_is_kept_for_seven_days(service: Service, token: str) -> None:
    used = await sent(service, token, many(1, "Used"))
    await sent(service, token, many(1, "Forgotten"))
    service.clock.advance(4 * DAY // SECOND)
    await step(service, token, used["id"])
    service.clock.advance(4 * DAY // SECOND)
    await prune_all(service.store, service.clock, DAYS_KEPT)
    response = await service.request("GET", PATH, token)
    assert [each["id"] for each in response.json()] == [used["id"]]
    assert await service.store.read(Statement("SELECT import_id FROM import_batches")) == [
        (used["id"],)
    ]


async def test_a_deleted_import_leaves_its_pets(service: Service, token: str) -> None:
    found = await sent(service, token, many(2))
    await step(service, token, found["id"])
    assert (await service.request("DELETE", f"{PATH}/{found['id']}", token)).status_code == 204
    assert len(await pets(service, token)) == 2
    assert (await service.request("GET", f"{PATH}/{found['id']}", token)).status_code == 404


async def test_a_key_has_at_most_four_files_on_their_way(service: Service, token: str) -> None:
    responses = await asyncio.gather(*(send(service, token, many(1, name)) for name in "ABCDE"))
    statuses = sorted(response.status_code for response in responses)
    assert statuses == [201] * 4 + [429]


async def test_one_file_is_read_at_a_time(service: Service, token: str) -> None:
    with await service.app.services.admission.readings.take("somebody else"):
        sending = asyncio.create_task(send(service, token, many(1)))
        others = [(await service.issue()).token for _ in range(3)]
        for other in others:
            pets = [{"name": "Rex", "categoryId": 1}] * 2
            response = await service.request("POST", "/v1/pets/batch", other, json=pets)
            assert response.status_code == 201, response.text
        assert not sending.done()
    assert (await sending).status_code == 201


async def test_no_step_of_a_large_file_keeps_others_waiting(
    service: Service, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, longest = asyncio.Handle._run, 0.0  # noqa: SLF001 - there is no public way

    def timed(handle: asyncio.Handle) -> None:
        nonlocal longest
        start = thread_time()
        run(handle)
        longest = max(longest, thread_time() - start)

    rows = "".join(f"Pet {number},Kind {number},Word {number}\n" for number in range(19_999))
    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    gc.disable()  # it looks at all that the tests before have left
    try:
        found = await sent(service, token, f"name,category,status\n{rows}")
        words = {"Word 1": "sold"}
        await patch(service, token, found["id"], unknownCategories="create", values=words)
        assert len(await refused(service, token, found["id"])) == 1 + 19_998
        await step(service, token, found["id"])
        await step(service, token, found["id"], "undo")
    finally:
        gc.enable()
    assert longest < 0.3  # ten times what it takes on a quiet machine
