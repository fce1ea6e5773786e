"""The running service against its OpenAPI document, by requests that the document suggests."""

import asyncio
import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

from petstore.backends import store_at
from petstore.categories.model import CategoryCreate
from petstore.clock import DAY, system_clock
from petstore.databases.contract import Statement, Store, Unit
from petstore.events.model import EVENT_TYPES, NewEvent
from petstore.events.store import Change, record
from petstore.imports.model import MAX_UNFINISHED
from petstore.keys.model import SCOPES, digest, new_token
from petstore.keys.store import create_key
from petstore.orders.model import OrderCreate
from petstore.orders.store import place_order
from petstore.people.model import PersonCreate
from petstore.people.store import add_person
from petstore.pets.model import NewPet
from petstore.webhooks.model import MAX_WEBHOOKS, WebhookCreate
from petstore.webhooks.store import create_webhook
from support.changes import create_category, create_pet
from support.exploration import DEPTH
from support.imported import new_import
from support.keys import OPERATOR, new_key
from support.process import Serve
from support.service import MASTER_SECRET
from support.webhooks import publish

HERE = Path(__file__).parent
SCHEMATHESIS = Path(sysconfig.get_path("scripts")) / "schemathesis"
MANY, PEOPLE, DEVICES = 60, 10, 8
TIMEOUT_MS = 30_000
LONGEST = 600 * DEPTH
"""Seconds: twenty times what it takes, for a busy machine gives it little of a processor."""
EXAMPLES = 3
# All is decoded and encoded alike in every form: one change after another is what may differ.
PHASES = {"sqlite": "examples,coverage,fuzzing,stateful", "postgresql": "stateful"}


def add_some_of_everything() -> Unit[None]:
    """Make the ids of schemathesis.toml be there, for every kind of resource."""
    now = system_clock()
    for number in range(1, MANY + 1):
        yield from create_category(CategoryCreate(f"Category {number}"))
        yield from create_key(new_key(), "production", OPERATOR.at(now))
        yield from create_pet(NewPet(f"Free {number}", -number, "available"))
    for number in range(1, MANY + 1):
        yield from create_pet(NewPet(f"Ordered {number}", -number, "available"))
        yield from place_order(Change(now, reservation_minutes=1440), OrderCreate(MANY + number))
    for number in range(1, PEOPLE + 1):
        new = PersonCreate(f"Person {number}", f"person{number}@shop.example", "clerk")
        yield from add_person(new, OPERATOR.at(now), "production")
    # An event of each type: so no request has to wait for one.
    for kind in EVENT_TYPES:
        yield record(now, NewEvent(kind, "key/1", {}))


def add_key_out_of_reach(token: str) -> Unit[None]:
    """Add a key that may do everything. No path leads to an id below 0.

    So what the requests do to keys is never done to the key they come with.
    """
    yield Statement(
        "INSERT INTO callers (id, kind) /*pg OVERRIDING SYSTEM VALUE */ VALUES (-1, 'key')"
    )
    yield Statement(
        "INSERT INTO api_keys (id, name, plan, scopes, environment, created_at)"
        " VALUES (-1, 'schemathesis', 'enterprise', ?1, 'production', 0)",
        (" ".join(SCOPES),),
    )
    yield Statement(
        "INSERT INTO api_key_tokens (digest, key_id) VALUES (?1, -1)",
        (digest(token.encode("ascii")),),
    )


def add_webhooks() -> Unit[None]:
    """Add half as many webhooks as the key of ``add_key_out_of_reach`` may have, and one."""
    for _ in range(MAX_WEBHOOKS // 2 + 1):
        yield from create_webhook(WebhookCreate("https://shop.example"), -1, system_clock())


def add_deliveries() -> Unit[None]:
    """Add deliveries to the last webhook, of events that are kept."""
    yield Statement(
        "INSERT INTO webhook_deliveries (webhook_id, sequence, event_id, type, resource, state,"
        " created_at, attempts, due_at)"
        " SELECT ?1, sequence, id, type, resource, 'failed', at, 1, at FROM events"
        " ORDER BY sequence LIMIT ?2",
        (MAX_WEBHOOKS // 2 + 1, MANY),
    )


def add_devices() -> Unit[None]:
    """Sign each person in on the devices from 1 to ``DEVICES``."""
    now = system_clock()
    for person in range(MANY + 1, MANY + PEOPLE + 1):
        for device in range(1, DEVICES + 1):
            session = (device << 3).to_bytes(7) + person.to_bytes(25)
            yield Statement(
                "INSERT INTO console_sessions (digest, kind, caller_id, credential, device,"
                " created_at, used_at, expires_at, stays)"
                " VALUES (?1, 'person', ?2, ?1, '', ?3, ?3, ?4, 1)",
                (session, person, now, now + DAY),
            )


async def furnish(store: Store) -> str:
    """Put some of everything into an empty store, and return the token of its key."""
    token = new_token("production")
    await store.open()
    await store.write(add_some_of_everything())
    await store.write(add_key_out_of_reach(token))
    await store.write(add_webhooks())
    await store.write(add_devices())
    # Half as many imports as the key of ``add_key_out_of_reach`` may have unfinished.
    for number in range(MAX_UNFINISHED // 2):
        await store.write(new_import(-1, bytes([number]) * 32, system_clock()))
    await publish(store)
    await store.write(add_deliveries())
    await store.close()
    return token


@pytest.mark.explores
@pytest.mark.timeout(LONGEST)
@pytest.mark.parametrize("form", PHASES, indirect=True, scope="session")
def test_the_service_conforms_to_its_openapi_document(
    tmp_path: Path, serve: Serve, form: str
) -> None:
    # Measuring what Schemathesis itself runs would take most of the time.
    uncovered = {name: os.environ[name] for name in os.environ if not name.startswith("COVERAGE_")}
    options = ("--secret-file", str(MASTER_SECRET))
    # Requests without a key are many here, and all from one address.
    with serve(tmp_path, "--anonymous-per-minute", "1000000000", *options) as server:
        token = asyncio.run(furnish(store_at(server.database, TIMEOUT_MS)))
        run = subprocess.run(
            [
                *(SCHEMATHESIS, "--config-file", HERE / "schemathesis.toml", "run"),
                *("--phases", PHASES[form]),
                *("--max-examples", str(EXAMPLES * DEPTH)),
                *("--header", f"Authorization: Bearer {token}"),
                f"{server.url}/v1/openapi.json",
            ],
            cwd=tmp_path,
            env=uncovered | {"SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(HERE)},
            capture_output=True,
            text=True,
            timeout=LONGEST - 20,
            check=False,
        )
    noted = [line for line in server.log_lines() if line["level"] != "info"]
    assert run.returncode == 0, f"{run.stdout}{run.stderr}{noted}"
