"""The pages of imports."""

import asyncio
import csv
import io
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unicodedata import normalize

import httpx
import pytest

from petstore.categories.model import CategoryCreate
from petstore.databases.contract import Statement
from petstore.http.messages import Response
from petstore.keys.model import SCOPES
from petstore.limits.turns import Turns
from petstore.pets import import_pages as imports
from petstore.pets.console_imports import MAX_IMPORTS
from petstore.pets.import_preparation import BATCH, MAX_UNDECIDED
from support.bare_app import http_request
from support.changes import create_category
from support.manual_clock import ManualClock
from support.page_forms import buttons_of, form_of, press, succeed
from support.service import Service, running_service
from support.visitor import SAME_ORIGIN, Visitor, newcomer, signed_in, words
from support.waiting import eventually

pytestmark = pytest.mark.anyio

HEADER = b"name,categoryId,status\n"
MIB = 2**20


async def with_category(service: Service) -> Service:
    """Return a service with the category 1."""
    await service.store.write(create_category(CategoryCreate("Animals")))
    return service


@pytest.fixture
async def service(service: Service) -> Service:
    """The service, with the category of the animals in the files."""
    return await with_category(service)


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
        (HEADER + b"M\xfcsli,1,\n", "line 2, column name: expected UTF-8"),
        (b"," * (8 * MIB + 1), "expected at most 8 MiB, got 8,388,609 bytes"),
    ],
    ids=["empty", "latin-1", "large"],
)
async def test_an_invalid_file_is_refused_with_a_clear_message(
    staff: Visitor, content: bytes, message: str
) -> None:
    refused = await send(staff, content)
    assert refused.status_code == 400
    assert message in refused.text
    assert '<a href="#file">CSV file</a>: ' in refused.text
    assert 'aria-invalid="true"' in refused.text
    assert "Download an example file" in refused.text


FILE = ("a.csv", HEADER + rows(1))


@pytest.mark.parametrize(
    ("files", "name", "status", "message"),
    [
        (None, "", 400, "choose a CSV file first"),
        ({"file": ("", b"", "application/octet-stream")}, "", 400, "choose a CSV file first"),
        ({"other": FILE}, "", 400, "choose a CSV file first"),
        ([("file", FILE), ("other", FILE)], "", 400, "expected one file"),
        ({"file": ("a.csv", b"," * (16 * MIB))}, "", 413, ""),
        ({"file": FILE}, "a" * 200_000, 413, ""),
        (None, "a" * 200_000, 413, ""),
    ],
    ids=["none", "empty", "other", "two", "large", "large-text", "text-alone"],
)
async def test_a_form_without_the_file_and_a_large_form_are_refused(
    staff: Visitor, files: Any, name: str, status: int, message: str
) -> None:
    refused = await staff.post("/import", files, **({"name": name} if name else {}))
    assert refused.status_code == status
    assert message in refused.text


async def test_the_example_can_be_imported(staff: Visitor) -> None:
    assert "/console/import/example.csv" in (await staff.get("/import")).text
    example = await staff.get("/import/example.csv")
    assert saved(example)[0] == ["name", "category", "status"]
    other = await staff.get("/import/example.csv", separator="semicolon")
    assert saved(other)[0] == ["name;category;status"]
    for file in (example, other):
        _, page = await preview(staff, file.content)
        assert re.search("Add .*2.* animals</span></button>", page)


async def test_the_preview_shows_the_animals_to_add_and_adds_none(
    staff: Visitor, service: Service
) -> None:
    content = HEADER + b"<b>Bella</b>,1,sold\nRex,,\n" + rows(30)
    path, page = await preview(staff, content, "<i>.csv")
    assert "&lt;b&gt;Bella&lt;/b&gt;" in page
    assert "&lt;i&gt;.csv" in page
    assert "Animal 18" in page
    assert "Animal 19" not in page
    assert "Animals to add: the first 20" in page
    row = r'<td class="number">3</td><td><bdi>Rex,,\s*</bdi><p class="hint">Category: expected'
    assert re.search(row, page.replace("<wbr>", ""))
    assert '<button><span>Add <data value="31">31</data> animals</span></button>' in page
    assert "data-continue" not in page
    assert await names(staff, service) == []
    assert f"/console{path}" in (await staff.get("/import")).text


async def test_a_thousand_rows_are_added_at_once(staff: Visitor, service: Service) -> None:
    path, _ = await preview(staff, HEADER + rows(999) + b"Rex,,\n")
    done = await staff.submit(path)
    assert '<data value="999">999</data> animals added, <data value="1">1</data> row' in done.text
    assert "Their ids are between 1 and 999." in done.text
    assert "Show the newest animals" in done.text
    assert await names(staff, service) == [f"Animal {n}" for n in range(999)]
    again = await staff.submit(path)
    assert again.text == done.text
    assert len(await names(staff, service)) == 999


@pytest.mark.each_database
async def test_another_process_resumes_an_import_after_a_kill(
    address: str, clock: ManualClock
) -> None:
    async with running_service(address, clock) as service:
        before = await signed_in(await with_category(service))
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


async def test_refused_rows_can_be_downloaded_safely_and_corrected(staff: Visitor) -> None:
    content = HEADER + b'Bella,1,\n=1+1,,sold\n"a""b"x,1,\n'
    path, page = await preview(staff, content)
    assert f"/console{path}/refused.csv" in page
    for _ in range(2):  # before it is imported, and after that
        file = await staff.get(f"{path}/refused.csv")
        header, formula, broken = saved(file)
        assert header == ["line", "reason", "name", "categoryId", "status"]
        assert formula[0] == "3"
        assert formula[1].startswith("Category: expected the name or the number of a category")
        assert formula[2:] == ["'=1+1", "", "sold"]
        assert broken[1].startswith("expected CSV (")
        assert broken[2:] == ['"a""b"x,1,\n']
        await staff.submit(path)
    _, page = await preview(staff, file.content.replace(b"1+1,,", b"1+1,1,"))
    assert '<button><span>Add <data value="1">1</data> animal</span></button>' in page


async def test_head_of_the_refused_rows_writes_no_file(
    staff: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = await preview(staff, HEADER + b"=1+1,,sold\n")
    monkeypatch.setattr(imports, "cells_writer", None)
    head = await staff.client.head(f"/console{path}/refused.csv", headers=SAME_ORIGIN)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == "text/csv; charset=utf-8"
    assert "content-length" not in head.headers


async def test_the_refused_rows_of_a_file_with_semicolons_have_semicolons(staff: Visitor) -> None:
    path, _ = await preview(staff, b'name;categoryId\nBella;1\n=1;\n"a;b,c";\n')
    file = await staff.get(f"{path}/refused.csv")
    header, formula, other = file.content.decode("utf-8-sig").splitlines()
    assert header == "line;reason;name;categoryId"
    assert formula.endswith(";'=1;")
    assert other.endswith(';"a;b,c";')
    _, page = await preview(staff, file.content.replace(b"=1;", b"=1;1"))
    assert re.search("Add .*1.* animal</span></button>", page)


async def test_a_category_can_be_given_by_name(staff: Visitor, service: Service) -> None:
    for name in ("Dogs", "Élans"):
        await staff.submit("/categories", name=name)
    content = "name;category;status\nBella;DOGS;sold\nRex;1;\nKim; élans ;\nNo;;\n"
    path, page = await preview(staff, content.encode())
    assert re.search("Add .*3.* animals</span></button>", page)
    assert "Category: expected the name or the number of a category</p>" in page
    assert "<bdi>Élans</bdi>" in page
    await staff.submit(path)
    found = await service.request("GET", "/v1/pets", staff.token)
    assert [(pet["name"], pet["categoryId"]) for pet in found.json()] == [
        ("Bella", 2),
        ("Rex", 1),
        ("Kim", 3),
    ]


COLUMNS = {"name": "0", "categoryId": "1", "status": ""}


async def test_columns_are_chosen_where_it_is_not_sure_which_they_are(
    staff: Visitor, service: Service
) -> None:
    content = "Tier;Art;Status\nBella;1;Sold\n\nRex;1;reserviert\n"
    path, page = await preview(staff, content.encode())
    assert "which column is the name, and which is the category." in page
    assert "<td><bdi>reserviert</bdi></td>" in page
    assert "Refused rows" not in page
    assert '<option value="2" selected>Status</option>' in page
    assert buttons_of(await staff.get(path)) == ["Use these columns", "Discard"]
    assert (await staff.post(path)).status_code == 303  # and nothing is added
    chosen = await staff.submit(f"{path}/columns", **COLUMNS | {"status": "2"})
    assert "1 animal to add, 1 row refused." in words(chosen)
    assert "4Rex;1;reserviert Status: expected available, pending or sold; got 'reser" in words(
        chosen
    )
    assert "NameTier CategoryArt" in words(chosen)
    assert (await staff.get(path)).status_code == 404
    await staff.submit(chosen.url.path.removeprefix("/console"))
    assert await names(staff, service) == ["Bella"]


async def test_likely_columns_are_suggested(staff: Visitor) -> None:
    path, _ = await preview(staff, b"Preis;Nmae;Categroy\n1,50;Bella;1\n")
    form = form_of(await staff.get(path), "Use these columns")
    assert form.fields == {"name": "1", "categoryId": "2", "status": ""}
    chosen = await staff.submit(form.path, **form.fields)
    assert "Not usedPreis" in words(chosen)


async def test_other_columns_can_be_chosen_before_anything_is_added(staff: Visitor) -> None:
    path, page = await preview(staff, HEADER[:-1] + b",Tier\n" + b"x,1,active,Bella\n")
    assert "<details open>" in page
    chosen = await staff.submit(f"{path}/columns", **COLUMNS | {"name": "3"})
    assert "NameTier Not usedname, status" in words(chosen)
    path = chosen.url.path.removeprefix("/console")
    assert "<bdi>Bella</bdi></td>" in chosen.text
    await staff.submit(path)
    refused = await staff.post(f"{path}/columns", **COLUMNS)
    assert refused.status_code == 409
    assert "send the file again for other columns" in words(refused)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"name": ""}, "Name: choose the column that has it"),
        ({"name": "9"}, "Name: choose the column that has it"),
        ({"categoryId": "-1"}, "Category: choose the column that has it"),
        ({"categoryId": "0"}, "Category: choose another column; one column cannot be two fields"),
        ({"status": "1"}, "Status: choose another column"),
    ],
)
async def test_columns_that_cannot_be_are_refused(
    staff: Visitor, chosen: dict[str, str], message: str
) -> None:
    path, _ = await preview(staff, b"Tier;Art\nBella;1\n")
    refused = await staff.post(f"{path}/columns", **COLUMNS | chosen)
    assert refused.status_code == 400
    assert message in words(refused)
    (field, place), *_ = chosen.items()
    assert form_of(refused, "Use these columns").fields[field] in (place, "")


async def test_a_file_with_many_and_long_names_of_columns_is_shown_shortened(
    staff: Visitor,
) -> None:
    columns = "".join(f",{'x' * 60} {number}" for number in range(200))
    _, page = await preview(staff, f"name,category{columns}\nBella,1\n".encode())
    assert f"<bdi>{'x' * 40}…</bdi>" in page
    assert "and 180 more</dd>" in page
    _, page = await preview(staff, f"Tier,,Art{columns}\nBella,,1\n".encode())
    assert "These are the first 12 columns of 203." in page
    assert '<option value="1">column 2</option>' in page


UNKNOWN = b"name;category\nA;Cats\nB;999\nC;1\nD;cats \nE;Birds\n"


def question(response: httpx.Response) -> str:
    return words(response).partition("Categories to decide about ")[2].partition(" Columns")[0]


async def test_an_unknown_category_is_asked_about_once_and_its_rows_wait(
    staff: Visitor, service: Service
) -> None:
    path, page = await preview(staff, UNKNOWN)
    shown = await staff.get(path)
    assert "1 animal to add, 0 rows refused, 4 rows to decide about." in words(shown)
    assert [text in question(shown) for text in ("Cats, 2 rows", "Number 999, 1 row", "Birds, 1")]
    assert page.count(">Add this category</option>") == 3  # of Cats, Birds and all the others
    assert page.count(">Use \u2068Animals\u2069</option>") == 3
    done = await staff.submit(path)
    assert await names(staff, service) == ["C"]
    assert "1 animal added, 0 rows refused so far, 4 rows to decide about." in words(done)
    assert "Go on" not in buttons_of(done)
    assert '<progress id="done" max="5" value="1">' in done.text
    assert (await staff.get(f"{path}/refused.csv")).text.count("\n") == 1


async def test_a_category_is_added_or_another_taken_or_its_rows_are_left_out(
    staff: Visitor, service: Service
) -> None:
    path, _ = await preview(staff, UNKNOWN)
    await staff.submit(path)
    decisions = {"category.Cats": "add", "category.999": "leave", "category.Birds": "1"}
    decided = await staff.submit(f"{path}/categories", **decisions)
    assert "You decided about 3 categories." in words(decided)
    assert "Categories to decide about" not in words(decided)
    assert "3B;999 Category: left out, because there was no such category" in words(decided)
    done = await staff.submit(path)
    assert "4 animals added, 1 row refused." in words(done)
    found = await service.request("GET", "/v1/pets", staff.token)
    added = {pet["name"]: pet["categoryId"] for pet in found.json()}
    assert added == {"A": 2, "C": 1, "D": 2, "E": 1}
    categories = await service.request("GET", "/v1/categories", staff.token)
    assert [each["name"] for each in categories.json()] == ["Animals", "Cats"]
    (row,) = saved(await staff.get(f"{path}/refused.csv"))[1:]
    assert row[0].startswith("3;Category: left out")


async def test_a_decision_can_wait_and_one_can_be_for_all_the_others(staff: Visitor) -> None:
    path, _ = await preview(staff, UNKNOWN)
    later = await staff.submit(f"{path}/categories", **{"category.Cats": "1"})
    assert "You decided about 1 category." in words(later)
    assert "3 animals to add, 0 rows refused, 2 rows to decide about." in words(later)
    later = await staff.submit(f"{path}/categories", others="add")
    assert "4 animals to add, 0 rows refused, 1 row to decide about." in words(later)
    assert "All the others" not in words(later)
    decided = await staff.submit(f"{path}/categories", others="leave")
    assert "4 animals to add, 1 row refused." in words(decided)


async def test_a_category_called_others_is_added_beside_what_is_for_all_the_others(
    staff: Visitor,
) -> None:
    path, _ = await preview(staff, b"name;category\nA;Others\nB;Cats\nC;Birds\n")
    decisions = {"category.Others": "add", "others": "1"}
    decided = await staff.submit(f"{path}/categories", **decisions)
    assert "A no status Others 2 B no status Animals 3 C no status Animals 4" in words(decided)


async def test_without_a_decision_all_rows_wait(staff: Visitor) -> None:
    path, _ = await preview(staff, UNKNOWN)
    before = await staff.get(path)
    form = form_of(before, "Use these decisions")
    assert set(form.fields.values()) == {""}
    assert words(await staff.submit(form.path, **form.fields)) == words(before)


async def test_who_may_not_list_categories_any_more_is_offered_none(
    staff: Visitor, service: Service
) -> None:
    path, _ = await preview(staff, UNKNOWN)
    admin = await service.issue(scopes=frozenset(SCOPES))
    await service.request(
        "PATCH", f"/v1/keys/{staff.key_id}", admin.token, json={"scopes": ["pets:write"]}
    )
    page = (await staff.get(path)).text
    assert "Use \u2068Animals" not in page
    assert page.count(">Leave out</option>") == 4


async def test_an_import_whose_rows_are_all_left_out_ends(staff: Visitor) -> None:
    path, _ = await preview(staff, UNKNOWN)
    await staff.submit(path)
    done = await staff.submit(f"{path}/categories", others="leave")
    assert "1 animal added, 4 rows refused. Its id is 1." in words(done)
    path, _ = await preview(staff, b"name;category\nA;Dogs\n")
    done = await staff.submit(f"{path}/categories", **{"category.Dogs": "leave"})
    assert "No row of this file can be added." in words(done)


@pytest.mark.parametrize(
    ("decision", "meant"),
    [
        ({"category.Dogs": "77"}, ""),
        ({"other.Dogs": "9" * 19}, ""),
        ({"other.Dogs": "Cats"}, ""),
        ({"other.Dogs": "\uff11"}, ". Did you mean Kind 1 or Kind 10 or Kind 11?"),
        ({"other.Dogs": "Kind 7x"}, ". Did you mean Kind 7 or Kind 27 or Kind 17?"),
    ],
)
async def test_a_decision_for_no_category_is_refused_and_stays_typed(
    staff: Visitor, decision: dict[str, str], meant: str
) -> None:
    for number in range(30):
        await staff.submit("/categories", name=f"Kind {number}")
    path, page = await preview(staff, b"name;category\nA;Dogs\nB;Owls\n")
    assert '<option value="Kind 9">' in page
    refused = await staff.post(f"{path}/categories", **decision, **{"category.Owls": "leave"})
    assert refused.status_code == 400
    (text,) = decision.values()
    assert f"There is no category “{text}”{meant}" in words(refused)
    sent = form_of(refused, "Use these decisions").fields
    assert sent["other.Dogs"] == decision.get("other.Dogs", "")


async def test_with_many_categories_a_person_types_one(staff: Visitor) -> None:
    for number in range(30):
        await staff.submit("/categories", name=f"Kind {number}")
    path, _ = await preview(staff, b"name;category\nA;Dogs\nB;Owls\n")
    typed = {"other.Dogs": "kind 9", "category.Dogs": "leave", "other.Owls": "31"}
    await staff.submit(f"{path}/categories", **typed)
    preview_ = words(await staff.get(path))
    assert "A no status Kind 9 2 B no status Kind 29 3" in preview_


async def test_a_category_that_somebody_added_meanwhile_is_taken(staff: Visitor) -> None:
    path, _ = await preview(staff, b"name;category\nA;dogs\n")
    await staff.submit("/categories", name="Dogs")
    decided = await staff.submit(f"{path}/categories", **{"category.dogs": "add"})
    assert "A no status Dogs 2" in words(decided)


async def test_nothing_is_decided_if_one_decision_is_refused(staff: Visitor) -> None:
    path, _ = await preview(staff, UNKNOWN)
    decisions = {"category.Cats": "add", "category.999": "998", "category.Birds": "1"}
    refused = await staff.post(f"{path}/categories", **decisions)
    assert refused.status_code == 400
    assert "1 animal to add, 0 rows refused, 4 rows to decide about." in words(refused)
    assert "Cats" not in (await staff.get("/categories")).text
    sent = form_of(refused, "Use these decisions").fields
    assert sent == decisions | {"category.999": "", "other.999": "", "others": ""}


async def test_a_refused_decision_for_all_the_others_is_told_once(staff: Visitor) -> None:
    path, _ = await preview(staff, UNKNOWN)
    refused = await staff.post(f"{path}/categories", others="77")
    assert "All the others: there is no category “77”" in words(refused)
    assert refused.text.count('aria-invalid="true"') == 1
    assert 'href="#others"' in refused.text
    assert 'id="others"' in refused.text


async def with_kinds(staff: Visitor, *names: str) -> None:
    for name in (*names, *(f"Kind {number}" for number in range(30))):
        await staff.submit("/categories", name=name)


async def test_each_name_that_is_mistyped_is_told_at_its_field_with_those_that_may_be_meant(
    staff: Visitor,
) -> None:
    await with_kinds(staff, "Dogs", "Cats", "Turtles")
    path, _ = await preview(staff, b"name;category\nA;Hund\nB;Big cat\nC;Panzer\nD;Owls\n")
    typed = {"other.Hund": "Dgos", "other.Big cat": "Catz", "other.Panzer": "Tortle"}
    mended = {"other.Big cat": "Cats", "other.Panzer": "Turtles", "category.Owls": "leave"}
    refused = await staff.post(f"{path}/categories", **mended | typed)
    assert refused.status_code == 400
    assert "3 fields need another look: Hund: there is no category “Dgos”" in words(refused)
    assert re.findall('href="#(other[^"]*)"', refused.text) == ["other-1", "other-2", "other-3"]
    wrong = re.findall('<input id="([^"]*)"[^>]* aria-invalid="true"', refused.text)
    assert wrong == ["other-1", "other-2", "other-3"]
    ways = re.findall('name="(instead_[^"]*)" value="([^"]*)">Use', refused.text)
    meant = ["Dogs", "Cats", "Turtles"]
    assert ways == [(f"instead_{name}", one) for name, one in zip(typed, meant, strict=True)]
    assert "<details>" in refused.text
    assert "4 rows to decide about" in words(refused)
    taken = {"instead_other.Hund": "Dogs"}
    again = await press(staff, refused, "Use these decisions", **taken)
    assert form_of(again, "Use these decisions").fields == mended | typed | {
        "other.Hund": "Dogs",
        "other.Owls": "",
        "others": "",
        **{f"category.{name}": "" for name in ("Hund", "Big cat", "Panzer")},
    }
    done = await succeed(staff, refused, "Use these decisions", **mended, **taken)
    assert "You decided about 4 categories." in words(done)
    assert "A no status Dogs 2 B no status Cats 3 C no status Turtles 4" in words(done)


async def test_only_the_first_names_that_are_mistyped_get_suggestions(staff: Visitor) -> None:
    await with_kinds(staff)
    path, _ = await preview(staff, b"name;category\n" + b"".join(b"A;%c\n" % n for n in b"abcdef"))
    typed = {f"other.{name}": f"Knid 1{name}" for name in "abcdef"}
    refused = await staff.post(f"{path}/categories", **typed)
    assert refused.text.count('aria-invalid="true"') == 6
    assert set(re.findall('name="instead_other.(.)"', refused.text)) == set("abcde")


async def test_a_list_of_categories_begins_with_those_that_a_file_may_mean(staff: Visitor) -> None:
    for name in ("Birds", "Cats", "Dogs"):
        await staff.submit("/categories", name=name)
    path, page = await preview(staff, b"name;category\nA;Dgos\nB;Hamster\nC;9\n")
    first, second = page.split('<select id="category-')[1:3]
    used = [re.findall(r">Use \u2068(\w+)", each) for each in (first, second)]
    assert used == [["Dogs", "Animals", "Birds", "Cats"], ["Animals", "Birds", "Cats", "Dogs"]]
    assert words(await staff.get(path)).count("Did you mean Dogs?") == 1
    chosen = form_of(await staff.get(path), "Use these decisions").fields
    assert set(chosen.values()) == {""}


async def test_a_file_with_many_unknown_categories_asks_about_some(staff: Visitor) -> None:
    content = b"name;category\n" + b"".join(b"A;Kind %d\n" % number for number in range(5_000))
    path, page = await preview(staff, content)
    assert page.count('name="category.') == MAX_UNDECIDED
    assert "The rows of further ones are refused." in page
    assert "Category: no category has the name 'Kind 20'" in words(await staff.get(path))
    assert "20 rows to decide about" in words(await staff.get(path))


@pytest.mark.parametrize("name", ["x" * 101, "a\nb", "a\0b"])
async def test_a_text_that_no_category_can_have_is_refused(staff: Visitor, name: str) -> None:
    content = f'name;category\nA;"{name}"\nB;1\n'
    _, page = await preview(staff, content.encode())
    assert "Categories to decide about" not in page
    assert "Category: no category has the name" in page


async def test_a_decomposed_name_of_an_undecided_category_waits_too(staff: Visitor) -> None:
    name = "\u00c9" * 60
    content = f"name;category\nA;{name}\nB;{normalize('NFD', name)}\n"
    path, _ = await preview(staff, content.encode())
    assert "2 rows to decide about" in words(await staff.get(path))


async def test_a_row_with_another_fault_asks_nothing(staff: Visitor) -> None:
    content = b"name;category;status\n;Cats;sold\nA;Dogs;gone\nB;999 9;\n"
    path, page = await preview(staff, content)
    shown = await staff.get(path)
    assert "Name: expected 1 to 255 characters" in words(shown)
    assert "Status: expected available, pending or sold; got 'gone'" in words(shown)
    assert page.count('name="category.') == 1


@pytest.mark.parametrize("order", [1, -1])
async def test_a_refused_row_says_everything_that_is_wrong_with_it(
    staff: Visitor, order: int
) -> None:
    status = "Status: expected available, pending or sold; got 'gone'"
    expected = {
        ("A", "Dgos", "gone"): {"Category: no category has the name 'Dgos'", status},
        ("B", "999", "gone"): {
            "Category: expected a registered category; there is no category 999",
            status,
        },
        ("", "Cats", ""): {
            "Name: expected 1 to 255 characters, not only spaces",
            "Category: no category has the name 'Cats'",
        },
        ("C", "", "gone"): {"Category: expected the name or the number of a category", status},
        ("D", "animals", "gone"): {status},
        ("E", "1", "gone"): {status},
    }
    rows = [("name", "category", "status"), *expected]
    content = "".join(",".join(row[::order]) + "\n" for row in rows)
    path, page = await preview(staff, content.encode())
    assert "Categories to decide about" not in page
    refused = saved(await staff.get(f"{path}/refused.csv"))[1:]
    assert [set(row[1].split(". ")) for row in refused] == [*expected.values()]


async def test_without_the_scope_to_list_categories_unknown_ones_are_refused(
    service: Service,
) -> None:
    writer = await signed_in(service, scopes=frozenset({"pets:write"}))
    path, page = await preview(writer, b"name,category\nBella,Animals\nRex,999\nTom,1\n")
    assert "Categories to decide about" not in page
    assert "Category: expected the number of a category" in page
    assert "there is no category 999" in page
    assert "1 animal to add, 2 rows refused." in words(await writer.get(path))
    assert 'hue-1"><bdi>1</bdi>' in page


async def test_the_file_has_all_refused_rows_and_the_page_only_some(staff: Visitor) -> None:
    path, page = await preview(staff, HEADER + (rows(BATCH - 5) + b"Rex,,\n" * 5) * 6)
    assert "Refused rows: the first 20" in page
    assert page.count('<p class="hint">Category: expected the name or the number') == 20
    assert len(saved(await staff.get(f"{path}/refused.csv"))) == 31


async def test_other_requests_are_served_while_refused_rows_are_written(staff: Visitor) -> None:
    path, _ = await preview(staff, HEADER + (b"x," * 200 + b"\n") * 2_000)
    turns, saving = 0, asyncio.create_task(staff.get(f"{path}/refused.csv"))
    while not saving.done():
        await asyncio.sleep(0)
        turns += 1
    assert len(saved(await saving)) == 2_001
    assert turns > 20


async def test_a_file_without_a_valid_row_cannot_be_imported(staff: Visitor) -> None:
    _, page = await preview(staff, HEADER + b"Rex,,\n")
    assert "No row of this file can be added." in page
    assert "<progress" not in page
    assert 'refused.csv" download' in page


async def test_a_file_that_was_imported_before_is_imported_again_only_after_a_warning(
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


async def test_animals_of_a_category_deleted_meanwhile_are_refused(
    staff: Visitor, service: Service
) -> None:
    path, _ = await preview(staff, HEADER + b"Bella,1,\n")
    await service.request("DELETE", "/v1/categories/1", staff.token)
    done = await staff.submit(path)
    assert "0 animals added, 1 row refused" in words(done)
    assert "Category: expected a registered category; there is no category 1" in words(done)
    assert await names(staff, service) == []


async def test_a_stopped_import_stays_with_the_animals_that_it_added_and_adds_no_more(
    staff: Visitor, service: Service
) -> None:
    path, page = await preview(staff, HEADER + rows(6 * BATCH), "animals.csv")
    assert "Discard" in page
    assert "Stop here" in (await staff.post(path)).text
    stopped = await staff.submit(f"{path}/discard")
    told = "The import of animals.csv has stopped. The 1,000 animals that it added stay."
    assert told in words(stopped)
    assert "1 000 animals added, 0 rows refused." in words(stopped)
    assert words(await staff.submit(path)) == words(await staff.get(path))
    assert len(await names(staff, service)) == 5 * BATCH
    path, _ = await preview(staff, HEADER + rows(1), "animals.csv")
    gone = await staff.submit(f"{path}/discard")
    assert "The import of animals.csv is gone." in words(gone)
    assert "animals that it added" not in gone.text
    assert (await staff.get(path)).status_code == 404


async def test_unfinished_imports_are_limited_for_each_key(staff: Visitor) -> None:
    for count in range(MAX_IMPORTS):
        await preview(staff, HEADER + rows(1 + count))
    refused = await send(staff, HEADER + rows(99))
    assert refused.status_code == 409
    assert "finish or discard one first" in refused.text


PART = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'


async def test_an_upload_gets_more_time_as_it_arrives(
    staff: Visitor, database: Path, clock: ManualClock
) -> None:
    async with running_service(database, clock, body_timeout=0.05) as hasty:
        person, is_begun, is_late = newcomer(hasty), asyncio.Event(), asyncio.Event()
        person.client.cookies = staff.client.cookies
        headers = SAME_ORIGIN | {"content-type": "multipart/form-data; boundary=x"}

        async def slow(begun: bytes) -> AsyncIterator[bytes]:
            yield begun
            is_begun.set()
            await is_late.wait()
            yield rows(1) + b"\r\n--x--"

        async def post(path: str, begun: bytes) -> int:
            response = await person.client.post(path, content=slow(begun), headers=headers)
            return response.status_code

        # At 64 KiB a second, this has more than ten seconds.
        begun = PART + HEADER + (b"x" * 16_000 + b",1,\n") * 50
        sending = asyncio.create_task(post("/console/import", begun))
        await is_begun.wait()
        assert await post("/console/import", PART) == 408
        assert await post("/console/pets", b"name=") == 408
        is_late.set()
        assert await sending == 303


class Sender:
    """A browser whose files begin to arrive, and end when the test says so."""

    def __init__(self, service: Service, visitor: Visitor) -> None:
        self._service = service
        self._cookie = visitor.client.cookies["petstore_console"]
        self.is_whole = asyncio.Event()
        self.asked = 0

    def send(self, content: bytes = HEADER + rows(1)) -> asyncio.Task[Response]:
        pieces = iter([PART + content + b"\r\n--x--"])

        async def receive() -> bytes:
            self.asked += 1
            await self.is_whole.wait()
            return next(pieces, b"")

        headers = [
            (b"host", b"petstore.test"),
            (b"cookie", f"petstore_console={self._cookie}".encode()),
            (b"sec-fetch-site", b"same-origin"),
            (b"content-type", b"multipart/form-data; boundary=x"),
            (b"transfer-encoding", b"chunked"),
        ]
        request = http_request("POST", b"/console/import", headers)
        return asyncio.ensure_future(self._service.app(request, receive))


async def test_a_slow_upload_does_not_block_its_key(staff: Visitor, service: Service) -> None:
    slow = Sender(service, staff)
    sending = slow.send()
    await eventually(lambda: slow.asked)
    path, _ = await preview(staff, HEADER + rows(2))
    await staff.submit(path)
    assert len(await names(staff, service)) == 2
    assert (await staff.get("/export/pets.csv")).status_code == 200
    slow.is_whole.set()
    assert (await sending).status == 303


async def test_concurrent_uploads_are_limited_for_each_key(
    staff: Visitor, service: Service
) -> None:
    slow = Sender(service, staff)
    sending = [slow.send(HEADER + rows(1 + number)) for number in range(4)]
    await eventually(lambda: slow.asked == 4)
    refused = await send(staff, HEADER + rows(1))
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert "have 4 files on their way: wait until one has arrived" in words(refused)
    assert (await staff.get("/export/pets.csv")).status_code == 429
    other = await signed_in(service)
    assert (await send(other, HEADER + rows(1))).status_code == 303
    slow.is_whole.set()
    assert {(await each).status for each in sending} == {303}
    assert (await send(staff, HEADER + rows(1))).status_code == 303


async def test_concurrent_uploads_are_limited_for_each_process(
    staff: Visitor, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_service(service.settings.database, service.clock) as full:
        monkeypatch.setattr(full.app.services.admission, "files", Turns("files", 1))
        slow, other = Sender(full, staff), Sender(full, await signed_in(full))
        first = slow.send()
        await eventually(lambda: slow.asked)
        second = other.send()
        other.is_whole.set()
        page = await newcomer(full).get("/sign-in")
        assert page.status_code == 200
        assert not other.asked
        slow.is_whole.set()
        assert [(await each).status for each in (first, second)] == [303, 303]


async def test_a_slow_upload_counts_as_a_concurrent_upload(
    staff: Visitor, service: Service
) -> None:
    path, _ = await preview(staff, HEADER + b"Rex,,\n")
    cookie = staff.client.cookies["petstore_console"].encode()
    headers = [(b"host", b"petstore.test"), (b"cookie", b"petstore_console=" + cookie)]
    target = f"/console{path}/refused.csv".encode()
    unread = [await service.call("GET", target, headers) for _ in range(4)]
    assert {response.status for response in unread} == {200}
    assert (await staff.get(f"{path}/refused.csv")).status_code == 429
    sent = unread.pop()
    assert sent.file is not None
    sent.file.close()
    del sent
    assert (await staff.get(f"{path}/refused.csv")).status_code == 200
    for response in unread:
        assert response.file is not None
        response.file.close()


async def test_a_full_disk_is_reported_and_uploads_work_once_there_is_space(
    staff: Visitor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, _ = await preview(staff, HEADER + b"Rex,,\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    for refused in (await staff.get(f"{path}/refused.csv"), await send(staff, HEADER + rows(1))):
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
    monkeypatch.undo()
    assert len(saved(await staff.get(f"{path}/refused.csv"))) == 2


async def used_today(visitor: Visitor, service: Service) -> int:
    usage = await service.request("GET", "/v1/usage", visitor.token)
    day = usage.json()["day"]
    return int(day["limit"] - day["remaining"])


async def test_each_animal_counts_as_one_request_of_the_day_but_none_of_the_minute(
    service: Service,
) -> None:
    shop = await signed_in(service, plan="free")
    path, page = await preview(shop, HEADER + rows(300) + b"Rex,,\n")
    assert 'Each animal costs a request of your key. It has <data value="1000">' in page
    assert await used_today(shop, service) == 0
    await shop.submit(path)
    await shop.get(f"{path}/refused.csv")
    assert await used_today(shop, service) == 300
    usage = await service.request("GET", "/v1/usage", shop.token)
    assert usage.json()["minute"]["remaining"] == 60
    assert "data-continue" not in (await shop.get(path)).text


async def test_an_import_stops_at_the_day_limit_and_resumes_the_next_day(
    service: Service, clock: ManualClock
) -> None:
    shop = await signed_in(service, plan="free")
    await service.request("GET", "/v1/pets", shop.token)
    path, page = await preview(shop, HEADER + rows(1_500))
    assert 'and it has <data value="999">999</data> left until' in page
    assert "Go on after that, or when your key has a larger plan: the other rows wait" in page
    page = (await shop.submit(path)).text
    assert '<progress id="done" max="1500" value="999">' in page
    assert 'and it has <data value="0">0</data> left until' in page
    assert f'action="/console{path}"' not in page
    assert "Stop here" in page
    assert (await service.request("GET", "/v1/pets", shop.token)).status_code == 429
    await shop.submit(path)
    pets = Statement("SELECT name FROM pets ORDER BY id")
    assert len(await service.store.read(pets)) == 999
    clock.advance(24 * 60 * 60)
    await shop.post("/sign-in", key=shop.token)
    done = await shop.submit(path)
    assert "1 500 animals added" in words(done)
    added = await service.store.read(pets)
    assert added == [(f"Animal {n}",) for n in range(1_500)]


async def test_two_tabs_cannot_import_beyond_the_day_limit(service: Service) -> None:
    shop = await signed_in(service, plan="free")
    paths = [(await preview(shop, HEADER + rows(900 + n)))[0] for n in range(3)]
    await asyncio.gather(*(shop.post(path) for path in paths))
    pets = await service.store.read(Statement("SELECT count(*) FROM pets"))
    assert pets == [(1_000,)]


async def test_a_banned_key_cannot_import(service: Service, clock: ManualClock) -> None:
    shop = await signed_in(service, plan="free")
    path, page = await preview(shop, HEADER + rows(1))
    while "banned" not in (await service.request("GET", "/v1/pets", shop.token)).text:
        clock.advance(0.1)
    page = (await shop.submit(path)).text
    assert "Your key is banned until" in page
    assert "The key is banned until" in (await shop.get("/import")).text
    assert await service.store.read(Statement("SELECT count(*) FROM pets")) == [(0,)]


async def test_an_import_does_not_need_the_scope_to_list_animals(service: Service) -> None:
    writer = await signed_in(service, scopes=frozenset({"pets:write"}))
    path, _ = await preview(writer, HEADER + rows(1))
    assert "Show the newest animals" not in (await writer.submit(path)).text
