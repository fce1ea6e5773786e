"""The pet store on FastAPI, SQLAlchemy and slowapi, as most teams would write it with care.

Everything is async: aiosqlite for a SQLite file, asyncpg for PostgreSQL (``tables.py``). What a key
may do is remembered for half a second. slowapi counts both windows of a key in memory, or in Redis
if there is one. uvicorn serves it with uvloop and httptools, in one process.
"""

import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from math import ceil
from time import time
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlencode

from asgi_correlation_id import CorrelationIdMiddleware
from async_lru import alru_cache
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError
from slowapi import Limiter
from slowapi.errors import RateLimitExceeded
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.exceptions import HTTPException

from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerMinute
from tables import ApiKey, ApiKeyToken, Database, Inventory, Order, Pet, opened_database

PLANS = {"free": (60, 1_000), "pro": (300, 10_000), "business": (1_000, 100_000)}
UNLIMITED = 2**31 - 1
RESERVATION = timedelta(days=1)
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


# Bodies and parameters

PetStatus = Literal["available", "pending", "sold"]
Int64 = Annotated[int, Field(strict=True, ge=INT64_MIN, le=INT64_MAX)]
Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")]


class Model(BaseModel):
    """A JSON object with names in camel case."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, from_attributes=True)


class NewPet(Model):
    """A pet to add. The default is not validated: a null that is sent is refused."""

    name: Name
    category_id: Int64
    status: PetStatus = Field(default=None)  # type: ignore[assignment]


class PetOut(Model):
    """A pet."""

    id: int
    name: str
    category_id: int
    status: PetStatus | None


class NewOrder(Model):
    """An order to place."""

    pet_id: Int64
    quantity: Annotated[int, Field(strict=True, ge=1, le=1)] = 1
    ship_date: AwareDatetime = Field(default=None)  # type: ignore[assignment]


class OrderOut(Model):
    """An order."""

    id: int
    pet_id: int
    quantity: int
    status: str
    complete: bool
    placed_at: datetime
    ship_date: datetime | None
    reserved_until: datetime | None


class InventoryOut(Model):
    """How many pets there are of each status."""

    available: int = 0
    pending: int = 0
    sold: int = 0


def plain_digits(text: str) -> str:
    """Refuse what only Python and pydantic take for an integer, such as ``+5`` and ``1_0``."""
    if not re.fullmatch(r"-?[0-9]{1,19}", text, re.ASCII):
        error = PydanticCustomError("plain_digits", "expected an integer in plain digits")
        raise error
    return text


def decode_cursor(text: str) -> int:
    """Return the id after which a page starts."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{11}", text, re.ASCII):
        error = PydanticCustomError("cursor", "expected the cursor of a Link header")
        raise error
    return int.from_bytes(urlsafe_b64decode(text + "="), signed=True)


def encode_cursor(last_id: int) -> str:
    """Return the cursor of the page after ``last_id``."""
    return urlsafe_b64encode(last_id.to_bytes(8, signed=True)).decode().rstrip("=")


PlainInt = Annotated[int, BeforeValidator(plain_digits)]
Cursor = Annotated[int, BeforeValidator(decode_cursor)]


# Errors


class Problem(Exception):
    """An error whose response has the Error body."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers or {}


async def error_response(request: Request, problem: Problem) -> JSONResponse:
    """Return the Error body.

    FastAPI refuses unknown paths and broken JSON before it asks any dependency: these count too.
    """
    if request.url.path.startswith("/v1/") and not hasattr(request.state, "limit_headers"):
        try:
            await admit(request, Response(), await bearer(request))
        except Problem as refusal:
            problem = refusal
    body = {"code": problem.code, "message": problem.message, "status": problem.status}
    headers = {**problem.headers, **getattr(request.state, "limit_headers", {})}
    return JSONResponse(body, problem.status, headers)


async def on_invalid(request: Request, error: RequestValidationError) -> JSONResponse:
    """Respond to an invalid request with its first error."""
    fault = error.errors()[0]
    location, *path = fault["loc"]
    if location == "path":
        return await error_response(request, Problem(404, "not_found", "there is no such resource"))
    code = "invalid_body" if location == "body" else "invalid_parameter"
    field = path[0] if path and isinstance(path[0], str) else "the body"
    return await error_response(request, Problem(400, code, f"{field}: {fault['msg']}"))


async def on_http_error(request: Request, error: HTTPException) -> JSONResponse:
    """Respond to what Starlette and FastAPI themselves refuse, such as an unknown path."""
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_body")
    problem = Problem(error.status_code, code, error.detail, error.headers)
    return await error_response(request, problem)


async def on_fault(request: Request, _error: Exception) -> JSONResponse:
    """Respond to an unexpected exception; uvicorn logs it."""
    return await error_response(request, Problem(500, "internal_error", "a fault of the service"))


# Keys and limits


class Caller(NamedTuple):
    """The owner of the windows that a request counts in, and their limits."""

    name: str
    per_minute: int
    per_day: int

    @property
    def windows(self) -> tuple[RateLimitItem, RateLimitItem]:
        """Both windows, as slowapi counts them."""
        return RateLimitItemPerMinute(self.per_minute), RateLimitItemPerDay(self.per_day)


caller: ContextVar[Caller] = ContextVar("caller")
bearer = HTTPBearer(auto_error=False)
limiter = Limiter(
    key_func=lambda: caller.get().name, storage_uri=os.environ.get("REDIS") or "memory://"
)


def limits_of_caller() -> str:
    """Return the limits of the caller, as slowapi reads them."""
    _, per_minute, per_day = caller.get()
    return f"{per_minute}/minute;{per_day}/day"


@limiter.shared_limit(limits_of_caller, scope="api")
async def count(request: Request) -> None:
    """Count one request in both windows of the caller."""


async def admit(
    request: Request,
    response: Response,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> None:
    """Admit a valid key within its limits; other requests count by their address."""
    key = credentials and await find_key(request.app.state.database, credentials.credentials)
    caller.set(key or Caller(f"address {request.client.host}", *PLANS["pro"]))
    try:
        await count(request)
    except RateLimitExceeded as error:
        headers = request.state.limit_headers = limit_headers()
        wait = max(1, int(headers["X-RateLimit-Reset"]) - int(time()))
        message = f"the limit of {error.detail} is reached: wait {wait} seconds"
        raise Problem(429, "rate_limit_exceeded", message, {"Retry-After": str(wait)}) from None
    request.state.limit_headers = limit_headers()
    response.headers.update(request.state.limit_headers)
    if key is None:
        code = "invalid_api_key" if credentials else "missing_api_key"
        challenge = 'Bearer realm="petstore"' + (', error="invalid_token"' if credentials else "")
        message = "Authorization: expected Bearer and a valid API key"
        raise Problem(401, code, message, {"WWW-Authenticate": challenge})


def limit_headers() -> dict[str, str]:
    """Return the headers of the window with less room; slowapi's own know the minute alone."""
    storage = limiter.limiter.storage
    keys = {item.key_for(caller.get().name, "api"): item.amount for item in caller.get().windows}
    remaining, key = min((limit - storage.get(key), key) for key, limit in keys.items())
    return {
        "X-RateLimit-Limit": str(keys[key]),
        "X-RateLimit-Remaining": str(max(0, remaining)),
        "X-RateLimit-Reset": str(ceil(storage.get_expiry(key))),
    }


@alru_cache(maxsize=10_000, ttl=0.5)
async def find_key(database: Database, token: str) -> Caller | None:
    """Return the key of a token, unless either is unknown, expired or revoked."""
    now = int(time() * 1000)
    statement = (
        select(ApiKey)
        .join(ApiKeyToken, ApiKeyToken.key_id == ApiKey.id)
        .where(
            ApiKeyToken.digest == sha256(token.encode()).digest(),
            ApiKey.environment == "production",
            ApiKey.revoked_at.is_(None),
            func.coalesce(ApiKey.expires_at, INT64_MAX) > now,
            func.coalesce(ApiKeyToken.expires_at, INT64_MAX) > now,
        )
    )
    async with database.reading() as session:
        key = await session.scalar(statement)
    if key is None:
        return None
    minute, day = PLANS.get(key.plan, (UNLIMITED, UNLIMITED))
    return Caller(f"key {key.id}", key.per_minute or minute, key.per_day or day)


# Sessions


async def reading(request: Request) -> AsyncIterator[AsyncSession]:
    """Yield a session for SELECTs."""
    async with request.app.state.database.reading() as session:
        yield session


async def writing(request: Request) -> AsyncIterator[AsyncSession]:
    """Yield a session for one transaction, which the handler commits."""
    async with request.app.state.database.writing() as session:
        yield session


Reading = Annotated[AsyncSession, Depends(reading, scope="function")]
Writing = Annotated[AsyncSession, Depends(writing, scope="function")]


# Operations


api = APIRouter(prefix="/v1", dependencies=[Depends(admit)])


@api.get("/pets", response_model=list[PetOut], response_model_exclude_none=True)
async def list_pets(
    request: Request,
    response: Response,
    session: Reading,
    limit: Annotated[PlainInt, Query(ge=1, le=100)] = 20,
    status: PetStatus | None = None,
    category_id: Annotated[
        PlainInt | None, Query(alias="categoryId", ge=INT64_MIN, le=INT64_MAX)
    ] = None,
    cursor: Cursor | None = None,
) -> Sequence[Pet]:
    """Return a page of pets, by id."""
    statement = select(Pet).order_by(Pet.id).limit(limit + 1)
    if status is not None:
        statement = statement.where(Pet.status == status)
    if category_id is not None:
        statement = statement.where(Pet.category_id == category_id)
    if cursor is not None:
        statement = statement.where(Pet.id > cursor)
    pets = (await session.scalars(statement)).all()
    if len(pets) > limit:
        pets = pets[:limit]
        query = urlencode({**request.query_params, "cursor": encode_cursor(pets[-1].id)})
        response.headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
    return pets


@api.post("/pets", status_code=201, response_model=PetOut, response_model_exclude_none=True)
async def create_pet(new: NewPet, response: Response, session: Writing) -> Pet:
    """Add a pet."""
    pet = Pet(name=new.name, category_id=new.category_id, status=new.status)
    session.add(pet)
    await session.commit()
    response.headers["Location"] = f"/v1/pets/{pet.id}"
    return pet


@api.get("/pets/{petId}", response_model=PetOut, response_model_exclude_none=True, deprecated=True)
async def get_pet(
    pet_id: Annotated[PlainInt, Path(alias="petId", ge=0, le=INT64_MAX)], session: Reading
) -> Pet:
    """Return one pet."""
    pet = await session.get(Pet, pet_id)
    if pet is None:
        raise Problem(404, "not_found", f"there is no pet {pet_id}")
    return pet


@api.get("/store/inventory")
async def get_inventory(session: Reading) -> InventoryOut:
    """Return how many pets there are of each status."""
    counts = select(Inventory.status, func.sum(Inventory.pets)).group_by(Inventory.status)
    return InventoryOut(**dict((await session.execute(counts)).tuples().all()))


@api.post("/store/orders", status_code=201, response_model_exclude_none=True)
async def place_order(new: NewOrder, response: Response, session: Writing) -> OrderOut:
    """Reserve an available pet."""
    reserved = await session.scalar(
        update(Pet)
        .where(Pet.id == new.pet_id, Pet.status == "available")
        .values(status="pending")
        .returning(Pet.id)
    )
    if reserved is None:
        if await session.get(Pet, new.pet_id) is None:
            raise Problem(400, "unknown_pet", f"petId: there is no pet {new.pet_id}")
        raise Problem(409, "pet_not_available", f"pet {new.pet_id} is not available")
    now = datetime.now(UTC)
    order = Order(
        pet_id=new.pet_id,
        status="placed",
        ship_date=new.ship_date.isoformat() if new.ship_date else None,
        placed_at=milliseconds(now),
        reserved_until=milliseconds(now + RESERVATION),
    )
    session.add(order)
    await session.commit()
    response.headers["Location"] = f"/v1/store/orders/{order.id}"
    return OrderOut(
        id=order.id,
        pet_id=order.pet_id,
        quantity=1,
        status="placed",
        complete=False,
        placed_at=now,
        ship_date=new.ship_date,
        reserved_until=now + RESERVATION,
    )


def milliseconds(moment: datetime) -> int:
    """Return the milliseconds since 1970."""
    return int(moment.timestamp() * 1000)


# The application


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keep the database open as long as the application runs."""
    async with opened_database(os.environ["DATABASE"]) as app.state.database:
        yield


app = FastAPI(
    title="Pet store",
    version="1.0.0",
    lifespan=lifespan,
    strict_content_type=False,
    exception_handlers={
        Problem: error_response,
        RequestValidationError: on_invalid,
        HTTPException: on_http_error,
        Exception: on_fault,
    },
)
app.add_middleware(
    CorrelationIdMiddleware,
    header_name="X-Request-Id",
    validator=re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII).fullmatch,
)
app.include_router(api)


@app.get("/healthz")
async def is_alive() -> dict[str, str]:
    """Tell that it serves."""
    return {"status": "ok"}
