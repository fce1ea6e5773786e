"""References to the components of the document."""

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["schemas", "headers", "parameters", "responses", "examples"]


def reference(kind: Kind, name: str) -> dict[str, Any]:
    """Return a reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


def file_content(media_types: Iterable[str], example: Any) -> dict[str, Any]:
    """Describe a body that is a file of one of these media types, with an example of a text."""
    text = {"type": "string", "description": "The content of the file."}
    binary = text | {"format": "binary"}
    return {
        name: {"schema": text, "example": example} if "text/" in name else {"schema": binary}
        for name in media_types
    }


def json_content(schema: dict[str, Any], example: Any) -> dict[str, Any]:
    """Describe a body in JSON with one example."""
    return {"application/json": {"schema": schema, "example": example}}
