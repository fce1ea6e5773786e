"""A PostgreSQL server that is gone, hangs, refuses or cuts connections: refused in time."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from time import monotonic
from typing import Any

import pytest

from petstore.databases import postgres_connection
from petstore.databases.contract import Statement, Unit
from petstore.databases.postgres import PostgresStore
from petstore.errors import Conflict, Unavailable
from petstore.pets.model import NewPet
from petstore.pets.store import PETS_BY_WORD
from support.changes import create_pet, create_pets
from support.pooler import pooler
from support.postgres import PostgresServer, database_name, postgres_server, stopped
from support.redis_server import RedisServer
from support.rows import select_pet, select_pets
from support.service import running_service
from support.silent_server import Way, way_to
from support.stores import do, open_store

pytestmark = pytest.mark.anyio

BELLA = NewPet("Bella", 1)
ALL_PETS = select_pets(1000)
PID = Statement("SELECT pg_backend_pid()")
TO_CUT = "SELECT pg_terminate_backend(pg_backend_pid())"


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that a test stops, and starts again."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def own_url(own_server: PostgresServer) -> str:
    return own_server.new_store()


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with open_store(postgres_url) as store:
        yield store


@pytest.fixture
async def short_timeout_store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    """A store that gives up soon, and has two connections."""
    async with open_store(postgres_url, timeout_ms=1_000, connections=2) as store:
        yield store


def slowly(seconds: float) -> Unit[None]:
    yield from create_pet(NewPet("slow", 1))
    yield Statement(f"SELECT pg_sleep({seconds})")


async def outcomes_of_many(store: PostgresStore) -> set[type]:
    """Ask for more than there are connections, and tell the kinds of what comes of it."""
    outcomes = await asyncio.gather(
        *(store.write(create_pet(BELLA)) for _ in range(20)),
        *(count_pets(store) for _ in range(20)),
        return_exceptions=True,
    )
    return {type(outcome) for outcome in outcomes}


async def count_pets(store: PostgresStore) -> int:
    return len(await store.read(ALL_PETS))


async def test_a_process_that_is_frozen_in_a_transaction_loses_its_locks(
    short_timeout_store: PostgresStore, postgres: PostgresServer, postgres_url: str
) -> None:
    change = "UPDATE api_key_revision SET revision = revision + 1"

    def stand_still() -> Unit[None]:
        yield Statement(change)
        postgres.sql(f"SET statement_timeout = 20000; {change}", database_name(postgres_url))

    with pytest.raises(Unavailable):
        await short_timeout_store.write(stand_still())
    changed = Statement("SELECT revision FROM api_key_revision")
    assert await short_timeout_store.read(changed) == [(1,)]


async def test_the_server_has_the_limits_of_the_store_whatever_the_defaults_of_the_database(
    postgres: PostgresServer, postgres_url: str, pooled_url: str
) -> None:
    """Otherwise queries behind a lock would use up the connections of the server."""
    name = database_name(postgres_url)
    postgres.sql(f"ALTER DATABASE {name} SET default_transaction_isolation = serializable")
    timeout = "SELECT current_setting('statement_timeout')"
    idle = Statement("SELECT current_setting('tcp_keepalives_idle')")
    isolation = "SELECT current_setting('transaction_isolation')"
    async with open_store(postgres_url, timeout_ms=7_000) as store:
        assert await store.read(Statement(timeout)) == [("7s",)]
        assert await store.read(idle) == [("30",)]
    async with open_store(pooled_url, timeout_ms=7_000) as pooled:
        assert await pooled.write(do(timeout)) == [("7s",)]
        assert await pooled.write(do(isolation)) == [("read committed",)]


async def test_a_connection_is_in_use_until_its_change_is_made_and_the_last_is_used_next(
    store: PostgresStore,
) -> None:
    def count_connections() -> Unit[int]:
        yield PID
        return store.connections_in_use

    assert await store.write(count_connections()) == 1
    assert store.connections_in_use == 0
    opened = await asyncio.gather(store.read(PID), store.read(PID))
    assert opened[0] != opened[1]
    last, *next_ones = [await store.read(PID) for _ in range(3)]
    assert next_ones == [last, last]


async def test_while_the_server_hangs_requests_are_refused_and_a_store_closes(
    own_server: PostgresServer, own_url: str
) -> None:
    closing = PostgresStore(own_url)
    await closing.open()
    await closing.check()
    async with open_store(own_url, timeout_ms=1_000, connections=3) as store:
        await asyncio.gather(*(store.write(create_pet(BELLA)) for _ in range(10)))
        with own_server.stopped():
            assert await outcomes_of_many(store) == {Unavailable}
            async with asyncio.timeout(20):
                await closing.close()
        async with open_store(own_url) as patient:
            await patient.check()
        assert await count_pets(store) in (10, 11, 12, 13)  # a commit may have been on its way
        await store.write(create_pet(BELLA))


async def test_broken_connections_are_replaced(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    """Whether the store has noticed or not."""
    for pause in (0, 0, 0.1):
        await asyncio.gather(*(store.write(create_pet(BELLA)) for _ in range(10)))
        for use in (partial(count_pets, store), lambda: store.write(create_pet(BELLA))):
            postgres.cut_connections()
            await asyncio.sleep(pause)
            await use()
    assert await count_pets(store) == 33


@pytest.mark.parametrize("writes", [False, True])
async def test_after_one_connection_times_out_all_others_are_replaced(
    postgres: PostgresServer, postgres_url: str, *, writes: bool
) -> None:
    """As when a machine is gone and another has taken its address."""
    async with open_store(postgres_url, timeout_ms=1_000) as store:
        await asyncio.gather(*(store.write(slowly(0.05)) for _ in range(3)))
        with stopped(postgres.backends()):
            with pytest.raises(Unavailable, match="in time"):
                await (store.write(create_pet(BELLA)) if writes else count_pets(store))
            await (store.write(create_pet(BELLA)) if writes else count_pets(store))


def at_commit(action: str) -> str:
    """Return SQL after which ``action`` is done whenever a change to pets is committed."""
    return f"""
        CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM {action}; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER act AFTER INSERT ON pets DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION act();
    """


async def test_a_read_that_breaks_its_connection_is_tried_twice_and_a_change_once(
    postgres: PostgresServer, postgres_url: str, store: PostgresStore
) -> None:
    def cut_off() -> Unit[None]:
        yield from create_pet(BELLA)
        yield Statement(TO_CUT)

    name = database_name(postgres_url)
    for breaking in (store.read(Statement(TO_CUT)), store.write(cut_off())):
        with pytest.raises(Unavailable, match="terminating connection"):
            await breaking
        await store.check()
    postgres.sql(at_commit("pg_terminate_backend(pg_backend_pid())"), name)
    with pytest.raises(Unavailable, match="terminating connection"):
        await store.write(create_pet(BELLA))
    postgres.sql("DROP TRIGGER act ON pets", name)
    await store.write(create_pet(BELLA))
    assert await count_pets(store) == 1


async def test_what_takes_too_long_or_waits_for_a_lock_or_a_connection_is_refused_and_not_made(
    short_timeout_store: PostgresStore, postgres: PostgresServer, postgres_url: str
) -> None:
    store, name = short_timeout_store, database_name(postgres_url)
    with pytest.raises(Unavailable, match="in time"):
        await store.write(slowly(20))
    pet = await store.write(create_pet(BELLA))
    assert await count_pets(store) == 1
    with (
        postgres.transaction(name, "SELECT id FROM pets FOR UPDATE"),
        pytest.raises(Unavailable, match="in time"),
    ):
        await store.write(do("UPDATE pets SET name = 'late'"))
    await store.write(do("UPDATE pets SET category_id = 2"))
    assert await store.read(select_pet(pet.id)) == [(pet.id, "Bella", 2, None)]
    with postgres.transaction(name, "LOCK TABLE pets"):
        assert await outcomes_of_many(store) == {Unavailable}
    await store.write(create_pet(BELLA))
    assert await count_pets(store) == 2


async def test_a_locked_pet_delays_the_index_of_no_other(
    store: PostgresStore, postgres: PostgresServer, postgres_url: str
) -> None:
    await store.write(create_pets([BELLA] * 300))
    with postgres.transaction(
        database_name(postgres_url), "SELECT id FROM pets WHERE id <= 10 FOR UPDATE"
    ):
        await PETS_BY_WORD.update(store)
        (waiting,) = [texts async for texts in PETS_BY_WORD.waiting(store)]
        assert [*waiting] == [*range(1, 11)]
    await PETS_BY_WORD.update(store)
    assert [texts async for texts in PETS_BY_WORD.waiting(store)] == []


async def test_a_cancelled_change_is_not_made_and_blocks_no_other(
    short_timeout_store: PostgresStore,
) -> None:
    def unit(begun: asyncio.Event) -> Unit[None]:
        begun.set()
        yield from slowly(0.2)

    for _ in range(5):
        begun = asyncio.Event()
        leaving = asyncio.create_task(short_timeout_store.write(unit(begun)))
        await begun.wait()
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
    await short_timeout_store.write(create_pet(BELLA))
    assert await count_pets(short_timeout_store) == 1


async def test_a_read_only_server_refuses_changes_until_it_is_writable(
    postgres: PostgresServer, store: PostgresStore, postgres_url: str
) -> None:
    name = database_name(postgres_url)
    await store.write(create_pet(BELLA))
    postgres.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    postgres.cut_connections()
    with pytest.raises(Unavailable, match="read-only"):
        await store.write(create_pet(BELLA))
    assert await count_pets(store) == 1
    postgres.sql(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    with pytest.raises(Unavailable, match="read-only"):
        await store.write(do("DELETE FROM pets"))  # on a connection of before
    await store.write(create_pet(BELLA))


async def test_a_unit_says_which_error_a_value_that_is_taken_is(store: PostgresStore) -> None:
    def unit() -> Unit[None]:
        yield Statement("INSERT INTO categories (name, name_key) VALUES ('a', 'a')")
        again = "INSERT INTO categories (name, name_key) VALUES ('b', 'a')"
        yield Statement(again, if_taken=partial(Conflict, "taken"))

    with pytest.raises(Conflict, match="taken"):
        await store.write(unit())
    assert await store.read(Statement("SELECT * FROM categories")) == []


async def test_any_error_of_the_server_is_reported_with_its_sqlstate(store: PostgresStore) -> None:
    for condition in (
        *("connection_failure", "too_many_connections", "idle_in_transaction_session_timeout"),
        *("data_corrupted", "disk_full", "io_error", "division_by_zero"),
        *("deadlock_detected", "lock_not_available", "serialization_failure"),
        *("duplicate_prepared_statement", "invalid_sql_statement_name"),
        "object_not_in_prerequisite_state",
    ):
        failing = f"DO 'BEGIN RAISE $${condition}$$ USING ERRCODE = $${condition}$$; END'"
        with pytest.raises(Unavailable, match=rf"{condition} \(SQLSTATE [0-9A-Z]{{5}}\)$"):
            await store.write(do(failing))
    for wrong in (
        *(Statement("SELECT id FROM pets WHERE id = ?1", (value,)) for value in ("one", 2**63)),
        Statement("SELECT colour FROM pets"),
    ):
        for refused in (store.read(wrong), store.write(do(wrong.sql, *wrong.parameters))):
            with pytest.raises(Unavailable, match="SQLSTATE"):
                await refused
    insert = "INSERT INTO categories (name, name_key) VALUES ('a', 'a'), ('b', 'a')"
    with pytest.raises(Unavailable, match="duplicate key value"):
        await store.write(do(insert))
    await store.write(create_pet(BELLA))


async def test_an_error_from_an_undeclared_pooler_says_how_to_declare_it(postgres_url: str) -> None:
    reason = r"unsupported startup .*; behind PgBouncer add \?pgbouncer=true to the address\Z"
    with pooler(postgres_url) as url:
        async with open_store(url) as store:
            outcomes: list[object] = []
            for _ in range(5):
                asked = [*(store.check() for _ in range(4)), *(count_pets(store) for _ in range(4))]
                outcomes += await asyncio.gather(*asked, return_exceptions=True)
    refusals = [each for each in outcomes if isinstance(each, BaseException)]
    assert {type(refusal) for refusal in refusals} == {Unavailable}
    assert re.match(f"the database is not available: {reason}", str(refusals[0]))


@pytest.mark.parametrize("end", [Way.cut, Way.forget])
async def test_no_request_fails_after_a_firewall_has_ended_or_forgotten_idle_connections(
    end: Callable[[Way], None],
    postgres: PostgresServer,
    postgres_url: str,
    redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    bella = {"name": "Bella", "categoryId": 1}
    async with way_to(postgres.port) as database, way_to(redis.port) as limits:
        url = postgres_url.replace(str(postgres.port), database.url.rpartition(":")[2])
        # In between, no background work uses the connections.
        quiet: dict[str, Any] = {"key_refresh_seconds": 3600, "limits_save_seconds": 3600}
        async with running_service(url, redis=limits.url, **quiet) as service:
            token = (await service.issue()).token
            for idle, (method, path) in enumerate(2 * [("POST", "/v1/pets"), ("GET", "/v1/pets")]):
                moment = monotonic() + 31 * idle
                monkeypatch.setattr(f"{postgres_connection.__name__}.monotonic", lambda m=moment: m)
                calls = [service.request(method, path, token, json=bella) for _ in range(10)]
                statuses = {each.status_code for each in await asyncio.gather(*calls)}
                assert statuses <= {200, 201}
                end(database)
                if end is Way.cut:  # the kernel keeps connections of Redis alive
                    end(limits)
    assert "Redis" not in caplog.text
