"""Animals into files: and what goes out comes back in unchanged."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from petstore.databases.contract import Store
from petstore.pets.exports import ExportPart, export_pets
from petstore.pets.files import FileFormat, open_import_file
from petstore.pets.imports import ImportRun, import_pets
from petstore.pets.model import NewPet, Pet, PetFilter
from petstore.pets.store import list_pets
from support.changes import create_pets
from support.exploration import explored
from support.manual_clock import ManualClock
from support.stores import open_store
from support.strategies import new_pets

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

TRICKY = [
    NewPet(name, 1)
    for name in (
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "a,b",
        'say "hi"',
        '"',
        "'",
        "a\nb",
        "a\r\nb",
        "a\rb",
        " padded ",
        "\N{DOG FACE}\u0301\u202e",
        "\ufeffBella",
        "line\u2028separator",
        "\x1c",
        "null",
        "\\N",
        "#",
        ";",
        "\t|",
    )
    if not name.isspace()
]


async def exported(store: Store, file_format: FileFormat) -> str:
    file = io.StringIO(newline="")
    await export_pets(store, file, file_format, lambda _: None)
    return file.getvalue()


async def imported(folder: Path, text: str, file_format: FileFormat) -> list[Pet]:
    """Return what a fresh store holds after importing ``text``."""
    run = ImportRun(
        open_import_file(io.BytesIO(text.encode()), file_format), lambda row: pytest.fail(f"{row}")
    )
    async with open_store(folder / "copy.db") as store:
        await import_pets(store, run, ManualClock())
        pets = (await list_pets(store, PetFilter(), None, 100_000)).items
        assert run.added == len(pets)
        return pets


@pytest.mark.parametrize(
    ("file_format", "text"), [("csv", "id,name,categoryId,status\n"), ("jsonl", "")]
)
async def test_an_empty_store_is_exported_as_a_file_without_rows(
    store: Store, file_format: FileFormat, text: str
) -> None:
    assert await exported(store, file_format) == text


async def test_csv_has_a_header_and_a_row_for_each_animal(store: Store) -> None:
    await store.write(create_pets([NewPet("Bella", 1, "sold"), NewPet("a,b", -2)]))
    text = await exported(store, "csv")
    assert text == 'id,name,categoryId,status\n1,Bella,1,sold\n2,"a,b",-2,\n'


async def test_json_lines_have_an_object_for_each_animal(store: Store) -> None:
    await store.write(create_pets([NewPet("B\xe4r", 1, "sold"), NewPet("Oskar", -2)]))
    lines = (await exported(store, "jsonl")).splitlines()
    assert "B\xe4r" in lines[0]
    assert [json.loads(line) for line in lines] == [
        {"id": 1, "name": "B\xe4r", "categoryId": 1, "status": "sold"},
        {"id": 2, "name": "Oskar", "categoryId": -2},
    ]


async def test_many_animals_are_exported_in_pages(store: Store) -> None:
    await store.write(create_pets([NewPet("Bella", 1)] * 2_500))
    file = io.StringIO(newline="")
    progress: list[int] = []
    assert await export_pets(store, file, "csv", progress.append) == 2_500
    assert progress == [1_000, 2_000, 2_500]
    assert len(file.getvalue().splitlines()) == 2_501


async def test_a_part_of_an_export_has_the_requested_number_of_animals(store: Store) -> None:
    await store.write(create_pets([NewPet("Bella", 1, "sold"), NewPet("Rex", 1)] * 1_010))
    file = io.StringIO(newline="")
    progress: list[int] = []
    part = ExportPart(PetFilter("sold"), after=3, limit=1_005)
    assert await export_pets(store, file, "csv", progress.append, part=part) == 1_005
    assert progress == [1_000, 1_005]
    _, *lines = file.getvalue().splitlines()
    assert lines == [f"{5 + 2 * n},Bella,1,sold" for n in range(1_005)]


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
async def test_names_with_special_characters_are_imported_unchanged(
    store: Store, tmp_path: Path, file_format: FileFormat
) -> None:
    await store.write(create_pets(TRICKY))
    pets = await imported(tmp_path, await exported(store, file_format), file_format)
    assert [pet.name for pet in pets] == [new.name for new in TRICKY]


async def round_trip(news: Sequence[NewPet], file_format: FileFormat) -> list[Pet]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        async with open_store(folder / "petstore.db") as store:
            await store.write(create_pets(news))
            return await imported(folder, await exported(store, file_format), file_format)


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
@explored(10)
@given(st.lists(new_pets, max_size=50))
async def test_all_exported_animals_are_imported_unchanged(
    file_format: FileFormat, bodies: list[dict[str, object]]
) -> None:
    news = [convert(body, NewPet) for body in bodies]
    pets = await round_trip(news, file_format)
    assert [NewPet(pet.name, pet.category_id, pet.status) for pet in pets] == news
