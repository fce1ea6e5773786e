"""The pet store on Litestar, msgspec and aiosqlite, written for speed as its community does.

A guard lets requests in: it knows keys for half a second and counts both windows of each in memory
(Litestar's own rate limit has one window, and keeps the time of each request in it). Bodies are
decoded by msgspec itself, because Litestar would take "1" for 1. uvicorn serves it with uvloop and
httptools, in one process.
"""

import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from time import time
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode
from uuid import uuid4

import msgspec
from async_lru import alru_cache
from cachetools import LRUCache
from litestar import Litestar, Request, Response, Router, get, post, route
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.exceptions import HTTPException, ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.params import Parameter
from litestar.types import Message, Scope
from records import Error, Inventory, NewOrder, NewPet, Order, Pet, PetStatus
from store import Store

PLANS = {"free": (60, 1_000), "pro": (300, 10_000), "business": (1_000, 100_000)}
UNLIMITED = 2**31 - 1
MINUTE, DAY = 60, 86_400
RESERVATION = timedelta(days=1)
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
CODES = {400: "invalid_parameter", 404: "not_found", 405: "method_not_allowed"}
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)

decode_pet = msgspec.json.Decoder(NewPet).decode
decode_order = msgspec.json.Decoder(NewOrder).decode


# Errors


class Problem(HTTPException):
    """An error whose response has the Error body and its own code."""

    def __init__(
        self, status: int, code: str, message: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail=message, status_code=status, headers=headers)
        self.code = code


def respond_to_problem(_request: Request, problem: Problem) -> Response[Error]:
    """Return the Error body of what a handler or the guard raised."""
    return error_response(problem, problem.code, problem.detail)


def respond_to_invalid(_request: Request, error: ValidationException) -> Response[Error]:
    """Return the Error body of a parameter that does not validate."""
    fault = error.extra[0]
    return error_response(error, "invalid_parameter", f"{fault['key']}: {fault['message']}")


def respond_to_http_error(_request: Request, error: HTTPException) -> Response[Error]:
    """Return the Error body of what Litestar itself refuses."""
    return error_response(error, CODES.get(error.status_code, "internal_error"), error.detail)


def error_response(error: HTTPException, code: str, message: str) -> Response[Error]:
    """Return the Error body."""
    body = Error(code, message, error.status_code)
    return Response(body, status_code=error.status_code, headers=error.headers)


def decoded(decode: Any, body: bytes) -> Any:
    """Return a body decoded by one of the decoders above."""
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        # "Expected `int`, got `str` - at `$.categoryId`", or with the field in the text.
        what, _, place = str(error).partition(" - at `$.")
        message = f"{place.removesuffix('`') or 'the body'}: {what}"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"the body: {error}"
    raise Problem(400, "invalid_body", message)


# Keys and limits


class Caller(NamedTuple):
    """The owner of the windows that a request counts in, and their limits."""

    name: str
    per_minute: int
    per_day: int


class Usage:
    """The usage of a caller: a minute from its first request, and a day of UTC."""

    __slots__ = ("day_ends", "day_used", "minute_ends", "minute_used")

    def __init__(self) -> None:
        self.minute_ends = self.day_ends = 0.0
        self.minute_used = self.day_used = 0


@alru_cache(maxsize=10_000, ttl=0.5)
async def find_key(store: Store, token: str) -> Caller | None:
    """Return the key of a token, unless either is unknown, expired or revoked."""
    row = await store.find_key(sha256(token.encode()).digest(), int(time() * 1000))
    if row is None:
        return None
    key_id, plan, per_minute, per_day = row
    minute, day = PLANS.get(plan, (UNLIMITED, UNLIMITED))
    return Caller(f"key {key_id}", per_minute or minute, per_day or day)


async def admit(connection: ASGIConnection, _: BaseRouteHandler) -> None:
    """Admit a valid key within its limits; other requests count by their address."""
    scheme, _space, token = connection.headers.get("authorization", "").partition(" ")
    has_token = scheme.lower() == "bearer" and token
    key = await find_key(connection.app.state.store, token) if has_token else None
    count(connection, key or Caller(f"address {connection.client.host}", *PLANS["pro"]))
    if key is None:
        code = "invalid_api_key" if has_token else "missing_api_key"
        challenge = 'Bearer realm="petstore"' + (', error="invalid_token"' if has_token else "")
        message = "Authorization: expected Bearer and a valid API key"
        raise Problem(401, code, message, {"WWW-Authenticate": challenge})


def count(connection: ASGIConnection, caller: Caller) -> None:
    """Count one request in both windows if both have room; the headers describe the fuller one."""
    now = time()
    usages = connection.app.state.usages
    usage = usages.get(caller.name)
    if usage is None:
        usage = usages[caller.name] = Usage()
    if usage.minute_ends <= now:
        usage.minute_ends, usage.minute_used = now + MINUTE, 0
    if usage.day_ends <= now:
        usage.day_ends, usage.day_used = now // DAY * DAY + DAY, 0
    minute_left = caller.per_minute - usage.minute_used
    day_left = caller.per_day - usage.day_used
    admitted = minute_left > 0 and day_left > 0
    if admitted:
        usage.minute_used += 1
        usage.day_used += 1
    limit, left, ends = (
        (caller.per_minute, minute_left, usage.minute_ends)
        if minute_left < day_left
        else (caller.per_day, day_left, usage.day_ends)
    )
    reset = int(ends) + 1
    connection.scope["state"]["limits"] = limit, max(0, left - admitted), reset
    if not admitted:
        wait = reset - int(now)
        message = f"the limit of {limit} requests is reached: wait {wait} seconds"
        raise Problem(429, "rate_limit_exceeded", message, {"Retry-After": str(wait)})


async def add_headers(message: Message, scope: Scope) -> None:
    """Add to every response the id of its request, and the limits of its caller."""
    if message["type"] != "http.response.start":
        return
    request_id = dict(scope["headers"]).get(b"x-request-id", b"")
    if not REQUEST_ID.fullmatch(request_id):
        request_id = uuid4().hex.encode()
    headers = [(b"x-request-id", request_id)]
    if limits := scope["state"].get("limits"):
        limit, remaining, reset = limits
        headers += (
            (b"x-ratelimit-limit", b"%d" % limit),
            (b"x-ratelimit-remaining", b"%d" % remaining),
            (b"x-ratelimit-reset", b"%d" % reset),
        )
    message["headers"] = [*message["headers"], *headers]


# Operations

# msgspec takes "5.0" for an integer where it converts text, hence the patterns.
Limit = Annotated[str, Parameter(pattern=r"^([1-9][0-9]?|100)$")]
Cursor = Annotated[str | None, Parameter(pattern=r"^[A-Za-z0-9_-]{11}$")]
CategoryId = Annotated[int | None, Parameter(ge=INT64_MIN, le=INT64_MAX)]


@get("/healthz", sync_to_thread=False)
def is_alive() -> dict[str, str]:
    """Tell that it serves."""
    return {"status": "ok"}


@get("/pets")
async def list_pets(
    request: Request,
    state: State,
    limit: Limit = "20",
    status: PetStatus | None = None,
    categoryId: CategoryId = None,  # noqa: N803 - the interface's own name
    cursor: Cursor = None,
) -> Response[list[Pet]]:
    """Return a page of pets, by id."""
    after = None if cursor is None else int.from_bytes(urlsafe_b64decode(cursor + "="), signed=True)
    count = int(limit)
    pets = await state.store.list_pets(status, categoryId, after, count + 1)
    if len(pets) <= count:
        return Response(pets)
    last = urlsafe_b64encode(pets[count - 1].id.to_bytes(8, signed=True)).decode().rstrip("=")
    query = urlencode({**request.query_params, "cursor": last})
    return Response(pets[:count], headers={"Link": f'</v1/pets?{query}>; rel="next"'})


@post("/pets")
async def create_pet(body: bytes, state: State) -> Response[Pet]:
    """Add a pet."""
    pet = await state.store.add_pet(decoded(decode_pet, body))
    return Response(pet, headers={"Location": f"/v1/pets/{pet.id}"})


@get("/pets/{pet_id:str}", deprecated=True)
async def get_pet(pet_id: str, state: State) -> Pet:
    """Return one pet."""
    is_id = DIGITS.fullmatch(pet_id) and int(pet_id) <= INT64_MAX
    pet = await state.store.get_pet(int(pet_id)) if is_id else None
    if pet is None:
        raise Problem(404, "not_found", f"there is no pet {pet_id}")
    return pet


@get("/store/inventory")
async def get_inventory(state: State) -> Inventory:
    """Return how many pets there are of each status."""
    inventory: Inventory = await state.store.get_inventory()
    return inventory


@post("/store/orders")
async def place_order(body: bytes, state: State) -> Response[Order]:
    """Reserve an available pet."""
    new: NewOrder = decoded(decode_order, body)
    now = datetime.now(UTC)
    end = now + RESERVATION
    order_id = await state.store.place_order(new, milliseconds(now), milliseconds(end))
    if order_id is None:
        if await state.store.get_pet(new.pet_id) is None:
            raise Problem(400, "unknown_pet", f"petId: there is no pet {new.pet_id}")
        raise Problem(409, "pet_not_available", f"pet {new.pet_id} is not available")
    order = Order(
        id=order_id, pet_id=new.pet_id, placed_at=now, reserved_until=end, ship_date=new.ship_date
    )
    return Response(order, headers={"Location": f"/v1/store/orders/{order_id}"})


@route("/{rest:path}", http_method=["GET", "POST", "PUT", "PATCH", "DELETE"], sync_to_thread=False)
def refuse(rest: str) -> None:
    """Refuse an unknown path, which counts as every request does."""
    raise Problem(404, "not_found", f"there is nothing at {rest}")


def milliseconds(moment: datetime) -> int:
    """Return the milliseconds since 1970."""
    return int(moment.timestamp() * 1000)


@asynccontextmanager
async def opened_store(app: Litestar) -> AsyncIterator[None]:
    """Keep the store open as long as the application runs."""
    async with Store.opened(os.environ["DATABASE"]) as app.state.store:
        yield


app = Litestar(
    [
        is_alive,
        Router(
            "/v1",
            route_handlers=[list_pets, create_pet, get_pet, get_inventory, place_order, refuse],
            guards=[admit],
        ),
    ],
    lifespan=[opened_store],
    state=State({"usages": LRUCache(100_000)}),
    before_send=[add_headers],
    exception_handlers={
        Problem: respond_to_problem,
        ValidationException: respond_to_invalid,
        HTTPException: respond_to_http_error,
    },
    logging_config=None,
)
