"""Imports over HTTP: a file is sent, decided about, run in steps, and undone."""

import asyncio
import csv
import gc
import io
from dataclasses import dataclass
from time import thread_time
from typing import Any, TypeAlias

import httpx
import pytest

from petstore.categories.model import CategoryCreate
from petstore.clock import DAY, SECOND
from petstore.databases.contract import Statement
from petstore.databases.schema import prune_all
from petstore.imports.model import MAX_UNFINISHED
from petstore.pets.store import PETS_BY_WORD
from support.cases import case
from support.changes import create_category, without_event
from support.error_body import assert_error
from support.permissions import full_disk
from support.retention import DAYS_KEPT
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

PATH = "/v1/imports"
Json: TypeAlias = dict[str, Any]


@dataclass
class Clerk:
    """A person who imports files, with a key without limits."""

    service: Service
    token: str

    async def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        return await self.service.request(method, path, self.token, **options)

    async def send(self, text: str | bytes) -> httpx.Response:
        headers, query = {"Content-Type": "text/csv"}, {"fileName": "pets.csv"}
        return await self.ask("POST", PATH, params=query, content=text, headers=headers)

    async def sent(self, text: str) -> Json:
        response = await self.send(text)
        assert response.status_code == 201, response.text
        found: Json = response.json()
        assert response.headers["location"].endswith(f"{PATH}/{found['id']}")
        return found

    async def _changed(self, method: str, path: str, **options: Any) -> Json:
        response = await self.ask(method, f"{PATH}/{path}", **options)
        assert response.status_code == 200, response.text
        changed: Json = response.json()
        return changed

    async def patch(self, import_id: int, **members: Any) -> Json:
        return await self._changed("PATCH", f"{import_id}", json=members)

    async def step(self, import_id: int, what: str = "run") -> Json:
        return await self._changed("POST", f"{import_id}/{what}")

    async def whole(self, import_id: int, what: str = "run") -> Json:
        while (found := await self.step(import_id, what))["waiting"]:
            pass
        return found

    async def refused(self, import_id: int) -> list[list[str]]:
        response = await self.ask("GET", f"{PATH}/{import_id}/refused")
        assert response.headers["content-type"] == "text/csv; charset=utf-8"
        return [*csv.reader(io.StringIO(response.content.decode("utf-8-sig")))]

    async def pets(self) -> list[tuple[str, int, str | None]]:
        found = (await self.ask("GET", "/v1/pets?limit=100")).json()
        return [(each["name"], each["categoryId"], each.get("status")) for each in found]


@pytest.fixture
async def clerk(service: Service) -> Clerk:
    """A clerk of a store with the categories 1, Dogs, and 2, Cats."""
    for name in ("Dogs", "Cats"):
        await service.store.write(without_event(create_category(CategoryCreate(name))))
    return Clerk(service, (await service.issue()).token)


def many(rows: int, prefix: str = "Pet") -> str:
    return "name,category\n" + "".join(f"{prefix} {number},Dogs\n" for number in range(rows))


async def test_a_file_is_read_and_nothing_is_added(clerk: Clerk) -> None:
    head = "Tiername,Tierart,Status,Alter"
    found = await clerk.sent(f"{head}\nBella,dogs,adopted,3\nMia,Cats,,\nRex,Wolves,lost,1\n")
    assert found["mapping"] == {"name": 0, "categoryId": 1, "status": 2}
    assert (found["hasHeader"], found["headerLine"]) == (True, 1)
    assert ",".join(column["name"] for column in found["columns"]) == head
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
    assert await clerk.pets() == []


async def test_pets_that_are_here_already_are_counted_at_once(clerk: Clerk) -> None:
    added = await clerk.sent("name,category\nBella,Dogs\nRex,Dogs\n")
    await clerk.step(added["id"])
    for changed in ("not yet indexed", "indexed"):
        found = await clerk.sent(f"name,category\nBELLA,Dogs\nMia,Cats\n{changed},Cats\n")
        assert found["preview"]["alreadyHere"] == 1
        await PETS_BY_WORD.update(clerk.service.store)


@pytest.mark.each_database
async def test_what_was_decided_is_added(clerk: Clerk) -> None:
    text = "Name,Species,Status\nBella,Dogs,Adopted\nMia,Wolves,Foster\nRex,wolves,\nTom,,sold\n"
    found = await clerk.sent(text)
    changed = await clerk.patch(
        found["id"],
        unknownCategories="create",
        defaultStatus="available",
        defaultCategoryId=2,
        values={"foster": "pending"},
    )
    assert (changed["preview"]["added"], changed["preview"]["refused"]) == (4, 0)
    done = await clerk.step(found["id"])
    assert (done["state"], done["added"], done["waiting"]) == ("finished", 4, 0)
    assert await clerk.pets() == [
        ("Bella", 1, "sold"),
        ("Mia", 3, "pending"),
        ("Rex", 3, "available"),
        ("Tom", 2, "sold"),
    ]


@pytest.mark.each_database
async def test_refused_rows_say_every_reason_that_holds_now_and_can_be_sent_again(
    clerk: Clerk,
) -> None:
    head = "Name,Category,Status,Remark"
    text = f"{head}\nBella,Dogs,available,\n,Wolves,lost,=1+1\nTom,Wolves,sold,\n"
    found = await clerk.sent(text)
    no_wolves = "There is no category “Wolves”."
    lost = f"The row has no name. {no_wolves} The meaning of the status “lost” is not decided."
    rows = [
        [*head.split(","), "Line", "Reason"],
        ["", "Wolves", "lost", "'=1+1", "3", lost],
        ["Tom", "Wolves", "sold", "", "4", no_wolves],
    ]
    assert await clerk.refused(found["id"]) == rows
    done = await clerk.step(found["id"])
    assert (done["added"], done["refused"]) == (1, 2)
    assert await clerk.refused(found["id"]) == rows
    await clerk.service.store.write(create_category(CategoryCreate("Wolves")))
    now = await clerk.refused(found["id"])
    assert now[2][-1] == "Nothing is wrong with it now: send it again."
    text = "".join(",".join(row) + "\n" for row in now)
    again = await clerk.sent(text)
    assert again["mapping"] == {"name": 0, "categoryId": 1, "status": 2}
    assert (await clerk.whole(again["id"]))["added"] == 1


async def test_a_list_without_a_header_is_decided_about(clerk: Clerk) -> None:
    found = await clerk.sent("Dogs,Rex\nCats,Mia\n")
    assert found["hasHeader"] is False
    assert found["preview"]["added"] == 0
    changed = await clerk.patch(found["id"], mapping={"name": 1, "categoryId": 0})
    assert changed["preview"]["added"] == 2
    headed = await clerk.patch(found["id"], hasHeader=True)
    assert (headed["rows"], headed["headerLine"]) == (1, 1)


async def test_settings_that_do_not_fit_or_come_too_late_are_refused(clerk: Clerk) -> None:
    found = await clerk.sent("Name,Category\nRex,Dogs\n")
    path = f"{PATH}/{found['id']}"
    for members, message in (
        ({"mapping": {"name": 9}}, "mapping: expected places of columns"),
        ({"mapping": {"status": 0}}, "mapping: expected another column"),
        ({"mapping": {"name": "A"}}, "mapping: expected an object with the places"),
        ({"defaultCategoryId": 9}, "defaultCategoryId: expected a registered"),
        ({"values": {"lost": "gone"}}, "values: expected an object of up to"),
        ({"categories": {"Dog": 9}}, "categories.Dog: expected a registered"),
        ({"categories": {"Dog": "Dogs"}}, "categories: expected an object of up to"),
        ({"unknownCategories": "add"}, "unknownCategories: expected one of"),
    ):
        with case(members):
            response = await clerk.ask("PATCH", path, json=members)
            assert response.status_code == 400
            assert response.json()["message"].startswith(message)
    await clerk.step(found["id"])
    response = await clerk.ask("PATCH", path, json={})
    message = assert_error(response, 409, "import_closed")
    assert message == f"import {found['id']} is finished: its settings can no longer change"
    assert (await clerk.ask("DELETE", path)).status_code == 204
    assert (await clerk.ask("GET", path)).status_code == 404
    assert await clerk.pets() == [("Rex", 1, None)]  # whose import is gone


@pytest.mark.each_database
async def test_the_same_file_goes_on_where_it_was(clerk: Clerk) -> None:
    found = await clerk.sent(many(2500))
    running = await clerk.step(found["id"])
    assert running["state"] == "running"
    assert 0 < running["added"] < 2500
    again = await clerk.sent(many(2500))
    assert again == running
    assert (await clerk.whole(again["id"]))["added"] == 2500
    assert (await clerk.sent(many(2500)))["state"] == "finished"


@pytest.mark.each_database
async def test_runs_of_two_processes_at_once_add_each_row_once(clerk: Clerk, address: str) -> None:
    found = await clerk.sent(many(1_050))
    async with running_service(address, clerk.service.clock) as other:
        clerks = [clerk, Clerk(other, clerk.token)] * 2
        await asyncio.gather(*(each.step(found["id"]) for each in clerks))
    done = await clerk.whole(found["id"])
    assert (done["added"], done["refused"]) == (1_050, 0)
    sql = "SELECT count(*), count(DISTINCT name) FROM pets"
    assert await clerk.service.store.read(Statement(sql)) == [(1_050, 1_050)]


async def test_an_edited_export_is_told_by_its_ids(clerk: Clerk) -> None:
    await clerk.ask("POST", "/v1/pets", json={"name": "Rex", "categoryId": 1})
    text = f"id,name,categoryId\n1,Rexy,1\n{2**63 - 1},Mia,2\n{2**63},Bo,1\n,Tom,2\n"
    found = await clerk.sent(text)
    assert found["mapping"]["id"] == 0
    done = await clerk.whole(found["id"])
    assert (done["added"], done["refused"]) == (3, 1)
    rows = await clerk.refused(found["id"])
    assert rows[1][-1] == "It is already in the store, as pet 1."


@pytest.mark.each_database
async def test_an_undo_deletes_what_nobody_touched(clerk: Clerk) -> None:
    text = "name,category,status\nRex,Dogs,available\nMia,Cats,available\nTom,Cats,available\n"
    text += "Bob,Dogs,available\n"
    found = await clerk.sent(text)
    await clerk.whole(found["id"])
    await clerk.ask("POST", "/v1/store/orders", json={"petId": 1})
    await clerk.ask("PATCH", "/v1/pets/2", json={"name": "Mia II"})
    await clerk.ask("DELETE", "/v1/pets/3")
    undone = await clerk.whole(found["id"], "undo")
    assert (undone["state"], undone["deleted"], undone["kept"]) == ("undone", 1, 3)
    assert undone["keptPets"] == [
        {"id": 1, "name": "Rex", "reason": "ordered"},
        {"id": 2, "name": "Mia", "reason": "changed"},
        {"id": 3, "name": "Tom", "reason": "deleted"},
    ]
    assert [name for name, _, _ in await clerk.pets()] == ["Rex", "Mia II"]
    assert await clerk.whole(found["id"], "undo") == undone
    assert (await clerk.sent(text))["id"] != found["id"]


async def test_another_caller_finds_no_import(clerk: Clerk) -> None:
    found = await clerk.sent(many(1))
    other = (await clerk.service.issue(scopes=frozenset({"pets:write", "keys:admin"}))).token
    for method, part in (
        *(("GET", ""), ("PATCH", ""), ("POST", "/run"), ("POST", "/undo"), ("GET", "/refused")),
        ("DELETE", ""),
    ):
        with case(method, part):
            body: Json | None = {} if method == "PATCH" else None
            path = f"{PATH}/{found['id']}{part}"
            response = await clerk.service.request(method, path, other, json=body)
            assert_error(response, 404, "not_found")
    assert (await clerk.service.request("GET", PATH, other)).json() == []
    assert (await clerk.ask("GET", f"{PATH}/{found['id']}")).json() == found


async def test_each_row_costs_a_request_of_the_day(clerk: Clerk) -> None:
    key = await clerk.service.issue(per_minute=1000, per_day=130)
    small = Clerk(clerk.service, key.token)
    found = await small.sent(many(150))
    running = await small.step(found["id"])
    assert (running["state"], running["added"]) == ("running", 129)
    response = await small.ask("POST", f"{PATH}/{found['id']}/run")
    assert_error(response, 429, "rate_limit_exceeded")
    clerk.service.clock.advance(DAY // SECOND)
    assert (await small.step(found["id"]))["added"] == 150
    usage = (await small.ask("GET", "/v1/usage")).json()
    assert usage["day"]["remaining"] == 130 - 21


async def test_a_caller_has_at_most_twenty_unfinished_imports(
    clerk: Clerk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_UNFINISHED == 20
    monkeypatch.setattr("petstore.imports.store.MAX_UNFINISHED", 2)  # each file takes a process
    for number in range(2):
        await clerk.sent(many(1, f"Pet {number}"))
    response = await clerk.send(many(1, "One more"))
    assert_error(response, 409, "too_many_imports")
    unreadable = await clerk.send(b"%PDF")  # such files are not even read
    assert_error(unreadable, 409, "too_many_imports")
    assert_error(await clerk.send(b"x" * (8 * 2**20 + 1)), 413, "content_too_large")
    assert (await clerk.ask("DELETE", f"{PATH}/1")).status_code == 204
    assert (await clerk.send(many(1, "One more"))).status_code == 201


async def test_a_disk_without_room_is_a_503(clerk: Clerk) -> None:
    found = await clerk.sent("name,category\n" + "Rex,Wolves\n" * 5_000)
    with full_disk():
        responses = [
            await clerk.send("name,category\n" + "Rex,Dogs\n" * 5_000),
            await clerk.ask("GET", f"{PATH}/{found['id']}/refused"),
        ]
    for response in responses:
        assert "now; try again" in assert_error(response, 503, "service_unavailable")


@pytest.mark.each_database
async def test_a_retry_gets_the_first_response_and_half_an_import_can_be_undone(
    clerk: Clerk,
) -> None:
    found = await clerk.sent(many(2_100))
    path, once = f"{PATH}/{found['id']}/run", {"Idempotency-Key": "again"}
    first = await clerk.ask("POST", path, headers=once)
    again = await clerk.ask("POST", path, headers=once)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    now = (await clerk.ask("GET", f"{PATH}/{found['id']}")).json()
    assert now == first.json()
    undone = await clerk.whole(found["id"], "undo")
    assert undone["deleted"] == now["added"] > 0
    assert_error(await clerk.ask("POST", path), 409, "import_closed")
    assert await clerk.pets() == []


@pytest.mark.each_database
async def test_an_import_is_kept_for_seven_days(clerk: Clerk) -> None:
    used = await clerk.sent(many(1, "Used"))
    await clerk.sent(many(1, "Forgotten"))
    clerk.service.clock.advance(4 * DAY // SECOND)
    await clerk.step(used["id"])
    clerk.service.clock.advance(4 * DAY // SECOND)
    await prune_all(clerk.service.store, clerk.service.clock, DAYS_KEPT)
    response = await clerk.ask("GET", PATH)
    assert [each["id"] for each in response.json()] == [used["id"]]
    batches = Statement("SELECT import_id FROM import_batches")
    assert await clerk.service.store.read(batches) == [(used["id"],)]


async def test_a_key_has_at_most_four_files_on_their_way(clerk: Clerk) -> None:
    responses = await asyncio.gather(*(clerk.send(many(1, name)) for name in "ABCDE"))
    statuses = sorted(response.status_code for response in responses)
    assert statuses == [201] * 4 + [429]


async def test_one_file_is_read_at_a_time(clerk: Clerk) -> None:
    with await clerk.service.app.services.admission.readings.take("somebody else"):
        sending = asyncio.create_task(clerk.send(many(1)))
        others = [(await clerk.service.issue()).token for _ in range(3)]
        for other in others:
            pets = [{"name": "Rex", "categoryId": 1}] * 2
            response = await clerk.service.request("POST", "/v1/pets/batch", other, json=pets)
            assert response.status_code == 201, response.text
        assert not sending.done()
    assert (await sending).status_code == 201


async def test_no_step_of_a_large_file_keeps_others_waiting(
    clerk: Clerk, monkeypatch: pytest.MonkeyPatch
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
        found = await clerk.sent(f"name,category,status\n{rows}")
        words = {"Word 1": "sold"}
        await clerk.patch(found["id"], unknownCategories="create", values=words)
        assert len(await clerk.refused(found["id"])) == 1 + 19_998
        await clerk.step(found["id"])
        await clerk.step(found["id"], "undo")
    finally:
        gc.enable()
    assert longest < 0.3  # ten times what it takes on a quiet machine
