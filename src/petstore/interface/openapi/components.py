"""References to the components of the document."""

from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["schemas", "headers", "parameters", "responses", "examples"]


def reference(kind: Kind, name: str) -> dict[str, Any]:
    """Return a reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


def json_content(schema: dict[str, Any], example: Any) -> dict[str, Any]:
    """Describe a body in JSON with one example."""
    return {"application/json": {"schema": schema, "example": example}}
