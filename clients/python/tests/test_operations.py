"""The client has every operation of the interface, with all that it takes, and nothing else."""

import inspect
import re
from contextlib import suppress
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from httpx2 import MockTransport, Request, Response

from clients.python.generate import _members, generated
from petstore.errors import PetstoreError as ServiceError
from petstore.interface.operation import BASE, Operation
from petstore.interface.operations import OPERATIONS
from petstore_client import Client, errors
from petstore_client._calls import parameters
from petstore_client._faces import Resource
from support.client_faces import KEY

# ``pets.get`` lists; so the deprecated operation is never called.
NEVER_CALLED = {"getPet"}
SHARED = {
    "listEvents": {"events.list", "events.latest"},
    "listPets": {"pets.list", "pets.get"},
}


def request_of(name: str) -> Request:
    """Return the request of a method that is called with all arguments that it takes."""
    asked: list[Request] = []

    def refuse(request: Request) -> Response:
        asked.append(request)
        return Response(400, json={"code": "invalid_body", "message": "no", "status": 400})

    client = Client(KEY, "http://shop.example/v1", transport=MockTransport(refuse))
    method: Any = attrgetter(name)(client)
    with suppress(errors.BadRequest):
        next(method(**{each: example(each) for each in inspect.signature(method).parameters}))
    return asked[-1]


def example(name: str) -> object:
    if name.endswith(("_at", "date")) or name in ("since", "until"):
        return datetime(2026, 11, 22, tzinfo=UTC)
    if name in ("types", "scopes", "allowed_networks"):
        return ["x"]
    if name == "content":
        return b"x"
    return 7 if name == "id" or name.endswith(("_id", "limit", "seconds", "wait")) else "x"


METHODS = tuple(
    f"{name}.{each}"
    for name, resource in vars(Client(KEY)).items()
    if isinstance(resource, Resource)
    for each in dir(type(resource))
    if not each.startswith("_") and each != "follow"
)


def operation_of(request: Request) -> Operation:
    """Return the operation that a request calls."""
    path = urlsplit(str(request.url)).path.removeprefix(BASE)
    (found,) = (
        operation
        for operation in OPERATIONS
        if operation.method == request.method
        and re.fullmatch(re.sub(r"\{\w+\}", "[0-9]+", operation.path), path)
    )
    return found


def test_every_operation_has_exactly_one_client_method() -> None:
    called: dict[str, set[str]] = {}
    for name in METHODS:
        operation = operation_of(request_of(name))
        called.setdefault(operation.id, set()).add(name)
    assert set(called) == {each.id for each in OPERATIONS} - NEVER_CALLED
    for operation_id, names in called.items():
        assert names == SHARED.get(operation_id, names)
        assert len(names) == 1 or operation_id in SHARED


def names_of(kind: type[Any] | None) -> set[str]:
    return set() if kind is None else {field.encode_name for field in msgspec.structs.fields(kind)}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_sends_every_parameter_of_its_operation_by_name(name: str) -> None:
    request = request_of(name)
    operation = operation_of(request)
    if name in SHARED.get(operation.id, ()) and not name.endswith((".list", ".update")):
        return  # it takes less by intention
    sent = set(request.url.params)
    assert sent == names_of(operation.query)
    if operation.media_types:
        assert (request.content, request.headers["Content-Type"]) == (b"x", "x")
        return
    body = set(msgspec.json.decode(request.content)) if request.content else set()
    assert body == ({"x"} if operation.is_batch else names_of(operation.body))
    is_post = operation.method == "POST"
    assert ("Idempotency-Key" in request.headers) == is_post
    assert ("If-Match" in request.headers) == (operation.method in ("PATCH", "DELETE"))


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (False, ["false"]),
        (datetime(2026, 11, 22, 10, tzinfo=UTC), ["2026-11-22T10:00:00+00:00"]),
        *((each, ["7", "9"]) for each in ([7, 9], range(7, 10, 2), {7: "a", 9: "b"}.keys())),
        (iter(["sold"]), ["sold"]),
    ],
)
def test_a_value_is_sent_as_the_service_takes_it(value: object, texts: list[str]) -> None:
    assert parameters(placed_before=value) == tuple(("placedBefore", text) for text in texts)


def test_the_generated_modules_are_what_the_generator_writes_now() -> None:
    for path, text in generated().items():
        assert path.read_text() == text, f"{path.name} is old: run make client"


def test_a_member_without_a_description_is_named() -> None:
    schema = {"title": "Pet", "required": [], "properties": {"chipId": {"type": "string"}}}
    with pytest.raises(SystemExit, match=r"^Pet\.chipId: expected a description$"):
        _members(schema)


def test_every_error_class_has_a_code_and_a_status_of_the_service() -> None:
    kinds = [ServiceError]
    for each in kinds:
        kinds += each.__subclasses__()
    statuses = {each.code: each.status for each in kinds[1:]}
    for code, kind in errors.ErrorResponse.by_code.items():
        by_status = errors.ErrorResponse.by_status[statuses[code]]
        assert issubclass(kind, by_status)
