"""The demo store: its history, a key in a file beside the database, and an administrator."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from csv import DictReader
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path, PurePosixPath
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from msgspec import UNSET, UnsetType, convert
from msgspec.structs import replace

from petstore.categories.model import CategoryCreate
from petstore.categories.store import create_category
from petstore.clock import DAY, HOUR, Clock, Milliseconds, system_clock, utc
from petstore.databases.contract import Row, Statement, Store, Unit, read_unit, upsert
from petstore.databases.private_files import create
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

_Step: TypeAlias = tuple[Milliseconds, Unit[Any]]
"""A unit of work, and its time."""

LENGTH: Milliseconds = 60 * DAY
"""How long ago the demo store opened."""

_SAMPLES = Path(__file__).parent
_RESERVED = 24 * 60  # minutes


class _Sample(NewPet, frozen=True, kw_only=True):
    """A pet and its order, if it has one. The times are hours ago.

    ``by`` is the one of the staff who sold the pet over the counter, or answered the order.
    """

    arrived: int
    order: (
        Literal["counter", "placed", "approved", "delivered", "cancelled", "lapsed"] | UnsetType
    ) = UNSET
    by: Literal["manager", "clerk"] = "clerk"
    placed: float = 0
    approved: float = 0
    ended: float = 0
    amount: int | UnsetType = UNSET
    buyer: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET


def record_history(
    authors: Mapping[str, Author], settings: Settings, now: Milliseconds
) -> Unit[None]:
    """Let an empty store live until ``now``: its pets get their status, most by an order."""
    ids = []
    for name in (_SAMPLES / "categories.txt").read_text("utf-8").splitlines():
        category = yield from create_category(Change(now - LENGTH), CategoryCreate(name))
        ids.append(category.id)
    history = _History(authors, settings, now)
    for _, step in sorted(history.steps(ids), key=itemgetter(0)):
        yield from step


class _History:
    def __init__(
        self, authors: Mapping[str, Author], settings: Settings, now: Milliseconds
    ) -> None:
        self._authors, self._settings, self._now = authors, settings, now
        lines = (_SAMPLES / "pets.csv").read_text("utf-8").splitlines()
        rows = ({name: text for name, text in row.items() if text} for row in DictReader(lines))
        self._samples = [convert(row, _Sample, strict=False) for row in rows]
        # By the number of the sample.
        self._pets: list[Pet] = []
        self._orders: dict[int, int] = {}

    def steps(self, categories: Sequence[int]) -> Iterator[_Step]:
        for arrived, samples in groupby(self._samples, attrgetter("arrived")):
            arriving = [
                NewPet(
                    sample.name,
                    categories[sample.category_id - 1],
                    sample.status if sample.order is UNSET else "available",
                )
                for sample in samples
            ]
            yield self._ago(arrived), self._arrive(self._ago(arrived), arriving)
        for number, sample in enumerate(self._samples):
            if sample.order is not UNSET:
                yield from self._order(number, sample)

    def _order(self, number: int, sample: _Sample) -> Iterator[_Step]:
        placed, approved, ended = map(self._ago, (sample.placed, sample.approved, sample.ended))
        new = OrderCreate(0, buyer=sample.buyer, note=sample.note, amount=sample.amount)
        if sample.order == "counter":
            yield ended, self._place(number, replace(new, complete=True), ended, sample.by)
            return
        minutes = _RESERVED
        if sample.order == "placed":  # not longer ago than reservations last
            minutes = self._settings.reservation_minutes
            placed = self._ago(sample.placed * min(minutes or _RESERVED, _RESERVED) / _RESERVED)
        if sample.approved:
            ship_date = utc(placed + 5 * DAY).replace(minute=0, second=0, microsecond=0)
            new, patch = replace(new, ship_date=ship_date), OrderPatch(status="approved")
            yield approved, self._change(number, patch, approved, sample.by)
        yield placed, self._place(number, new, placed, "site", minutes)
        if sample.order == "delivered":
            yield ended, self._change(number, OrderPatch(status="delivered"), ended, "clerk")
        elif sample.order == "cancelled":
            patch = OrderPatch(status="cancelled", cancel_reason=sample.reason)
            yield ended, self._change(number, patch, ended, sample.by)
        elif sample.order == "lapsed":
            yield ended, free_lapsed(ended)

    def _ago(self, hours: float) -> Milliseconds:
        return self._now - round(hours * HOUR)

    def _arrive(self, at: Milliseconds, arriving: Sequence[NewPet]) -> Unit[None]:
        by = self._authors["manager"] if self._pets else SERVICE
        self._pets += yield from create_pets(Change(at, by), arriving)

    def _place(
        self, number: int, new: OrderCreate, at: Milliseconds, by: str, minutes: int = _RESERVED
    ) -> Unit[None]:
        change = self._by(by, at)._replace(reservation_minutes=minutes)
        order = yield from place_order(change, replace(new, pet_id=self._pets[number].id))
        self._orders[number] = order.id

    def _change(self, number: int, patch: OrderPatch, at: Milliseconds, by: str) -> Unit[None]:
        yield from update_order(self._by(by, at), self._orders[number], patch)

    def _by(self, who: str, at: Milliseconds) -> Change:
        return Change(at, self._authors[who], currency=self._settings.currency)


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
    authors = {"site": Author(f"key/{key_id}")}
    for person in _STAFF:
        added = yield from add_person(person, _BY.at(now - LENGTH), settings.environment)
        person_id = added.person.id
        authors[person.role] = Author(f"person/{person_id}")
        yield delete_invitations(person_id)
        yield Statement(
            "UPDATE people SET password = ?2 WHERE id = ?1",
            (person_id, unknown_hash()),
            name="update_password_of_sample",
        )
        yield note_use(person_id, now - HOUR // 2)
    yield from add_person(_INVITED, _BY.at(now - LENGTH), settings.environment)
    yield from record_history(authors, settings, now)
    yield from record_usage(key_id, now)
    yield note_use(key_id, now - HOUR // 2)


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
    yield from upsert("usage", ("key_id", "day", "requests"), usage, "(key_id, day) DO NOTHING")
    key = ("kind", "key_id", "name", "hour")
    counted = (*key, "count", "latest")
    yield from upsert("counts", counted, counts, f"({', '.join(key)}) DO NOTHING")
