"""Schemas in words and tables."""

from typing import Any

import pytest

from website.schemas import Document, table

DOCUMENT = Document(
    {
        "components": {
            "schemas": {
                "Status": {"type": "string", "enum": ["sold", "pending"], "description": "How."},
                "Pet": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "integer", "description": "Its id."},
                        "status": {
                            "anyOf": [{"$ref": "#/components/schemas/Status"}, {"type": "null"}]
                        },
                        "owner": {
                            "type": "object",
                            "properties": {"name": {"type": "string", "maxLength": 9}},
                            "required": ["name"],
                        },
                    },
                    "required": ["id"],
                },
                "Tree": {
                    "type": "object",
                    "properties": {"child": {"$ref": "#/components/schemas/Tree"}},
                },
            }
        }
    }
)
INT64 = {"minimum": -(2**63), "maximum": 2**63 - 1}


def ref(name: str, **beside: Any) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}", **beside}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({}, "any"),
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date-time"}, "time (RFC 3339)"),
        ({"type": "string", "minLength": 1, "maxLength": 9}, "string, 1 to 9 characters"),
        ({"type": "string", "maxLength": 9}, "string, at most 9 characters"),
        ({"type": "string", "minLength": 2}, "string, at least 2 characters"),
        ({"type": "integer", "format": "int64", **INT64}, "integer, 64 bits"),
        ({"type": "integer", "minimum": 0, "maximum": 2**63 - 1}, "integer, at least 0"),
        ({"type": "integer", "minimum": 0, "maximum": 5}, "integer, 0 to 5"),
        ({"type": "integer", "minimum": 1, "maximum": 1}, "integer, always 1"),
        ({"const": "pet.created"}, "`pet.created`"),
        (ref("Status"), "one of `sold`, `pending`"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer or null"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "integer or string"),
        ({"type": "array", "items": ref("Status"), "maxItems": 3}, None),
        ({"type": "array", "minItems": 0, "maxItems": 3, "items": {"type": "string"}}, None),
    ],
)
def test_a_type_is_described_with_its_bounds(schema: dict[str, Any], kind: str | None) -> None:
    of_arrays = {"array of `sold`, `pending`, at most 3 items", "array of strings, at most 3 items"}
    assert DOCUMENT.kind(schema) in ({kind} if kind else of_arrays)


def test_nested_members_of_an_object_are_listed() -> None:
    rows = [*DOCUMENT.members({"type": "array", "items": ref("Pet")})]
    assert rows == [
        ["`id`", "integer", "always", "Its id."],
        ["`status`", "one of `sold`, `pending` or null", "", "How."],
        ["`owner`", "object", "", ""],
        ["`owner.name`", "string, at most 9 characters", "always", ""],
    ]


def test_the_members_of_a_nullable_object_are_listed() -> None:
    schema = {"anyOf": [{"type": "null"}, ref("Pet")]}
    assert [*DOCUMENT.members(schema)] == [*DOCUMENT.members(ref("Pet"))]


def test_the_depth_of_a_recursive_type_is_limited() -> None:
    assert [row[0] for row in DOCUMENT.members(ref("Tree"))][-1] == "`child.child.child.child`"


def test_keywords_beside_a_reference_override_it() -> None:
    assert DOCUMENT.resolve(ref("Status", description="Now."))["description"] == "Now."


def test_a_table_has_no_empty_column() -> None:
    assert table(["Name", "In", "Text"], [["a", "", "x |\n y"], ["b", "", ""]]) == (
        "| Name | Text |\n| --- | --- |\n| a | x \\| y |\n| b |  |"
    )
