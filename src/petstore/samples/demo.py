"""The demo store: its history, a key in a file beside the database, and an administrator."""

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from csv import DictReader
from importlib.resources import files
from operator import itemgetter
from pathlib import Path, PurePosixPath
from random import Random
from typing import Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlsplit

from msgspec import UNSET, UnsetType, convert
from msgspec.structs import replace

from petstore.categories.model import CategoryCreate
from petstore.categories.store import create_category
from petstore.clock import DAY, HOUR, Clock, Milliseconds, system_clock, utc
from petstore.databases.contract import Row, Statement, Store, Unit, read_unit, upsert
from petstore.databases.private_files import create
from petstore.databases.schema import TABLES_BY_NAME
from petstore.errors import LoginTaken
from petstore.events.model import OPERATOR, SERVICE, START, Author
from petstore.events.store import Change, newest_position
from petstore.keys.model import Environment, KeyFields
from petstore.keys.store import ApiKeyCache, create_key
from petstore.orders.model import OrderCreate, OrderPatch
from petstore.orders.store import free_lapsed, place_order, update_order
from petstore.people.model import Account, PersonCreate
from petstore.people.passwords import unknown_hash
from petstore.people.store import (
    add_person,
    create_invitation,
    delete_invitations,
    find_account_by_login,
    note_use,
)
from petstore.pets.model import NewPet, Pet, PetFilter
from petstore.pets.store import create_pets, list_pets
from petstore.settings import Settings, is_postgres, sqlite_path
from petstore.usage.counter import first_day, first_hour, text_of

T = TypeVar("T")

_Step: TypeAlias = tuple[Milliseconds, Unit[Any]]
"""A unit of work, and its time."""

LENGTH: Milliseconds = 60 * DAY
"""How long ago the demo store opened."""

_SAMPLES = files("petstore.samples")
_RESERVED = 24 * 60  # minutes
# The store is open now, and was on each day at this time and in the hours before.
_OPEN: Milliseconds = 9 * HOUR
_ARRIVAL: Milliseconds = 16 * HOUR
_FIRST_PETS, _PETS_A_WEEK, _WEEKS = 165, 11, 8
_SALES, _SALES_TODAY, _DAYS_OF_SALES = 120, 3, 54
_WEEKDAYS = (3, 3, 4, 4, 6, 9, 1)  # on a Saturday three times as many come as on a Monday
_LAPSED = 6
# How much of their time the reservations have used: the first one ends soon.
_PLACED = (0.94, 0.8, 0.6, 0.45, 0.3, 0.12, 0.02)
_PRICE_STEP = 500


class Staff(NamedTuple):
    manager: Author
    clerk: Author
    site: Author


def record_history(staff: Staff, settings: Settings, now: Milliseconds) -> Unit[None]:
    """Let an empty store live until ``now``: its pets get their status, most by an order."""
    ids = []
    for name in (_SAMPLES / "categories.txt").read_text("utf-8").splitlines():
        category = yield from create_category(Change(now - LENGTH), CategoryCreate(name))
        ids.append(category.id)
    history = _History(staff, settings, now)
    for _, step in sorted(history.steps(ids), key=itemgetter(0)):
        yield from step


class _History:
    """Chance is seeded: two demos of one day are alike."""

    def __init__(self, staff: Staff, settings: Settings, now: Milliseconds) -> None:
        self._staff, self._settings, self._now = staff, settings, now
        self._random = Random("petstore")  # noqa: S311 - no secret
        words = tomllib.loads((_SAMPLES / "history.toml").read_text("utf-8"))
        self._prices, self._texts = [*words["prices"].values()], words["texts"]
        lines = (_SAMPLES / "pets.csv").read_text("utf-8").splitlines()
        rows = [{name: text for name, text in row.items() if text} for row in DictReader(lines)]
        self._planned = [convert(row, NewPet, strict=False) for row in rows]
        # By the number of the pet in the file.
        self._pets: list[Pet] = []
        self._orders: dict[int, int] = {}

    def steps(self, categories: Sequence[int]) -> Iterator[_Step]:
        sales = self._chosen_sales()
        ordered = {*sales.values(), *self._with_status("pending")}
        for at, numbers in self._arrivals():
            arriving = [
                replace(
                    self._planned[number],
                    category_id=categories[self._planned[number].category_id - 1],
                    status="available" if number in ordered else self._planned[number].status,
                )
                for number in numbers
            ]
            yield at, self._arrive(at, arriving)
        for at, number in sales.items():
            yield from self._sale(at, number)
        yield from self._open_orders()
        yield from self._ended_orders()

    def _arrivals(self) -> Iterator[tuple[Milliseconds, range]]:
        first, count = 0, _FIRST_PETS
        for week in range(_WEEKS + 1):
            end = len(self._planned) if week == _WEEKS else first + count
            yield self._arrival(first), range(first, end)
            first, count = end, _PETS_A_WEEK

    def _arrival(self, number: int) -> Milliseconds:
        week = min(_WEEKS, max(0, number - _FIRST_PETS + _PETS_A_WEEK) // _PETS_A_WEEK)
        return self._now - LENGTH + _ARRIVAL + (week * 7 + 2 * (week > 0)) * DAY

    def _chosen_sales(self) -> dict[Milliseconds, int]:
        days = range(_DAYS_OF_SALES)
        weights = [_WEEKDAYS[utc(self._now - day * DAY).weekday()] for day in days]
        some = self._random.choices(days, weights, k=_SALES - _SALES_TODAY)
        times = [
            self._now - day * DAY - self._hours(0.2, 9) for day in (*some, *[0] * _SALES_TODAY)
        ]
        sold, sales = self._with_status("sold"), {}
        for at in sorted(times):
            number = self._random.choice(
                [number for number in sold if self._arrival(number) < at - 5 * DAY]
            )
            sold.remove(number)
            sales[at] = number
        return sales

    def _sale(self, at: Milliseconds, number: int) -> Iterator[_Step]:
        """Yield a sale over the counter, or an order of the days before."""
        new = self._new_order(number)
        if self._random.random() < 0.5:  # noqa: PLR2004
            yield at, self._place(number, replace(new, complete=True), at, by=self._seller())
            return
        placed = at - self._hours(30, 96)
        yield from self._approved(number, new, placed)
        yield at, self._change(number, OrderPatch(status="delivered"), at, self._staff.clerk)

    def _open_orders(self) -> Iterator[_Step]:
        pending = self._with_status("pending")
        minutes = self._settings.reservation_minutes
        reserved = min(minutes or _RESERVED, _RESERVED)
        waiting = len(pending) - len(_PLACED)
        for age, number in zip(range(waiting, 0, -1), pending[:waiting], strict=True):
            placed = self._now - age * 20 * HOUR - self._hours(1, 12)
            yield from self._approved(number, self._new_order(number), placed)
        for used, number in zip(_PLACED, pending[waiting:], strict=True):
            at = self._now - round(used * reserved * HOUR / 60)
            yield at, self._place(number, self._new_order(number), at, minutes)

    def _ended_orders(self) -> Iterator[_Step]:
        """Yield orders that were cancelled or have lapsed: their pets are available again."""
        ends = [*self._texts["reasons"], *[""] * _LAPSED]
        self._random.shuffle(ends)
        there = [number for number in self._with_status("available") if number < _FIRST_PETS]
        for number, reason in zip(self._random.sample(there, len(ends)), ends, strict=True):
            at = self._now - self._hours(50, 1250)
            yield at, self._place(number, self._new_order(number), at)
            if not reason:
                yield at + DAY, free_lapsed(at + DAY)
                continue
            at = self._answered(at)
            patch = OrderPatch(status="cancelled", cancel_reason=reason)
            yield at, self._change(number, patch, at, self._seller())

    def _approved(self, number: int, new: OrderCreate, at: Milliseconds) -> Iterator[_Step]:
        ship_date = utc(at + 5 * DAY).replace(minute=0, second=0, microsecond=0)
        yield at, self._place(number, replace(new, ship_date=ship_date), at)
        at = self._answered(at)
        yield at, self._change(number, OrderPatch(status="approved"), at, self._seller())

    def _answered(self, at: Milliseconds) -> Milliseconds:
        at += self._hours(0.5, 8)
        return at + max(0, (self._now - at) % DAY - _OPEN)

    def _new_order(self, number: int) -> OrderCreate:
        price = self._prices[self._planned[number].category_id - 1]
        price = round(price * self._random.uniform(0.8, 1.4) / _PRICE_STEP) * _PRICE_STEP
        return OrderCreate(
            0,
            buyer=self._perhaps(0.85, self._random.choice(self._texts["buyers"])),
            note=self._perhaps(0.25, self._random.choice(self._texts["notes"])),
            amount=self._perhaps(0.95, price),
        )

    def _perhaps(self, chance: float, value: T) -> T | UnsetType:
        return value if self._random.random() < chance else UNSET

    def _seller(self) -> Author:
        return self._random.choice([self._staff.manager, self._staff.clerk, self._staff.clerk])

    def _hours(self, low: float, high: float) -> Milliseconds:
        return round(self._random.uniform(low, high) * HOUR)

    def _with_status(self, status: str) -> list[int]:
        return [number for number, pet in enumerate(self._planned) if pet.status == status]

    def _arrive(self, at: Milliseconds, arriving: Sequence[NewPet]) -> Unit[None]:
        by = self._staff.manager if self._pets else SERVICE
        self._pets += yield from create_pets(Change(at, by), arriving)

    def _place(
        self,
        number: int,
        new: OrderCreate,
        at: Milliseconds,
        minutes: int = _RESERVED,
        by: Author | None = None,
    ) -> Unit[None]:
        new = replace(new, pet_id=self._pets[number].id)
        change = Change(
            at,
            self._staff.site if by is None else by,
            reservation_minutes=minutes,
            currency=self._settings.currency,
        )
        order = yield from place_order(change, new)
        self._orders[number] = order.id

    def _change(self, number: int, patch: OrderPatch, at: Milliseconds, by: Author) -> Unit[None]:
        change = Change(at, by, currency=self._settings.currency)
        yield from update_order(change, self._orders[number], patch)


_BY = Change(0, OPERATOR)
_STAFF = (
    PersonCreate("Amina Diallo", "amina@petstore.example", "manager"),
    PersonCreate("Jonas Lindqvist", "jonas@petstore.example", "clerk"),
)
_INVITED = PersonCreate("Mei Tanaka", "mei@petstore.example", "clerk")
_LOGINS: dict[Environment, str] = {"production": "demo", "staging": "staging-demo"}


class Demo(NamedTuple):
    """The token of the demo key, and the secret of an invitation, empty if it is used."""

    token: str
    link: str


async def prepare_demo(store: Store, settings: Settings, clock: Clock = system_clock) -> Demo:
    """Fill a store in which nothing has happened, and return a demo key and an invitation.

    The token is stored in ``<file>.demo-key`` beside the database, or with PostgreSQL in
    ``<name>.demo-key`` in the current folder, so that the next start can print it again.
    """
    now = clock()
    pets = await list_pets(store, PetFilter(), None, 1)
    is_empty = not pets.items and await newest_position(store) == START
    began = now - LENGTH if is_empty else now
    key_id, token = await _demo_key(store, settings.environment, _token_file(settings), began)
    account = await _demo_account(store, settings.environment, began)
    if is_empty:
        # Another process may be filling the store.
        with suppress(LoginTaken):
            await store.write(_filled(key_id, settings, now))
    link = ""
    if account.password is None and account.caller.state(now) == "active":
        link = await store.write(create_invitation(_BY.at(now), account.caller.id))
    return Demo(token, link)


def _filled(key_id: int, settings: Settings, now: Milliseconds) -> Unit[None]:
    staff = []
    for person in _STAFF:
        added = yield from add_person(person, _BY.at(now - LENGTH), settings.environment)
        staff.append(added.person.id)
        yield delete_invitations(added.person.id)
        yield Statement(
            "UPDATE people SET password = ?2 WHERE id = ?1",
            (added.person.id, unknown_hash()),
            name="update_password_of_sample",
        )
    yield from add_person(_INVITED, _BY.at(now - LENGTH), settings.environment)
    manager, clerk = (Author(f"person/{person_id}") for person_id in staff)
    yield from record_history(Staff(manager, clerk, Author(f"key/{key_id}")), settings, now)
    yield from record_usage(key_id, now)
    for caller_id in (key_id, *staff):
        yield note_use(caller_id, now - HOUR // 2)


async def _demo_key(
    store: Store, environment: Environment, file: Path, now: Milliseconds
) -> tuple[int, str]:
    if file.exists():
        token = file.read_text("ascii", errors="replace").strip()
        keys = ApiKeyCache(store, system_clock, environment)
        key = await keys.find(token.encode("ascii", "replace"))
        if key is not None:
            return key.id, token
    new = KeyFields[int]("demo", "business")
    created = await store.write(create_key(new, environment, _BY.at(now)))
    file.unlink(missing_ok=True)
    with create(file) as kept:
        kept.write(f"{created.token}\n".encode("ascii"))
    return created.id, created.token


async def _demo_account(store: Store, environment: Environment, now: Milliseconds) -> Account:
    login = _LOGINS[environment]
    account = await read_unit(store, find_account_by_login(login, environment))
    if account is None:
        new = PersonCreate("Demo", login, "administrator")
        await store.write(add_person(new, _BY.at(now), environment))
        account = await read_unit(store, find_account_by_login(login, environment))
    assert account is not None  # noqa: S101 - it is there now
    return account


def _token_file(settings: Settings) -> Path:
    ending = "demo-key" if settings.environment == "production" else "staging-demo-key"
    if is_postgres(settings.database):
        # An address without a name means the database that is named after the user.
        store = Path(PurePosixPath(urlsplit(settings.database).path).name or "petstore")
    else:
        store = sqlite_path(settings.database)
    return store.with_name(f"{store.name}.{ending}")


_REQUESTS = 1900  # on a usual day
_IN_A_THOUSAND = {200: 843, 201: 31, 304: 97, 404: 21, 409: 8}
_OLD_PROGRAM = (b"shop-window/1.4", "a5c1e2d09b7f4e638d1c0fa2b3e47d65")


def record_usage(key_id: int, now: Milliseconds) -> Unit[None]:
    """Count the requests of a key on the days before today."""
    chance = Random("petstore")  # noqa: S311 - no secret
    usage: list[Row] = []
    counts: list[Row] = []
    for day in range(first_day(now), now // DAY):
        requests, hour = round(_REQUESTS * chance.uniform(0.7, 1.3)), first_hour(day)
        usage.append((key_id, day, requests))
        for status, share in _IN_A_THOUSAND.items():
            counts.append(("response", key_id, str(status), hour, requests * share // 1000, ""))
        latest = text_of((day * DAY + 15 * HOUR, *_OLD_PROGRAM))
        counts.append(("deprecated", key_id, "getPet", hour, requests // 40, latest))
    yield from _insert("usage", ["requests"], usage)
    yield from _insert("counts", ["count", "latest"], counts)


def _insert(table: str, counts: Sequence[str], rows: Iterable[Row]) -> Unit[None]:
    key = TABLES_BY_NAME[table].key
    yield from upsert(table, (*key, *counts), rows, f"({', '.join(key)}) DO NOTHING")
