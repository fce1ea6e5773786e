"""Processes killed between a commit and its response: a retry gets the response, and acts once."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import httpx
import pytest

from petstore.databases.contract import Row
from support.exploration import DEPTH
from support.process import ServerProcess, StartServer
from support.raw_socket import RawSocket
from support.waiting import within

ALL_SCOPES = ("pets:read", "pets:write", "orders:read", "orders:write", "keys:admin")
POSTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "createPet": ("/v1/pets", {"name": "Rex", "categoryId": 1}, "SELECT 1 FROM pets WHERE id > 1"),
    "placeOrder": ("/v1/store/orders", {"petId": 1}, "SELECT 1 FROM orders"),
    "createKey": (
        "/v1/keys",
        {"name": "Till", "scopes": [*ALL_SCOPES[:4]]},
        "SELECT 1 FROM api_keys WHERE id > 1",
    ),
}


def kept(folder: Path) -> int:
    """Return how many responses are kept for retries."""
    return len(query(folder, "SELECT 1 FROM idempotency_records"))


def key_of(server: ServerProcess) -> dict[str, str]:
    """Return the header with a new key."""
    scopes = (word for scope in ALL_SCOPES for word in ("--scope", scope))
    return {"Authorization": f"Bearer {server.issue('enterprise', *scopes)}"}


KILLS = 2 * DEPTH


class Sent(NamedTuple):
    """A request with an Idempotency-Key of its own."""

    path: str
    body: dict[str, Any]
    key: str


def query(folder: Path, sql: str) -> list[Row]:
    with closing(apsw.Connection(str(folder / "petstore.db"))) as connection:
        connection.set_busy_timeout(5000)
        return connection.execute(sql).fetchall()


def send(server: ServerProcess, headers: dict[str, str], sent: Sent) -> httpx.Response:
    headers = {**headers, "Idempotency-Key": sent.key}
    return httpx.post(f"{server.url}{sent.path}", json=sent.body, headers=headers, trust_env=False)


def test_the_next_process_replays_responses_lost_in_a_crash(
    start: StartServer, tmp_path: Path
) -> None:
    # The order of a set is another one in each process.
    server = start(env={"PYTHONHASHSEED": "1"})
    headers = key_of(server)
    pet = {"name": "Bella", "categoryId": 1, "status": "available"}
    httpx.post(f"{server.url}/v1/pets", json=pet, headers=headers, trust_env=False)
    with ExitStack() as opened:
        for name, (path, body, done) in POSTS.items():
            connection = opened.enter_context(RawSocket(server.port))
            content = json.dumps(body)
            fields = {**headers, "Host": "x", "Idempotency-Key": name}
            fields["Content-Length"] = str(len(content))
            lines = [f"POST {path} HTTP/1.1", *(f"{field}: {fields[field]}" for field in fields)]
            connection.send("\r\n".join([*lines, "", content]).encode())
            assert within(30, lambda sql=done: query(tmp_path, sql))  # type: ignore[misc]
        server.kill()
    server = start(env={"PYTHONHASHSEED": "2"})
    for name, (path, body, done) in POSTS.items():
        first, second = (send(server, headers, Sent(path, body, name)) for _ in range(2))
        assert first.status_code == second.status_code, first.text
        assert first.content == second.content
        assert first.headers["Idempotent-Replayed"] == "true"
        assert len(query(tmp_path, done)) == 1
        if name == "createKey":
            assert first.json()["code"] == "secret_already_shown"
            continue
        location = httpx.URL(first.headers["Location"]).path
        found = httpx.get(f"{server.url}{location}", headers=headers, trust_env=False)
        assert found.json().items() <= first.json().items()


def shop_until_gone(
    server: ServerProcess, headers: dict[str, str], buyer: str, responses: dict[str, bytes]
) -> list[Sent]:
    """Add pets and order each of them, until the service is gone; return what was sent.

    The bodies of responses go into ``responses``.
    """
    sent: list[Sent] = []
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False) as client:

        def ask(path: str, body: dict[str, Any], key: str) -> Any:
            sent.append(Sent(path, body, key))
            response = client.post(path, json=body, headers={"Idempotency-Key": key})
            assert response.status_code == 201, response.text
            responses[key] = response.content
            return response.json()["id"]

        try:
            for turn in count():
                name = f"{buyer}-{turn}"
                pet = {"name": name, "categoryId": 1, "status": "available"}
                pet_id = ask("/v1/pets", pet, f"pet-{name}")
                ask("/v1/store/orders", {"petId": pet_id}, f"order-{name}")
        except httpx.TransportError:
            return sent
    raise AssertionError


def assert_whole(folder: Path) -> None:
    """Check that each idempotency record exists together with its resource."""
    pets = {f"pet-{name}" for (name,) in query(folder, "SELECT name FROM pets")}
    ordered = "SELECT name FROM orders JOIN pets ON pets.id = pet_id WHERE pets.status = 'pending'"
    orders = {f"order-{name}" for (name,) in query(folder, ordered)}
    kept = [key for (key,) in query(folder, "SELECT idempotency_key FROM idempotency_records")]
    assert sorted(kept) == sorted(pets | orders)
    counts = "SELECT (SELECT count(*) FROM pets), (SELECT count(*) FROM orders)"
    assert query(folder, counts) == [(len(pets), len(orders))]
    inventory = query(folder, "SELECT pets FROM inventory ORDER BY status")
    assert inventory == [(len(pets) - len(orders),), (len(orders),), (0,)]


@pytest.mark.explores
def test_repeated_kills_leave_an_idempotency_record_for_every_change(
    start: StartServer, tmp_path: Path
) -> None:
    server = start()
    headers = key_of(server)
    responses: dict[str, bytes] = {}
    sent: list[Sent] = []
    for kill in range(KILLS):
        before = kept(tmp_path)
        with ThreadPoolExecutor(4) as buyers:
            buying = [
                buyers.submit(shop_until_gone, server, headers, f"{kill}-{buyer}", responses)
                for buyer in range(4)
            ]
            enough = before + 20 + 7 * (kill % 4)
            assert within(30, lambda least=enough: kept(tmp_path) > least)  # type: ignore[misc]
            server.kill()
        for buyer in buying:
            sent += buyer.result()
        assert_whole(tmp_path)
        server = start()
    with ThreadPoolExecutor(4) as retriers:
        replies = list(retriers.map(lambda each: send(server, headers, each), sent))
    assert {reply.status_code for reply in replies} == {201}
    for each, reply in zip(sent, replies, strict=True):
        assert responses.get(each.key, reply.content) == reply.content
    assert_whole(tmp_path)
    assert kept(tmp_path) == len(sent)
