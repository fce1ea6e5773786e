"""The pages of the operations, one each, from the table that routes and validates them."""

import json
import re
from collections.abc import Iterator
from textwrap import indent
from typing import Any

from petstore.interface.openapi.responses import cause_of
from petstore.interface.operation import BASE, Operation
from petstore.interface.operations import OPERATIONS
from website.navigation import Entry
from website.samples import curl, python, typescript
from website.schemas import Document, Json, table

_FIRST_ERROR = 400
_VERBS = {"Add": "Create", "Change": "Update"}
_TITLES = {
    "listPets": "List and filter pets",
    "createPet": "Create a pet",
    "createPets": "Create many pets",
    "getPet": "Get a pet",
    "getInventory": "Get the inventory",
    "createImport": "Create an import",
    "updateImport": "Update an import",
    "getImportRefused": "Get the refused rows of an import",
    "placeOrder": "Create an order",
    "updateOrder": "Update an order",
    "getSales": "Get the sales",
    "getUsage": "Get your usage",
}
_COMMON_CODES = (
    *("invalid_parameter", "invalid_body", "missing_api_key", "invalid_api_key", "missing_scope"),
    *("network_not_allowed", "not_found", "precondition_failed", "idempotency_key_in_use"),
    *("idempotency_key_reused", "rate_limit_exceeded", "api_key_banned", "service_unavailable"),
)
_COMMON_ERRORS = ", ".join(f"[`{code}`](../errors.md#{code})" for code in _COMMON_CODES)
_ABOUT = f"""# Operations

Every operation needs an [API key](../authentication.md). All paths begin at the address of your
service, such as `http://127.0.0.1:8000`. Programs read the same from `{BASE}/openapi.json`.

The samples take the address and the key from two environment variables:

```sh
export PETSTORE_URL=http://127.0.0.1:8000/v1
export PETSTORE_KEY=ps_live_…
```

Choose a new `Idempotency-Key` for each thing that you want done ([Retry safely](../retries.md)).
The Python client chooses one automatically.

## Common errors

Any operation can respond with these. Its own page lists the errors that are special to it:

{_COMMON_ERRORS}"""
# Described once, in docs/http.md and docs/limits.md.
_COMMON = {
    *("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
    *("RateLimit-Policy", "RateLimit", "X-Request-Id", "Vary", "Cache-Control"),
}


def pages(document: Json) -> dict[str, str]:
    """Return the Markdown of the page of each operation, and of their index, by its path."""
    described = Document(document)
    of_each = {path(operation): _page(operation, described) for operation in OPERATIONS}
    return {"operations/index.md": _index(document), **of_each}


def path(operation: Operation) -> str:
    """Return where the page of an operation stands."""
    return f"operations/{operation.id}.md"


def title(operation: Operation) -> str:
    """Return the title of the page of an operation, in the words that people search for."""
    return _TITLES.get(operation.id) or re.sub(
        "^(Add|Change)(?= an? )", lambda verb: _VERBS[verb[1]], operation.summary
    )


def tags() -> dict[str, list[Entry]]:
    """Return the operations of each tag."""
    found: dict[str, list[Entry]] = {}
    for operation in OPERATIONS:
        address = f"{operation.method} {BASE}{operation.path}"
        note = "" if operation.deprecation is None else ", deprecated"
        entry = Entry(title(operation), path(operation), f"`{address}`{note}")
        found.setdefault(operation.tag, []).append(entry)
    return found


def _index(document: Json) -> str:
    texts = {tag["name"]: tag["description"] for tag in document["tags"]}
    parts = [_ABOUT]
    for tag, entries in tags().items():
        rows = [
            [f"[{entry.title}]({entry.path.removeprefix('operations/')})", entry.text]
            for entry in entries
        ]
        parts.append(f"## {tag}\n\n{texts[tag]}\n\n{table(['Operation', 'Request'], rows)}")
    return "\n\n".join(parts) + "\n"


def _page(operation: Operation, document: Document) -> str:
    described = document.operation(operation.method, operation.path)
    return "\n\n".join(filter(None, _parts(operation, described, document))) + "\n"


def _parts(operation: Operation, described: Json, document: Document) -> Iterator[str]:
    yield f"# {title(operation)}"
    yield f"```http\n{operation.method} {BASE}{operation.path}\n```"
    yield _deprecation(operation)
    yield operation.description
    yield _facts(operation)
    yield _samples(operation)
    yield _parameters(described, document)
    yield _body(described, document)
    for status, response in described["responses"].items():
        if int(status) < _FIRST_ERROR:
            yield _response(status, document.resolve(response), document)
    yield _errors(operation)


def _deprecation(operation: Operation) -> str:
    if operation.deprecation is None:
        return ""
    since, sunset = operation.deprecation.since, operation.deprecation.sunset
    return (
        f'!!! warning "Deprecated"\n\n    Deprecated since {_day(since)}. It ends on {_day(sunset)}'
        f" and responds with 410 from then on. Use {operation.deprecation.use} instead. See"
        " [Versions](../versions.md)."
    )


def _day(time: Any) -> str:
    return f"{time.day} {time:%B %Y}"


def _facts(operation: Operation) -> str:
    scope = "any scopes" if operation.scope is None else f"the scope `{operation.scope}`"
    counts = "counts" if operation.charged else "does not count"
    return (
        f"`{operation.id}` needs [a key](../keys.md#scopes) with {scope}."
        f" It {counts} toward the [rate limit](../limits.md)."
    )


def _samples(operation: Operation) -> str:
    samples = {
        "curl": ("sh", curl(operation)),
        "Python": ("python", python(operation)),
        "TypeScript": ("ts", typescript(operation)),
    }
    return "\n\n".join(
        f'=== "{title}"\n\n' + indent(f"```{language}\n{code}\n```", "    ")
        for title, (language, code) in samples.items()
    )


def _parameters(described: Json, document: Document) -> str:
    parameters = [document.resolve(parameter) for parameter in described.get("parameters", ())]
    if not parameters:
        return ""
    rows = [
        [
            f"`{parameter['name']}`",
            parameter["in"],
            document.kind(parameter["schema"]),
            "required" if parameter.get("required") else "",
            parameter["description"] + _default(parameter["schema"]),
        ]
        for parameter in parameters
    ]
    return "## Parameters\n\n" + table(["Name", "In", "Type", "Presence", "Description"], rows)


def _default(schema: Json) -> str:
    return f" Default: `{schema['default']}`." if "default" in schema else ""


def _body(described: Json, document: Document) -> str:
    if "requestBody" not in described:
        return ""
    body = document.resolve(described["requestBody"])
    if "application/json" not in body["content"]:
        return f"## Body\n\nThe file: {', '.join(f'`{each}`' for each in body['content'])}."
    media = body["content"]["application/json"]
    rows = [
        [name, kind, "required" if presence else "", text]
        for name, kind, presence, text in document.members(media["schema"])
    ]
    optional = f"{body['description']}\n\n" if "description" in body else ""
    return (
        f"## Body\n\n{optional}{table(['Field', 'Type', 'Presence', 'Description'], rows)}"
        f"\n\n{_example(media)}"
    )


def _response(status: str, response: Json, document: Document) -> str:
    parts = [f"## Response {status}", response["description"]]
    headers = {
        name: document.resolve(header) for name, header in response.get("headers", {}).items()
    }
    rows = [
        [f"`{name}`", header["description"]]
        for name, header in headers.items()
        if name not in _COMMON
    ]
    media = response.get("content", {}).get("application/json")
    if media is not None:
        parts.append(_example(media))
        members = [*document.members(media["schema"])]
        parts.append(table(["Field", "Type", "Presence", "Description"], members))
    if rows:
        parts.append(table(["Header", "Description"], rows))
    return "\n\n".join(parts)


def _example(media: Json) -> str:
    example = media.get("example", {})
    return f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```"


def _errors(operation: Operation) -> str:
    rows = [
        [str(error.status), f"[`{error.code}`](../errors.md#{error.code})", cause_of(error)]
        for error in sorted(operation.errors, key=lambda error: error.status)
    ]
    own = f"{table(['Status', 'Code', 'Meaning'], rows)}\n\n" if rows else ""
    return f"## Errors\n\n{own}And the [common errors](index.md#common-errors)."
