"""docs/events.md: the scopes of the types, and a program that runs as it is printed."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from petstore.events.model import EVENT_TYPES, scope_of
from support.process import ServerProcess
from support.shop import Shop
from support.waiting import within

SECONDS = 30
PAGE = (Path(__file__).parent.parent / "docs/events.md").read_text()
(CONSUMER,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


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
