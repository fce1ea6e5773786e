"""Which bodies are not valid categories."""

import json
from typing import Any

import pytest

from petstore.categories.model import CategoryCreate, CategoryPatch
from petstore.domain.decoding import decode_json
from petstore.errors import InvalidBody


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
