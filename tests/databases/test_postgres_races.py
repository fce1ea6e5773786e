"""Units of work that run side by side on PostgreSQL: as if each had run alone, in some order."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from petstore import errors
from petstore.categories.model import Category, CategoryCreate, CategoryPatch
from petstore.clock import DAY, SECOND, Clock
from petstore.databases.contract import Statement, Unit
from petstore.databases.postgres import PostgresStore
from petstore.databases.schema import prune_all
from petstore.events.store import Change
from petstore.interface.idempotency_records import Attempt, IdempotencyRecord, SafeRetries
from petstore.keys.model import DEFAULT_SCOPES, Caller
from petstore.keys.store import revoke_key
from petstore.orders import store as orders
from petstore.orders.model import Order, OrderCreate, OrderFilter, OrderPatch
from petstore.orders.store import Reservations
from petstore.people.model import PersonCreate
from petstore.people.store import Added, add_person, change_person, find_person, invite_person
from petstore.pets import store as pets
from petstore.pets.model import STATUSES, NewPet, Pet, PetFilter, PetPatch
from petstore.webhooks.store import active_webhooks, take_leases
from support.changes import (
    create_category,
    create_pet,
    create_pets,
    delete_category,
    update_category,
)
from support.keys import OPERATOR, actor, issue_stored, revoke
from support.manual_clock import ManualClock
from support.people import add, add_active
from support.postgres import PostgresServer, database_name
from support.races import lingering
from support.retention import DAYS_KEPT, prune_table
from support.stores import do, open_store
from support.webhooks import add_webhook, issue_key

pytestmark = pytest.mark.anyio

BELLA = NewPet("Bella", 1, "available")
ROUNDS = 15
DELETED_OR_ORDERED = ((type(None), errors.UnknownPet), (errors.PetReserved, Order))


@pytest.fixture
async def stores(postgres_url: str) -> AsyncIterator[list[PostgresStore]]:
    """Three processes' views of one database."""
    async with AsyncExitStack() as stack:
        opening = (open_store(postgres_url) for _ in range(3))
        yield [await stack.enter_async_context(one) for one in opening]


@pytest.fixture
def store(stores: list[PostgresStore]) -> PostgresStore:
    return stores[0]


async def outcomes_in_any_order(*attempts: Awaitable[object]) -> list[object]:
    """Begin at once, in an order that differs from round to round."""

    async def begin(attempt: Awaitable[object]) -> object:
        await asyncio.sleep(random.random() * 0.02)  # noqa: S311 - any will do
        return await attempt

    return await asyncio.gather(*map(begin, attempts), return_exceptions=True)


async def race(stores: list[PostgresStore], *units: Unit[Any]) -> list[Any]:
    """Run the units at once and slowly, each in another process."""
    writes = (store.write(lingering(unit)) for store, unit in zip(stores, units, strict=False))
    return await outcomes_in_any_order(*writes)


def kinds(outcomes: list[object]) -> set[type]:
    return {type(outcome) for outcome in outcomes if isinstance(outcome, BaseException)}


async def all_pets(store: PostgresStore) -> dict[int, Pet]:
    page = await pets.list_pets(store, PetFilter(), None, 100_000)
    return {pet.id: pet for pet in page.items}


async def all_orders(store: PostgresStore) -> list[Any]:
    return (await orders.list_orders(store, OrderFilter(), None, 100_000)).items


async def require_exact_inventory(store: PostgresStore) -> None:
    counted = Counter(pet.status for pet in (await all_pets(store)).values())
    found = await pets.get_inventory(store)
    assert [counted[status] for status in STATUSES] == [found.available, found.pending, found.sold]


async def order_once_free(store: PostgresStore, pet_id: int, clock: Clock) -> Order:
    """Ask again and again until the pet is available."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await store.write(orders.place_order(Change(clock()), OrderCreate(pet_id)))
            except errors.PetNotAvailable:
                await asyncio.sleep(0)


async def test_a_pet_that_an_order_reserves_is_not_released(
    stores: list[PostgresStore], clock: ManualClock
) -> None:
    """A pending pet becomes available, is ordered, and so is pending again: others notice."""
    first, second, third = stores

    def free(pet: Pet) -> Unit[Pet]:
        patch = PetPatch(status="available")
        return lingering(pets.update_pet(Change(0), pet.id, patch))

    for _ in range(ROUNDS):
        pet = await first.write(create_pet(NewPet("Bella", 1, "pending")))
        outcomes = await outcomes_in_any_order(
            first.write(free(pet)), second.write(free(pet)), order_once_free(third, pet.id, clock)
        )
        assert kinds(outcomes) <= {errors.PetReserved}
        assert (await pets.get_pet(first, pet.id)).status == "pending"


async def test_a_strict_category_is_either_deleted_or_gets_a_pet(
    stores: list[PostgresStore],
) -> None:
    first = stores[0]
    old = await first.write(create_pet(BELLA))
    for number in range(ROUNDS):
        category = await first.write(create_category(CategoryCreate(f"dogs {number}")))
        move = PetPatch(category_id=category.id)
        update = pets.update_pet(Change(0, strict_categories=True), old.id, move)
        create = create_pet(NewPet("Rex", category.id), strict_categories=True)
        deleted, *added = await race(stores, delete_category(category.id), create, update)
        members = [p for p in (await all_pets(first)).values() if p.category_id == category.id]
        if deleted is None:
            assert [type(outcome) for outcome in added] == [errors.UnknownCategory] * 2
            assert members == []
        else:
            assert type(deleted) is errors.CategoryInUse
            assert len(members) == [type(outcome) for outcome in added].count(Pet) > 0


async def test_a_category_name_and_a_login_are_assigned_only_once(
    stores: list[PostgresStore], clock: ManualClock
) -> None:
    for number in range(ROUNDS):
        others = [
            await stores[0].write(create_category(CategoryCreate(f"{number} {name}")))
            for name in ("one", "two")
        ]
        patch = CategoryPatch(name=f"{number} dogs")
        renaming = (update_category(other.id, patch) for other in others)
        creating = create_category(CategoryCreate(f"{number} DOGS"))
        outcomes = await race(stores, *renaming, creating)
        assert Counter(map(type, outcomes)) == {Category: 1, errors.CategoryNameTaken: 2}
        adding = (
            add_person(PersonCreate("Grace", login, "clerk"), OPERATOR.at(clock()), "production")
            for login in (f"grace-{number}", f"GRACE-{number}", f"Grace-{number}")
        )
        assert Counter(map(type, await race(stores, *adding))) == {Added: 1, errors.LoginTaken: 2}


async def test_a_condition_holds_until_the_change_is_made(stores: list[PostgresStore]) -> None:
    """If several clients saw the same version, one changes it and the others are refused."""
    pet = await stores[0].write(create_pet(BELLA))

    def unchanged(found: Pet) -> None:
        if found != pet:
            raise errors.PreconditionFailed(found.name)

    def rename(number: int) -> Unit[Pet]:
        patch = PetPatch(name=f"Bella {number}")
        return pets.update_pet(Change(0, check=unchanged), pet.id, patch)

    deleting = [pets.delete_pet(Change(0, check=unchanged), pet.id) for _ in stores]
    outcomes = await race(stores * 4, *map(rename, range(9)), *deleting)
    refusals = [each for each in outcomes if isinstance(each, errors.PetstoreError)]
    assert len(refusals) == 11
    assert kinds(outcomes) <= {errors.PreconditionFailed, errors.NotFound}


async def test_two_administrators_cannot_revoke_or_disable_each_other(
    stores: list[PostgresStore], clock: ManualClock
) -> None:
    """Nor can one disable the other while the other gets another role: one of them stays."""
    first = stores[0]
    for number in range(5):
        scopes = frozenset({*DEFAULT_SCOPES, "keys:admin"})
        one, two = [await actor(first, clock, scopes=scopes) for _ in range(2)]
        assert one.caller is not None
        assert two.caller is not None
        revoking = [
            revoke_key(two.caller.id, one.at(clock())),
            revoke_key(one.caller.id, two.at(clock())),
        ]
        outcomes = await race(stores, *revoking)
        assert kinds(outcomes) == {errors.MissingScope}  # the second has just been revoked itself
        left = one if isinstance(outcomes[1], errors.MissingScope) else two
        assert left.caller is not None
        await revoke(first, clock, left.caller.id)

        ada, grace = [
            await add_active(first, clock, login=f"{number}-{n}", role="administrator")
            for n in range(2)
        ]
        outcomes = await race(
            stores,
            change_person(ada.id, {"state": "disabled"}, OPERATOR.at(clock())),
            change_person(grace.id, {"role": "clerk"}, OPERATOR.at(clock())),
        )
        assert kinds(outcomes) == {errors.LastAdministrator}
        stays = ada if isinstance(outcomes[0], errors.LastAdministrator) else grace
        assert (await find_person(stores[2], stays.id, None)).role == "administrator"
        await first.write(do("UPDATE people SET password = NULL"))


async def test_of_two_invitations_at_once_one_link_is_left(
    stores: list[PostgresStore], clock: ManualClock
) -> None:
    person = (await add(stores[0], clock)).person
    await race(stores, *(invite_person(person.id, OPERATOR.at(clock())) for _ in stores))
    ((links,),) = await stores[0].read(Statement("SELECT count(*) FROM invitations"))
    assert links == 1


@pytest.fixture
async def key(store: PostgresStore, clock: ManualClock) -> Caller:
    return await issue_stored(store, clock)


def adding() -> Unit[bytes]:
    pet = yield from lingering(create_pet(BELLA))
    return f"pet {pet.id}".encode()


async def test_when_the_first_request_fails_one_of_the_next_takes_effect(
    stores: list[PostgresStore], clock: ManualClock, key: Caller
) -> None:
    def failing() -> Unit[bytes]:
        yield from adding()
        raise KeyError

    attempt = Attempt(key, "retry", b"request")
    first, *others = (SafeRetries(store, clock) for store in stores)
    failed = asyncio.create_task(first.once(attempt, failing()))
    await asyncio.sleep(0.005)
    adding_again = (other.once(attempt, adding()) for other in others)
    outcomes = await asyncio.gather(failed, *adding_again, return_exceptions=True)
    assert type(outcomes[0]) is KeyError
    assert {each.is_replay for each in outcomes if isinstance(each, IdempotencyRecord)} == {
        False,
        True,
    }
    assert len(await all_pets(stores[0])) == 1


async def test_a_new_idempotency_record_is_not_deleted_with_the_old_one(
    stores: list[PostgresStore], clock: ManualClock, key: Caller
) -> None:
    first, second = (SafeRetries(store, clock) for store in stores[:2])
    attempt = Attempt(key, "retry", b"request")
    for number in range(ROUNDS):
        await first.once(attempt, adding())
        clock.advance(2 * DAY // SECOND)
        outcomes = await outcomes_in_any_order(
            first.once(attempt, adding()),
            *(prune_all(store, clock, DAYS_KEPT) for store in stores[1:]),
        )
        assert kinds(outcomes) == set()
        replayed = await second.once(attempt, adding())
        assert replayed.is_replay
        assert len(await all_pets(stores[0])) == 2 * number + 2
        clock.advance(2 * DAY // SECOND)


async def add_lapsed(store: PostgresStore, clock: ManualClock) -> Order:
    """Order a new pet, a second longer ago than it is reserved for."""
    pet = await store.write(create_pet(BELLA))
    reserving = Change(clock(), reservation_minutes=1)
    order = await store.write(orders.place_order(reserving, OrderCreate(pet.id)))
    clock.advance(61)
    return order


async def test_concurrent_units_cancel_a_lapsed_order_once_without_a_deadlock(
    stores: list[PostgresStore], clock: ManualClock
) -> None:
    first, second, third = stores
    for _ in range(ROUNDS):
        order, now = await add_lapsed(first, clock), clock()
        update = pets.update_pet(Change(now), order.pet_id, PetPatch(name="Max"))
        *others, deleted, ordered = await outcomes_in_any_order(
            first.write(lingering(update)),
            first.write(lingering(orders.cancel_order(Change(now), order.id))),
            Reservations(second, clock).refresh(),
            Reservations(third, clock).refresh(),
            second.write(lingering(pets.delete_pet(Change(now), order.pet_id))),
            third.write(lingering(orders.place_order(Change(now), OrderCreate(order.pet_id)))),
        )
        assert kinds(others) <= {errors.NotFound}
        assert (type(deleted), type(ordered)) in DELETED_OR_ORDERED
        assert (await orders.get_order(first, order.id)).status == "cancelled"
    held = {order.pet_id for order in await all_orders(first) if order.status == "placed"}
    assert dict.fromkeys(held, "pending") == {
        pet_id: pet.status for pet_id, pet in (await all_pets(first)).items()
    }
    await require_exact_inventory(first)


async def test_an_order_approved_in_time_does_not_lapse(
    stores: list[PostgresStore], clock: ManualClock
) -> None:
    first, second, third = stores
    for _ in range(ROUNDS):
        order = await add_lapsed(first, clock)
        approve = orders.update_order(
            Change(clock() - 2_000), order.id, OrderPatch(status="approved")
        )
        approved, *_ = outcomes = await outcomes_in_any_order(
            first.write(lingering(approve)),
            Reservations(second, clock).refresh(),
            Reservations(third, clock).refresh(),
        )
        assert kinds(outcomes) <= {errors.IllegalTransition}
        order = await orders.get_order(first, order.id)
        status = (await pets.get_pet(first, order.pet_id)).status
        is_approved = isinstance(approved, Order)
        expected = ("approved", "pending") if is_approved else ("cancelled", "available")
        assert (order.status, status) == expected


async def test_the_inventory_is_exact_during_concurrent_writes(stores: list[PostgresStore]) -> None:
    """And stays small: what gathers is summed up now and then."""
    mixed = [NewPet("Rex", 1, status) for status in STATUSES] * 100
    await asyncio.gather(*(store.write(create_pets(mixed)) for store in stores * 4))
    sold = "UPDATE pets SET status = 'sold' WHERE id % 12 = ?1"
    moved = sold.replace("'sold'", "CASE status WHEN 'sold' THEN 'pending' ELSE 'sold' END")
    gone = "DELETE FROM pets WHERE id % 12 = ?1"
    await asyncio.gather(*(stores[n % 3].write(do(sold, n)) for n in range(0, 12, 2)))
    await asyncio.gather(*(stores[n % 3].write(do(gone, n)) for n in range(0, 12, 3)))
    await require_exact_inventory(stores[0])
    counts = "SELECT count(*) FROM inventory"
    for _ in range(20):  # only what is committed can be summed up, and by chance
        if await stores[0].read(Statement(counts)) < [(6_000,)]:
            return
        await stores[0].write(do(moved, 1))
    pytest.fail("the counts are not summed up")


async def test_rows_that_another_process_has_locked_are_skipped_or_shared(
    store: PostgresStore, postgres: PostgresServer, postgres_url: str, clock: ManualClock
) -> None:
    """Pruning and leasing take the other rows; a pet may be added to a category at once."""
    key = await issue_key(store)
    await store.write(do("INSERT INTO usage VALUES (?1, 1, 5), (?1, 2, 5)", key.id))
    for _ in range(2):
        await add_webhook(store, key)
    webhooks = await active_webhooks(store, "production", clock())
    dogs = await store.write(create_category(CategoryCreate("dogs")))
    locks = (
        "UPDATE usage SET requests = 6 WHERE day = 1",
        "UPDATE webhooks SET failures = 1 WHERE id = 1",
        f"SELECT id FROM categories WHERE id = {dogs.id} FOR KEY SHARE",  # noqa: S608
    )
    with postgres.transaction(database_name(postgres_url), "; ".join(locks)):
        assert await store.write(prune_table("usage", 3 * DAY)) == 1
        assert await store.write(take_leases("me", webhooks, clock())) == {2}
        await store.write(create_pet(NewPet("Rex", dogs.id), strict_categories=True))
    assert await store.read(Statement("SELECT day FROM usage")) == [(1,)]


NAMES = [f"category {number}" for number in range(6)]


def any_change(chance: random.Random, clock: ManualClock) -> Unit[Any]:
    """Return a change of one of the few pets, orders and categories that everybody wants."""
    now, late = Change(clock(), strict_categories=True), Change(0)
    pet_id, order_id, category_id = (chance.randint(1, last) for last in (30, 60, 8))
    patches = [
        *(PetPatch(status=status) for status in STATUSES),
        PetPatch(category_id=category_id),
        PetPatch(name=f"Rex {category_id}"),
    ]
    moves = [OrderPatch(status=status) for status in ("approved", "delivered", "cancelled")]
    reserving = Change(clock(), reservation_minutes=chance.randint(0, 1))
    name = chance.choice(NAMES)
    return chance.choice(
        [
            create_pet(NewPet("Rex", category_id, "available"), strict_categories=True),
            *2 * [pets.update_pet(now, pet_id, chance.choice(patches))],
            pets.delete_pet(now, pet_id),
            *2 * [orders.place_order(reserving, OrderCreate(pet_id))],
            *2 * [orders.update_order(late, order_id, chance.choice(moves))],
            orders.cancel_order(late, order_id),
            create_category(CategoryCreate(name)),
            update_category(category_id, CategoryPatch(name=name)),
            delete_category(category_id),
        ]
    )


def done_or_in_conflict(unit: Unit[Any]) -> Unit[bytes]:
    try:
        yield from unit
    except errors.Conflict:
        return b"conflict"
    return b"done"


async def make_changes(
    number: int, store: PostgresStore, clock: ManualClock, key: Caller
) -> AsyncIterator[Exception]:
    """Make many changes, and yield the errors that are not the caller's own."""
    chance = random.Random(number)  # noqa: S311 - the same each time
    retries, reservations = SafeRetries(store, clock), Reservations(store, clock)
    for _ in range(40):
        unit, way = any_change(chance, clock), chance.randrange(8)
        try:
            if way == 0:
                attempt = Attempt(key, f"{chance.randint(1, 40)}", b"request")
                await retries.once(attempt, done_or_in_conflict(unit))
            elif way == 1:
                clock.advance(1)  # no reservation may lapse within the change that makes it
                await reservations.refresh()
            else:
                await store.write(lingering(unit) if way == 2 else unit)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            if not isinstance(error, errors.PetstoreError) or error.status >= 500:
                yield error


async def test_concurrent_operations_never_fail_and_leave_the_store_consistent(
    stores: list[PostgresStore], clock: ManualClock, key: Caller
) -> None:
    store = stores[0]
    for name in NAMES[:3]:
        await store.write(create_category(CategoryCreate(name)))
    for number in range(8):
        await store.write(create_pet(NewPet("Bella", number % 3 + 1, "available")))

    async def faults(number: int) -> list[Exception]:
        return [fault async for fault in make_changes(number, stores[number % 3], clock, key)]

    assert not [fault for each in await asyncio.gather(*map(faults, range(24))) for fault in each]
    found = await all_pets(store)
    held = Counter(
        order.pet_id for order in await all_orders(store) if order.status in ("placed", "approved")
    )
    assert set(held.values()) <= {1}
    assert dict.fromkeys(held, "pending") == {pet_id: found[pet_id].status for pet_id in held}
    registered = {row[0] for row in await store.read(Statement("SELECT id FROM categories"))}
    assert {pet.category_id for pet in found.values()} <= registered
    await require_exact_inventory(store)
