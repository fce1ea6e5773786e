"""Which databases on a PostgreSQL server become a store, and which are refused and left alone."""

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from petstore.databases.migrations import APPLICATION_ID
from petstore.databases.postgres import PostgresStore
from petstore.errors import Unavailable, UnusableDatabase
from support.permissions import without_root
from support.postgres import PASSWORD, PostgresServer, database_name
from support.waiting import within

WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'"
    " AND datname = current_database() AND clock_timestamp() - query_start > '200ms'"
)
MIGRATED_BY_A_NEWER = (
    f"SELECT pg_advisory_xact_lock({APPLICATION_ID});"
    " CREATE TABLE petstore_schema AS SELECT 99 AS version;"
)
SCHEMA = """
    SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
    WHERE table_schema = 'public' ORDER BY 1, 2;
"""
INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"


def schema(postgres: PostgresServer, url: str) -> str:
    return postgres.sql(SCHEMA, database_name(url)) + postgres.sql(INDEXES, database_name(url))


def test_migrating_again_writes_nothing_and_leaves_what_others_put_into_a_store(
    postgres: PostgresServer, postgres_url: str
) -> None:
    others = (
        'CREATE TABLE "my notes" (id INTEGER); CREATE INDEX "by name" ON pets (name);'
        " CREATE VIEW names AS SELECT name FROM pets; ALTER TABLE usage ADD COLUMN remark TEXT"
    )
    name, query = database_name(postgres_url), "SELECT xmin, version FROM petstore_schema"
    postgres.sql(others, name)
    before = postgres.sql(query, name), schema(postgres, postgres_url)
    PostgresStore(postgres_url).migrate()
    assert (postgres.sql(query, name), schema(postgres, postgres_url)) == before


def test_a_migration_waits_for_another_and_then_checks_the_version_again(
    postgres: PostgresServer,
) -> None:
    url = postgres.new_database()
    name = database_name(url)
    postgres.sql(f"ALTER DATABASE {name} SET statement_timeout = '100ms'")
    postgres.sql(f"ALTER DATABASE {name} SET default_transaction_isolation = serializable")
    with ThreadPoolExecutor(1) as thread:
        with postgres.transaction(name, MIGRATED_BY_A_NEWER):
            migrating = thread.submit(PostgresStore(f"{url}?pgbouncer=true").migrate)
            assert within(30, lambda: postgres.sql(WAITING, name) == "1")
        with pytest.raises(UnusableDatabase, match="schema version 99"):
            migrating.result()


@pytest.mark.parametrize(
    ("options", "sql", "query", "reason"),
    [
        ("", "CREATE TABLE orders (mine TEXT)", "", 'relation "orders" already exists'),
        ("", "CREATE TABLE petstore_schema (mine TEXT)", "", 'column "version" does not exist'),
        ("", "", "?options=-csearch_path%3Dnowhere", "no schema has been selected"),
        ("ENCODING 'LATIN1' TEMPLATE template0", "", "", "has the encoding LATIN1; create it"),
    ],
)
def test_a_database_that_cannot_become_a_store_is_refused_and_untouched(
    postgres: PostgresServer, options: str, sql: str, query: str, reason: str
) -> None:
    url = postgres.new_database(options)
    postgres.sql(sql, database_name(url))
    before = schema(postgres, url)
    with pytest.raises(UnusableDatabase, match=reason):
        PostgresStore(f"{url}{query}").migrate()
    assert schema(postgres, url) == before


def test_a_newer_database_and_a_user_without_rights_are_refused(
    postgres: PostgresServer, postgres_url: str
) -> None:
    postgres.sql("CREATE ROLE visitor LOGIN")
    empty = database_name(postgres.new_database())
    with pytest.raises(UnusableDatabase, match="permission denied for schema public"):
        PostgresStore(postgres.url(empty, "visitor")).migrate()
    name = database_name(postgres_url)
    store = PostgresStore(postgres.url(name, "visitor"))
    with pytest.raises(UnusableDatabase, match="permission denied for table petstore_schema"):
        store.migrate()
    postgres.sql("GRANT SELECT ON petstore_schema TO visitor", name)
    postgres.sql("UPDATE petstore_schema SET version = version + 99", name)
    for each in (store, PostgresStore(postgres_url)):
        with pytest.raises(UnusableDatabase, match=r"schema version \d+, made by a newer petstore"):
            each.migrate()
    postgres.sql("UPDATE petstore_schema SET version = version - 99", name)
    postgres.sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO visitor", name)
    with pytest.raises(UnusableDatabase, match=r"user needs GRANT .* ON pets, .*, orders, "):
        store.migrate()
    postgres.sql("GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO visitor", name)
    store.migrate()
    postgres.sql("ALTER TABLE usage RENAME TO used", name)
    with pytest.raises(UnusableDatabase, match='relation "usage" does not exist'):
        store.schema()


def test_a_closed_folder_of_another_user_is_as_good_as_absent(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".postgresql").mkdir(mode=0)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PGSSLMODE")
    with without_root():
        PostgresStore(postgres_url).migrate()


AWAY = "^the database is not available: .*"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("@127.0.0.1:{port}/nowhere", f'{AWAY}"nowhere" does not exist'),
        ("nobody@127.0.0.1:{port}/postgres", f'{AWAY}"nobody" does not exist'),
        ("@127.0.0.1:1/postgres", f"{AWAY}Connect call failed"),
        ("@[::1]:1/postgres", f"{AWAY}(Connect call failed|Cannot assign)"),
        ("@petstore.invalid/postgres", f"{AWAY}."),
        ("@127.0.0.1:{port}/postgres?sslmode=require", f"{AWAY}SSL"),
        (":s3cret@127.0.0.1:99999/postgres", ""),
        (":s3cret@127.0.0.1/postgres?sslmode=verify-full", ""),
        (":x@[::1],[s3cret@127.0.0.1/postgres", ""),
        (":s3cret#@127.0.0.1/postgres", ""),
        (":s3cret/x@127.0.0.1/postgres", ""),
        (":s3cret?x@127.0.0.1/postgres", ""),
        (":x@s3cret:127.0.0.1/postgres", ""),
        (":s3cret@127.0.0.1:port/postgres", ""),
        (":s3cret@127.0.0.1/postgres?sslmode=maybe", "^database: .*sslmode"),
        (":s3cret@127.0.0.1/postgres?sslmode", ""),
        (":s3cret@[::1/postgres", ""),
    ],
)
def test_an_address_that_is_malformed_or_without_a_database_is_refused_and_no_password_shown(
    postgres: PostgresServer, address: str, reason: str
) -> None:
    user = "" if address.startswith("nobody") else "petstore"
    url = f"postgresql://{user}{address.format(port=postgres.port)}"
    with pytest.raises(
        Unavailable if AWAY in reason else (UnusableDatabase, Unavailable)
    ) as refusal:
        PostgresStore(url).migrate()
    assert refusal.match(reason)
    for hidden in ("s3cret", "\n", "pgbouncer"):
        assert hidden not in str(refusal.value)


def test_a_silent_server_and_a_lock_are_refused_sooner_than_a_migration_may_take(
    postgres: PostgresServer, postgres_url: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(1) as thread:
        store = PostgresStore(f"postgresql://petstore@127.0.0.1:{silent.getsockname()[1]}/x", 200)
        with pytest.raises(Unavailable, match="in time"):
            thread.submit(store.migrate).result(30)
        store = PostgresStore(f"{postgres_url}?pgbouncer=true", 500)
        with (
            postgres.transaction(database_name(postgres_url), "LOCK TABLE petstore_schema"),
            pytest.raises(Unavailable, match="in time"),
        ):
            thread.submit(store.schema).result(20)


def test_a_password_is_checked_and_not_shown_and_a_pooler_may_be_between(
    postgres: PostgresServer, pooled_url: str
) -> None:
    url = postgres.new_database()
    PostgresStore(postgres.guarded_url(url)).migrate()
    with pytest.raises(Unavailable, match="password authentication failed") as refusal:
        PostgresStore(postgres.guarded_url(url, "wr0ng")).migrate()
    assert "wr0ng" not in str(refusal.value)
    assert PASSWORD not in str(refusal.value)
    PostgresStore(pooled_url).migrate()
    PostgresStore(f"{pooled_url}&sslmode=prefer&channel_binding=prefer&keepalives=1").migrate()
