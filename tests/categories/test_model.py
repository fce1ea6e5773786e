"""Categories: which bodies are one, which names are the same, and what becomes of it."""

import json
from typing import Any

import pytest

from petstore.categories.model import Category, CategoryCreate, CategoryPatch
from petstore.domain.decoding import decode_json
from petstore.domain.fields import merged
from petstore.errors import InvalidBody

DOGS = Category(1, "Dogs", "Great and small.")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("name", value) for value in (None, "", " \t\u3000\n", "x" * 101, "\0", "Dogs\0", 5)),
        *(("name", value) for value in (True, ["Dogs"])),
        *(("description", value) for value in ("x" * 1001, "\0", "a\n\0", "\0\n", 5, False, ["a"])),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_an_invalid_value_is_refused_naming_the_field(field: str, value: Any) -> None:
    body = json.dumps({"name": "Dogs"} | {field: value}).encode()
    for kind in (CategoryCreate, CategoryPatch):
        with pytest.raises(InvalidBody, match=rf"^{field}: expected "):
            decode_json(body, kind)
    for body, message in (
        (b"{}", "^name: required; expected 1 to 100"),
        (b'{"name": "Dogs", "description": null}', "^description: expected up to 1000"),
    ):
        with pytest.raises(InvalidBody, match=message):
            decode_json(body, CategoryCreate)


def test_a_valid_category_is_accepted_unchanged() -> None:
    for name, description in (
        *(("x", ""), ("\N{DOG FACE}" * 100, "\N{DOG FACE}" * 1000), (" Dogs\n", " ")),
        *(("null", "\n"), ("-1", "")),
    ):
        body = json.dumps({"name": name, "description": description}).encode()
        assert decode_json(body, CategoryCreate) == CategoryCreate(name, description)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{}", DOGS),
        (b'{"id": 9}', DOGS),
        (b'{"name": "Cats"}', Category(1, "Cats", "Great and small.")),
        (b'{"description": ""}', Category(1, "Dogs", "")),
        (b'{"description": null}', Category(1, "Dogs")),
        (b'{"name": "Cats", "description": "All."}', Category(1, "Cats", "All.")),
    ],
)
def test_only_the_named_fields_change(body: bytes, expected: Category) -> None:
    assert merged(DOGS, decode_json(body, CategoryPatch)) == expected
