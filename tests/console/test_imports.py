"""The pages of imports."""

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator
from pathlib import Path
from time import thread_time
from typing import Any

import httpx
import pytest

from petstore.app import retained
from petstore.domain.api_keys import SCOPES
from petstore.http.messages import Response
from petstore.store.console_imports import BATCH, MAX_IMPORTS
from petstore.store.retention import prune_all
from support.bare_app import http_request
from support.manual_clock import ManualClock
from support.service import Service, running_service
from support.visitor import SAME_ORIGIN, Visitor, newcomer, signed_in, words
from support.waiting import eventually

pytestmark = pytest.mark.anyio

HEADER = b"name,categoryId,status\n"
MIB = 2**20


def rows(count: int) -> bytes:
    return b"".join(b"Animal %d,1,\n" % n for n in range(count))


async def send(staff: Visitor, content: bytes, name: str = "animals.csv") -> httpx.Response:
    return await staff.post("/import", {"file": (name, content, "text/csv")})


async def preview(staff: Visitor, content: bytes, name: str = "animals.csv") -> tuple[str, str]:
    """Send a file; return the path of its import and the page that shows it."""
    response = await send(staff, content, name)
    assert response.status_code == 303, response.text
    path = response.headers["location"].removeprefix("/console")
    return path, (await staff.get(path)).text


async def names(staff: Visitor, service: Service) -> list[str]:
    found: list[str] = []
    url = "/v1/pets?limit=100"
    while url:
        response = await service.request("GET", url, staff.token)
        found += [pet["name"] for pet in response.json()]
        url = response.links.get("next", {}).get("url", "")
    return found


def saved(response: httpx.Response) -> list[list[str]]:
    """Return the rows of a downloaded file."""
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"].startswith('attachment; filename="')
    return list(csv.reader(io.StringIO(response.content.decode("utf-8-sig"), newline="")))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a CSV file; this one is empty"),
        (b"name;status\nBella;sold\n", "line 1: expected the names of the columns"),
        (HEADER + b"M\xfcsli,1,\n", "line 2, column name: expected UTF-8"),
        (b"PK\x03\x04\x14\0\x06\0", "expected a CSV file in UTF-8, which is text"),
        (b"," * (8 * MIB + 1), "expected at most 8 MiB, got 8,388,609 bytes"),
    ],
    ids=["empty", "semicolons", "latin-1", "xlsx", "large"],
)
async def test_a_bad_file_is_refused_in_plain_words(
    staff: Visitor, content: bytes, message: str
) -> None:
    refused = await send(staff, content)
    assert refused.status_code == 400
    assert message in refused.text
    assert '<a href="#file">CSV file</a>: ' in refused.text
    assert 'aria-invalid="true"' in refused.text
    assert "Download an example file" in refused.text


@pytest.mark.parametrize("files", [None, {"file": ("", b"", "application/octet-stream")}])
async def test_a_form_without_a_file_is_refused(staff: Visitor, files: Any) -> None:
    refused = await staff.post("/import", files)
    assert refused.status_code == 400
    assert "choose a CSV file first" in refused.text


async def test_the_example_can_be_imported(staff: Visitor) -> None:
    assert "/console/import/example.csv" in (await staff.get("/import")).text
    example = await staff.get("/import/example.csv")
    assert saved(example)[0] == ["name", "categoryId", "status"]
    other = await staff.get("/import/example.csv", separator="semicolon")
    assert saved(other)[0] == ["name;categoryId;status"]
    for file in (example, other):
        _, page = await preview(staff, file.content)
        assert re.search("Add .*2.* animals</span></button>", page)


async def test_the_preview_shows_what_would_be_added_and_adds_nothing(
    staff: Visitor, service: Service
) -> None:
    content = HEADER + b"<b>Bella</b>,1,sold\nRex,x,\n" + rows(30)
    path, page = await preview(staff, content, "<i>.csv")
    assert "&lt;b&gt;Bella&lt;/b&gt;" in page
    assert "&lt;i&gt;.csv" in page
    assert "Animal 18" in page
    assert "Animal 19" not in page
    assert "Animals to add: the first 20" in page
    row = r'<td class="number">3</td><td><bdi>Rex,x,\s*</bdi><p class="hint">categoryId: expected'
    assert re.search(row, page)
    assert '<button><span>Add <data value="31">31</data> animals</span></button>' in page
    assert "data-continue" not in page
    assert await names(staff, service) == []
    assert f"/console{path}" in (await staff.get("/import")).text


async def test_a_thousand_rows_are_added_at_once(staff: Visitor, service: Service) -> None:
    path, _ = await preview(staff, HEADER + rows(999) + b"Rex,x,\n")
    done = await staff.submit(path)
    assert '<data value="999">999</data> animals added, <data value="1">1</data> row' in done.text
    assert "Their ids are between 1 and 999." in done.text
    assert "Show the newest animals" in done.text
    assert await names(staff, service) == [f"Animal {n}" for n in range(999)]
    again = await staff.submit(path)
    assert again.text == done.text
    assert len(await names(staff, service)) == 999


@pytest.mark.each_database
async def test_an_import_goes_on_in_another_service_after_a_kill(
    address: str, clock: ManualClock
) -> None:
    async with running_service(address, clock) as service:
        before = await signed_in(service)
        path, _ = await preview(before, HEADER + rows(6 * BATCH))
        going = await before.post(path)
        assert going.status_code == 200
        assert "data-continue" in going.text
        assert f'<progress id="done" max="{6 * BATCH}" value="{5 * BATCH}">' in going.text
        assert "data-continue" not in (await before.get(path)).text
        # The other service runs beside it and knows nothing of it but the store.
        async with running_service(address, clock) as other:
            after = Visitor(other.client, before.token, before.key_id)
            await after.post("/sign-in", key=before.token)
            done = await after.submit(path)
            assert f"Their ids are between 1 and {6 * BATCH}." in done.text
            assert await names(after, other) == [f"Animal {n}" for n in range(6 * BATCH)]


async def test_a_double_click_adds_nothing_twice(staff: Visitor, service: Service) -> None:
    path, _ = await preview(staff, HEADER + rows(6 * BATCH))
    responses = await asyncio.gather(*(staff.post(path) for _ in range(4)))
    assert {response.status_code for response in responses} <= {200, 303}
    assert responses[-1].status_code == 303
    assert await names(staff, service) == [f"Animal {n}" for n in range(6 * BATCH)]


async def test_the_import_of_another_key_is_not_found(staff: Visitor, service: Service) -> None:
    path, _ = await preview(staff, HEADER + rows(1))
    other = await signed_in(service)
    for response in (
        await other.get(path),
        await other.get(f"{path}/refused.csv"),
        await other.post(path),
        await other.post(f"{path}/discard"),
    ):
        assert response.status_code == 404
    assert await names(staff, service) == []


async def test_a_key_that_loses_its_scope_adds_no_more(staff: Visitor, service: Service) -> None:
    path, _ = await preview(staff, HEADER + rows(6 * BATCH))
    await staff.post(path)
    scopes = sorted(set(SCOPES) - {"pets:write"})
    admin = await service.issue(scopes=frozenset(SCOPES))
    changed = await service.request(
        "PATCH", f"/v1/keys/{staff.key_id}", admin.token, json={"scopes": scopes}
    )
    assert changed.status_code == 200
    assert (await staff.post(path)).status_code == 403
    assert len(await names(staff, service)) == 5 * BATCH


async def test_the_refused_rows_come_as_a_file_that_is_safe_and_can_be_corrected(
    staff: Visitor,
) -> None:
    content = HEADER + b'Bella,1,\n=1+1,x,sold\n"a""b"x,1,\n'
    path, page = await preview(staff, content)
    assert f"/console{path}/refused.csv" in page
    for _ in range(2):  # before it is imported, and after that
        file = await staff.get(f"{path}/refused.csv")
        header, formula, broken = saved(file)
        assert header == ["line", "reason", "name", "categoryId", "status"]
        assert formula[0] == "3"
        assert formula[1].startswith("categoryId: expected a whole number of up to 18 digits")
        assert formula[2:] == ["'=1+1", "x", "sold"]
        assert broken[1].startswith("expected CSV (")
        assert broken[2:] == ['"a""b"x,1,\n']
        await staff.submit(path)
    _, page = await preview(staff, file.content.replace(b",x,", b",7,"))
    assert '<button><span>Add <data value="1">1</data> animal</span></button>' in page


async def test_the_refused_rows_of_a_file_with_semicolons_have_semicolons(staff: Visitor) -> None:
    path, _ = await preview(staff, b'name;categoryId\nBella;1\n=1;x\n"a;b,c";y\n')
    file = await staff.get(f"{path}/refused.csv")
    header, formula, other = file.content.decode("utf-8-sig").splitlines()
    assert header == "line;reason;name;categoryId"
    assert formula.endswith(";'=1;x")
    assert other.endswith(';"a;b,c";y')
    _, page = await preview(staff, file.content.replace(b";x", b";7"))
    assert re.search("Add .*1.* animal</span></button>", page)


async def test_a_category_may_be_a_name(staff: Visitor, service: Service) -> None:
    for name in ("Dogs", "Élans"):
        await staff.submit("/categories", name=name)
    content = "name;category;status\nBella;DOGS;sold\nRex;1;\nKim; élans ;\nMo;Cats;\nNo;;\n"
    path, page = await preview(staff, content.encode())
    assert re.search("Add .*3.* animals</span></button>", page)
    told = "categoryId: expected a whole number of up to 18 digits"
    assert f"{told}, or the name of a category</p>" in page
    assert f"{told}</p>" in page
    refused = await staff.get(f"{path}/refused.csv")
    await staff.submit(path)
    found = await service.request("GET", "/v1/pets", staff.token)
    assert [(pet["name"], pet["categoryId"]) for pet in found.json()] == [
        ("Bella", 1),
        ("Rex", 1),
        ("Kim", 2),
    ]
    await staff.submit("/categories", name="Cats")
    _, page = await preview(staff, refused.content)
    assert re.search("Add .*1.* animal</span></button>", page)


async def test_who_may_not_list_categories_names_none(service: Service) -> None:
    await (await signed_in(service)).submit("/categories", name="Dogs")
    writer = await signed_in(service, scopes=frozenset({"pets:write"}))
    _, page = await preview(writer, b"name,category\nBella,Dogs\n")
    assert "categoryId: expected a whole number" in page


async def test_many_refused_rows_are_all_in_the_file_and_some_on_the_page(staff: Visitor) -> None:
    path, page = await preview(staff, HEADER + (rows(BATCH - 5) + b"Rex,x,\n" * 5) * 6)
    assert "Refused rows: the first 20" in page
    assert page.count('<p class="hint">categoryId: expected a whole number') == 20
    assert len(saved(await staff.get(f"{path}/refused.csv"))) == 31


async def test_others_go_on_while_refused_rows_are_written(staff: Visitor) -> None:
    path, _ = await preview(staff, HEADER + b",".join([b"x"] * 2**20) + b"\n")
    longest, saving = 0.0, asyncio.create_task(staff.get(f"{path}/refused.csv"))
    while not saving.done():
        began = thread_time()
        await asyncio.sleep(0)
        longest = max(longest, thread_time() - began)
    assert len((await saving).content) > 2**21
    assert longest < 0.1


async def test_a_file_without_a_good_row_cannot_be_added(staff: Visitor) -> None:
    _, page = await preview(staff, HEADER + b"Rex,x,\n")
    assert "No row of this file can be added." in page
    assert "<progress" not in page
    assert 'refused.csv" download' in page


async def test_a_file_that_was_added_before_is_added_again_only_with_a_warning(
    staff: Visitor,
) -> None:
    first, page = await preview(staff, HEADER + rows(1))
    assert "already imported" not in page
    done = await staff.submit(first)
    assert "Its id is 1." in done.text
    second, page = await preview(staff, HEADER + rows(1), "copy.csv")
    assert "You have already imported this file" in page
    assert f'href="/console{first}"' in page
    assert "already imported" not in (await staff.submit(second)).text
    assert "already imported" not in (await staff.get(first)).text


async def test_animals_of_unknown_categories_are_refused_where_categories_are_strict(
    address: str, clock: ManualClock
) -> None:
    async with running_service(address, clock, strict_categories=True) as service:
        staff = await signed_in(service)
        await service.request("POST", "/v1/categories", staff.token, json={"name": "Dogs"})
        path, page = await preview(staff, HEADER + b"Bella,1,\nRex,2,\n")
        assert "expected a registered category; there is no category 2" in page
        await service.request("DELETE", "/v1/categories/1", staff.token)
        done = await staff.submit(path)
        assert '<data value="0">0</data> animals added, <data value="2">2</data> rows' in done.text
        assert "there is no category 1" in done.text
        assert await names(staff, service) == []


async def test_a_discarded_import_keeps_what_it_added(staff: Visitor, service: Service) -> None:
    path, page = await preview(staff, HEADER + rows(6 * BATCH), "animals.csv")
    assert "Discard" in page
    assert "Stop here" in (await staff.post(path)).text
    gone = await staff.submit(f"{path}/discard")
    assert "The import of animals.csv is gone. The 1,000 animals that it added stay." in words(gone)
    assert (await staff.get(path)).status_code == 404
    assert len(await names(staff, service)) == 5 * BATCH
    path, _ = await preview(staff, HEADER + rows(1), "animals.csv")
    assert "animals that it added" not in (await staff.submit(f"{path}/discard")).text


async def test_a_key_has_few_imports_that_are_not_finished(staff: Visitor) -> None:
    for count in range(MAX_IMPORTS):
        await preview(staff, HEADER + rows(1 + count))
    refused = await send(staff, HEADER + rows(99))
    assert refused.status_code == 409
    assert "finish or discard one first" in refused.text


async def test_a_service_forgets_imports_after_a_day(
    staff: Visitor, service: Service, clock: ManualClock
) -> None:
    path, _ = await preview(staff, HEADER + rows(1))
    chores = retained(service.settings)
    await prune_all(service.store, clock, chores)
    assert (await staff.get(path)).status_code == 200
    clock.advance(24 * 60 * 60 + 1)
    await prune_all(service.store, clock, chores)
    await staff.post("/sign-in", key=staff.token)
    assert (await staff.get(path)).status_code == 404


async def test_who_may_not_add_animals_sees_no_import(service: Service) -> None:
    reader = await signed_in(service, scopes=frozenset({"pets:read"}))
    assert (await reader.get("/import")).status_code == 403
    assert (await send(reader, HEADER + rows(1))).status_code == 403


async def test_a_form_far_too_large_is_not_received(staff: Visitor) -> None:
    assert (await send(staff, b"," * (16 * MIB))).status_code == 413


async def test_a_large_form_without_a_file_is_not_decoded(staff: Visitor) -> None:
    assert (await staff.post("/import", name="a" * 200_000)).status_code == 413


async def test_a_file_may_arrive_later_than_a_form(
    staff: Visitor, database: Path, clock: ManualClock
) -> None:
    async with running_service(database, clock, body_timeout=0.05) as hasty:
        person, is_begun, is_late = newcomer(hasty), asyncio.Event(), asyncio.Event()
        person.client.cookies = staff.client.cookies
        body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        headers = SAME_ORIGIN | {"content-type": "multipart/form-data; boundary=x"}

        async def slow() -> AsyncIterator[bytes]:
            is_begun.set()
            await is_late.wait()
            yield body + HEADER + rows(1) + b"\r\n--x--"

        async def post(path: str) -> int:
            response = await person.client.post(path, content=slow(), headers=headers)
            return response.status_code

        sending = asyncio.create_task(post("/console/import"))
        await is_begun.wait()
        assert await post("/console/pets") == 408
        is_late.set()
        assert await sending == 303


async def test_one_file_of_a_key_is_received_at_a_time(staff: Visitor, service: Service) -> None:
    asked: list[str] = []
    first_has_come = asyncio.Event()

    def sent(visitor: Visitor, name: str) -> asyncio.Task[Response]:
        async def receive() -> bytes:
            asked.append(name)
            if name == "first":
                await first_has_come.wait()
            return b""

        cookie = visitor.client.cookies["petstore_console"]
        headers = [
            (b"host", b"petstore.test"),
            (b"cookie", f"petstore_console={cookie}".encode()),
            (b"sec-fetch-site", b"same-origin"),
            (b"content-type", b"multipart/form-data; boundary=x"),
            (b"transfer-encoding", b"chunked"),
        ]
        request = http_request("POST", b"/console/import", headers)
        return asyncio.ensure_future(service.app(request, receive))

    first = sent(staff, "first")
    await eventually(lambda: asked == ["first"])
    second = sent(staff, "second")
    other = await sent(await signed_in(service), "of another key")
    assert asked == ["first", "of another key"]
    first_has_come.set()
    assert [(await each).status for each in (first, second)] == [400, 400]
    assert other.status == 400
    assert asked[2:] == ["second"]


async def test_an_import_works_without_listing_animals(service: Service) -> None:
    writer = await signed_in(service, scopes=frozenset({"pets:write"}))
    path, _ = await preview(writer, HEADER + rows(1))
    assert "Show the newest animals" not in (await writer.submit(path)).text
