"""The OpenAPI 3.1 document, built from the table of operations, and the page that serves it."""

import gzip
from collections.abc import Callable
from functools import cached_property, partial

from msgspec.structs import replace

from petstore.http.messages import Request, Response
from petstore.interface.bodies import MERGE_PATCH
from petstore.interface.messages import (
    JSON,
    conditional,
    conditions_of,
    encode_json,
    entity_tag,
    takes_gzip,
)
from petstore.interface.openapi.events import SIGNATURE, deliveries, event_schemas
from petstore.interface.openapi.responses import HEADERS, cause_of, possible_errors, responses_of
from petstore.interface.openapi.schemas import (
    TEXT,
    Schema,
    component_schemas,
    file_content,
    json_content,
    parameter,
    query_parameters,
    reference,
    schema_of,
)
from petstore.interface.operation import BASE, Operation
from petstore.interface.operations import OPERATIONS
from petstore.interface.pages import PageQuery
from petstore.keys.model import PREFIXES, Environment

_INTERFACE_VERSION = "1.0.0"

_DESCRIPTION = """List, filter, add and sell the pets of a store.

Every operation needs an API key. The operator of the store issues it with `petstore keys create`.

A key has a plan, which limits its requests a minute and a day. Every response shows what is left. A
429 response says in `Retry-After` how long to wait.

A POST with an `Idempotency-Key` takes effect once, even if you send it several times in 24 hours.

JavaScript rounds integers above 2^53 - 1. The service assigns ids from 1 upwards, and does not
reach that number. You choose each `categoryId` yourself: keep it below."""
_TAGS = {
    "Pets": "The pets a store offers.",
    "Events": "Changes in the store, and events about your key.",
    "Categories": "Categories of pets.",
    "Store": "Orders and the inventory. An order reserves one pet for one buyer.",
    "Imports": "Files of pets, added to the store and undone.",
    "Keys": "API keys. These operations need the scope `keys:admin`.",
    "People": "People who work in the console. These operations need the scope `keys:admin`.",
    "Usage": "The usage and the limits of a key.",
    "Webhooks": "Webhooks: the service sends events to your URL.",
}
_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "The API key, sent as `Authorization: Bearer <API_KEY>`.",
}
_IDEMPOTENCY_KEY = (
    "Any 1 to 255 visible characters, such as a UUID, bare or as a quoted string (RFC 8941). If you"
    " send the request again with it within 24 hours, you get the first response."
)
_OPTIONAL_BODY = "Optional: without a body every member has its default. `null` is refused."


def document(
    origin: str, environment: Environment = "production", other_origin: str = ""
) -> Schema:
    """Return the document of a service; ``other_origin`` is the other environment's."""
    environments = [environment, *(each for each in PREFIXES if each != environment)]
    origins = [origin, other_origin] if other_origin else [origin]
    shared: dict[str, Schema] = {}
    possible = {error.code: error for each in OPERATIONS for error in possible_errors(each)}
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        described = _operation(operation, shared)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    schemas = component_schemas()
    docs = f"{origin}/docs/"
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Petstore",
            "version": _INTERFACE_VERSION,
            "description": _DESCRIPTION,
            "contact": {"name": "Petstore", "url": docs},
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [
            {"url": f"{at}{BASE}", "description": f"{name}: keys begin with {PREFIXES[name]}."}
            for name, at in zip(environments, origins, strict=False)
        ],
        "externalDocs": {"description": "Tutorials, guides and reference", "url": docs},
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "security": [{"bearer": []}],
        "paths": paths,
        "webhooks": deliveries(),
        "components": {
            "schemas": schemas | event_schemas(schemas),
            "headers": HEADERS,
            "parameters": SHARED | SIGNATURE,
            "responses": shared,
            "examples": {
                code: {"value": {"code": code, "message": cause_of(error), "status": error.status}}
                for code, error in possible.items()
            },
            "securitySchemes": {"bearer": _BEARER},
        },
    }


def _operation(operation: Operation, shared: dict[str, Schema]) -> Schema:
    scope = f"\n\nNeeds the scope `{operation.scope}`." if operation.scope else ""
    described: Schema = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description + scope,
        "security": [{"bearer": [operation.scope] if operation.scope else []}],
        "parameters": _parameters(operation),
        "responses": responses_of(operation, shared),
    }
    if operation.body is not None:
        example = operation.body_example
        if operation.media_types:
            content = file_content(operation.media_types, example)
        else:
            content = json_content(schema_of(operation.body, min_items=1), example)
        if operation.method == "PATCH":
            content[MERGE_PATCH] = content["application/json"]
        body: Schema = {} if operation.body_required else {"description": _OPTIONAL_BODY}
        body |= {"required": operation.body_required, "content": content}
        described["requestBody"] = body
    if operation.deprecation is not None:
        described["deprecated"] = True
        described["x-sunset"] = operation.deprecation.sunset.date().isoformat()
    return described


_ID = {"type": "integer", "format": "int64", "minimum": 0}
SHARED: dict[str, Schema] = {
    "If-Match": parameter(
        "header",
        "If-Match",
        "Acts only if the resource is in the version of this `ETag`; otherwise 412. `*` is any.",
        *(TEXT, "*"),
    ),
    "If-None-Match": parameter(
        "header",
        "If-None-Match",
        "Responds with 304 if the resource is still in the version of this `ETag`.",
        *(TEXT, '"5f1c3c6a9a3d2b3f0a7e9d10"'),
    ),
    **query_parameters(PageQuery),
}
"""The parameters that many operations share, by the names of their components."""


def _parameters(operation: Operation) -> list[Schema]:
    parameters: dict[str, Schema] = {}
    for name in operation.parameters:
        noun = name.removesuffix("Id").replace("pet", "animal")
        purpose = " to retrieve" if operation.reads_one else ""
        parameters[name] = parameter("path", name, f"Identifier of the {noun}{purpose}.", _ID, 7)
    if operation.query is not None:
        parameters |= query_parameters(operation.query)
    if operation.method == "POST":
        text = {"type": "string", "pattern": "^[!#-~][!-~]*$", "minLength": 1, "maxLength": 255}
        name, example = "Idempotency-Key", f"{operation.id}-1"  # another one's is refused
        parameters[name] = parameter("header", name, _IDEMPOTENCY_KEY, text, example)
    elif operation.method != "GET":
        parameters["If-Match"] = SHARED["If-Match"]
    elif operation.reads_one:
        parameters["If-None-Match"] = SHARED["If-None-Match"]
    return [
        reference("parameters", name) if SHARED.get(name) == parameter else parameter
        for name, parameter in parameters.items()
    ]


_PLACEHOLDER = "https://origin.invalid"
_COMPRESSED = 8
_CACHED = [b"cache-control: public, max-age=300", b"vary: Accept-Encoding"]


class DocumentPage:
    """The document, encoded once; the URL is put into it for each request.

    It is compressed once for each of the first few URLs. So a client that invents hosts costs no
    more time than others, and no memory.
    """

    def __init__(
        self,
        root: Callable[[Request], str],
        environment: Environment = "production",
        other_origin: str = "",
    ) -> None:
        self._document = partial(document, _PLACEHOLDER, environment, other_origin)
        self._root = root
        self._compressed: dict[bytes, bytes] = {}

    async def __call__(self, request: Request) -> Response:
        root = encode_json(self._root(request))[1:-1]
        body, headers, coding = root.join(self._pieces), [JSON, *_CACHED], b""
        if takes_gzip(request):
            if root not in self._compressed and len(self._compressed) < _COMPRESSED:
                self._compressed[root] = gzip.compress(body, mtime=0)
            if root in self._compressed:
                body, coding = self._compressed[root], b"gzip"
                headers.append(b"content-encoding: gzip")
        # Not of the whole body: the digest would take longer than all the rest.
        tag = entity_tag(b"%b %b %b" % (self._digest, root, coding))
        whole = Response(200, body, [*headers, b"etag: " + tag], tag=tag)
        response = conditional(conditions_of(request), whole)
        is_whole = response is whole
        return whole if is_whole else replace(response, headers=[*response.headers, *_CACHED])

    @cached_property
    def _pieces(self) -> list[bytes]:
        """The document, split where the URL of the service stands."""
        text: bytes = encode_json(self._document())
        return text.split(_PLACEHOLDER.encode("ascii"))

    @cached_property
    def _digest(self) -> bytes:
        return entity_tag(b"".join(self._pieces))
