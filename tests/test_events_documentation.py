"""docs/events.md: an example of every type, and programs that run as they are printed."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from petstore.categories.model import Category
from petstore.events.model import EVENT_TYPES, Event, scope_of
from petstore.keys.model import SCOPES, Key
from petstore.orders.model import Order
from petstore.people.model import Person
from petstore.pets.model import Pet
from petstore.webhooks.signing import secret_text, signed_headers
from support.manual_clock import ManualClock
from support.people import set_some_password
from support.process import ServerProcess, free_port
from support.service import Service, running_service
from support.shop import Shop
from support.stores import do
from support.waiting import within

SECONDS = 30
PAGE = (Path(__file__).parent.parent / "docs/events.md").read_text()
CONSUMER, RECEIVER = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
LINES = re.findall(r'^\{"id":"evt_.*\}$', PAGE, re.MULTILINE)
EXAMPLES: dict[str, dict[str, Any]] = {
    example["type"]: example for example in map(json.loads, LINES)
}
KINDS: dict[str, type[msgspec.Struct]] = {
    "pet": Pet,
    "order": Order,
    "category": Category,
    "key": Key,
    "person": Person,
}
NOTICES = [kind for kind in EVENT_TYPES if scope_of(kind) is None]
BAN = "INSERT INTO rate_limits VALUES (2, 0, 0, 0, 0, 0, 0, 0, 0, ?1, ?2, 1, ?1)"
SECRET, OTHER = bytes(range(32)), bytes(range(1, 33))


# The examples


def test_every_type_has_exactly_one_example() -> None:
    assert [json.loads(line)["type"] for line in LINES] == list(EVENT_TYPES)


def test_every_type_is_in_the_tables_of_types() -> None:
    tables = re.findall(r"^\| (`[a-z]+\.[^|]+) \|", PAGE.partition("\n## Types\n")[2], re.MULTILINE)
    assert re.findall(r"`([a-z_.]+)`", " ".join(tables)) == list(EVENT_TYPES)


def test_the_page_has_the_correct_scopes_of_the_types() -> None:
    section = PAGE.partition("\n## What a key sees\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \| (?:`([a-z:]+)`|none: [^|]+) \|$", section, re.MULTILINE)
    patterns = {
        name: scope or None for names, scope in rows for name in re.findall(r"`(.+?)`", names)
    }
    for name in EVENT_TYPES:
        assert patterns.get(name, patterns.get(f"{name.partition('.')[0]}.*", "")) == scope_of(name)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_matches_the_event_schema(example: dict[str, Any]) -> None:
    assert msgspec.to_builtins(msgspec.convert(example, Event)) == example
    noun, _, number = example["resource"].partition("/")
    prefix = example["type"].partition(".")[0]
    if prefix in KINDS and example["type"] not in NOTICES:
        resource = msgspec.convert(example["data"], KINDS[prefix])
        assert msgspec.json.decode(msgspec.json.encode(resource)) == example["data"]
        assert (noun, int(number)) == (prefix, example["data"]["id"])
        assert example.get("previous", {}).keys() <= set(KINDS[prefix].__struct_encode_fields__)
    elif noun == "key":
        assert int(number) == example["data"]["keyId"]
    else:
        assert (noun, int(number)) == ("webhook", example["data"]["id"])


def test_the_first_example_is_the_pet_updated_example() -> None:
    first = json.loads(PAGE.partition("```json\n")[2].partition("```")[0])
    assert first == EXAMPLES["pet.updated"]


async def change_everything(service: Service, clock: ManualClock) -> list[dict[str, Any]]:
    token = (await service.issue(scopes=frozenset(SCOPES))).token

    async def ask(method: str, path: str, **body: object) -> None:
        response = await service.request(method, f"/v1{path}", token, json=body)
        assert response.is_success, response.text

    await ask("POST", "/categories", name="Dogs")
    await ask("PATCH", "/categories/1", description="Great and small")
    await ask("POST", "/pets", name="Bella", categoryId=1, status="available")
    await ask("POST", "/store/orders", petId=1)
    await ask("PATCH", "/store/orders/1", shipDate="2026-12-24T10:00:00Z")
    await ask("PATCH", "/store/orders/1", shipDate=None)
    await ask("PATCH", "/store/orders/1", status="approved")
    await ask("PATCH", "/store/orders/1", status="delivered")
    await ask("PATCH", "/store/orders/1", amount=24900)
    await ask("PATCH", "/store/orders/1", status="returned")
    await ask("POST", "/store/orders", petId=1)
    await ask("PATCH", "/store/orders/2", status="approved")
    await ask("PATCH", "/store/orders/2", status="cancelled")
    await ask("POST", "/store/orders", petId=1)
    clock.advance(2 * 60)
    await service.request("GET", "/v1/store/orders", token)
    await ask("DELETE", "/pets/1")
    await ask("DELETE", "/categories/1")
    await ask("POST", "/keys", name="Till 2")
    await ask("PATCH", "/keys/2", name="Till")
    await ask("POST", "/keys/2/rotate")
    await service.store.write(do(BAN, clock(), clock() + 5 * 60_000))
    await ask("POST", "/keys/2/unban")
    await ask("DELETE", "/keys/2")
    await ask("POST", "/people", name="Grace Hopper", login="grace@shop.example", role="clerk")
    await set_some_password(service.store, 3)
    await ask("PATCH", "/people/3", state="disabled")
    response = await service.request("GET", "/v1/events?limit=100", token)
    events: list[dict[str, Any]] = response.json()
    return events


def form(event: Mapping[str, Any]) -> tuple[object, ...]:
    return event.keys(), event["data"].keys(), event.get("previous", {}).keys()


@pytest.mark.anyio
async def test_the_examples_have_the_members_of_real_events(
    database: Path, clock: ManualClock
) -> None:
    async with running_service(database, clock, reservation_minutes=1) as service:
        events = await change_everything(service, clock)
    real = [form(event) for event in events]
    for name in (name for name in EVENT_TYPES if name not in NOTICES):
        assert form(EXAMPLES[name]) in real, name


# The programs


@contextmanager
def running(folder: Path, program: str, **environment: str) -> Iterator[Path]:
    output = folder / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=file,
            stderr=subprocess.DEVNULL,
        )
    try:
        yield output
    finally:
        process.kill()
        process.wait()


def test_the_receiver_has_twenty_lines() -> None:
    assert len([line for line in RECEIVER.splitlines() if line]) == 20


def test_the_consumer_sees_every_event_and_resumes_where_it_stopped(
    server: ServerProcess, token: str, tmp_path: Path
) -> None:
    shop = Shop(f"{server.url}/v1", token)

    def new_pet() -> str:
        return f"pet.created pet/{shop.ask('pets', 'add', 'Rex', '--category', 1)['id']}"

    def newest_cursor() -> str:
        headers = {"Authorization": f"Bearer {token}"}
        page = httpx.get(f"{server.url}/v1/events?cursor=latest", headers=headers)
        return str(httpx.URL(page.links["latest"]["url"]).params["cursor"])

    first, saved = new_pet(), tmp_path / "cursor.txt"
    with running(tmp_path, CONSUMER, **shop.environment) as output:
        assert within(SECONDS, lambda: saved.exists() and saved.read_text() == newest_cursor())
        assert output.read_text().splitlines().count(first) == 1
    second = new_pet()
    with running(tmp_path, CONSUMER, **shop.environment) as output:
        assert within(SECONDS, lambda: output.read_text().splitlines() == [second])
        third = new_pet()
        assert within(SECONDS, lambda: output.read_text().splitlines() == [second, third])


def send(url: str, body: bytes, headers: dict[str, str]) -> int:
    return httpx.post(url, content=body, headers=headers).status_code


def is_listening(url: str) -> bool:
    try:
        httpx.get(url)
    except httpx.TransportError:
        return False
    return True


def test_the_receiver_accepts_only_signed_events_and_each_once(tmp_path: Path) -> None:
    port, now = free_port(), int(time.time())
    url, body = f"http://127.0.0.1:{port}/webhooks", LINES[0].encode()
    environment = {"WEBHOOK_SECRET": secret_text(SECRET), "PORT": str(port)}
    with running(tmp_path, RECEIVER, **environment) as output:
        assert within(SECONDS, lambda: is_listening(url))
        right = signed_headers("evt_1", now, body, [SECRET])
        assert send(url, body, signed_headers("evt_1", now, body, [OTHER])) == 401
        assert send(url, body, signed_headers("evt_1", now - 600, body, [SECRET])) == 401
        assert send(url, body, signed_headers("evt_1", now + 600, body, [SECRET])) == 401
        assert send(url, body.replace(b"Bella", b"Bello"), right) == 401
        assert send(url, body, right | {"webhook-id": "evt_2"}) == 401
        assert send(url, body, {}) == 401
        assert output.read_text() == ""
        assert send(url, body, right) == 204
        assert send(url, body, signed_headers("evt_1", now + 5, body, [SECRET])) == 204
        assert output.read_text() == "pet.created pet/7\n"
        assert send(url, body, signed_headers("evt_2", now, body, [OTHER, SECRET])) == 204
        assert output.read_text() == "pet.created pet/7\n" * 2
