"""Fill a store with pets and keys, through the service itself."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from petstore.backends import in_store
from petstore.pets.store import PETS_BY_WORD
from servers import free_port, running

PETS = 200_000
# The first pets have every status; the others are available, to be ordered.
MIXED = 99_000
STATES = ("available", "pending", "sold")
CATEGORIES = 30
_BATCH = 100
_UNREACHED = {"perMinute": 10**9, "perDay": 2 * 10**9}


def fill(folder: Path, database: str, pets: int = PETS) -> None:
    """Add so many pets to the store at the URL ``database``, through a service."""
    token = issue_key(database)
    with _serving(folder, database, token) as client:
        for first in range(0, pets, _BATCH):
            batch = [_pet(number) for number in range(first, min(first + _BATCH, pets))]
            client.post("/v1/pets/batch", json=batch).raise_for_status()
    # Else the copies would index the words of these pets while they are measured.
    in_store(database, PETS_BY_WORD.update)


def _pet(number: int) -> dict[str, str | int]:
    """Return a pet; each pair of status and category is as frequent."""
    status = STATES[number % 3] if number < MIXED else "available"
    return {"name": f"Pet {number}", "categoryId": category(number), "status": status}


def category(number: int) -> int:
    """Return the category of a pet, by its number from 0 on."""
    return number // len(STATES) % CATEGORIES + 1


def issue_key(database: str, *options: str, plan: str = "enterprise") -> str:
    """Issue a key, without limits unless ``options`` name some, and return its token."""
    command = ("keys", "create", "--name", "bench", "--plan", plan)
    return petstore(*command, *options, "--database", database)


def issue_unlimited(database: str) -> str:
    """Issue a key with limits too high to reach, so that both windows still count."""
    per_minute, per_day = map(str, _UNREACHED.values())
    return issue_key(database, "--per-minute", per_minute, "--per-day", per_day)


def issue_many(database: str, number: int, folder: Path) -> list[str]:
    """Issue keys as ``issue_unlimited`` does, over HTTP: a command for each would take minutes."""
    # A key can give only the scopes that it has.
    scopes = ("pets:read", "pets:write", "orders:read", "orders:write", "keys:admin")
    admin = issue_key(database, *(part for scope in scopes for part in ("--scope", scope)))
    body = {"name": "bench", "plan": "enterprise", **_UNREACHED}
    with _serving(folder, database, admin) as client:
        responses = (client.post("/v1/keys", json=body) for _ in range(number))
        return [response.raise_for_status().json()["token"] for response in responses]


@contextmanager
def _serving(folder: Path, database: str, token: str) -> Iterator[httpx.Client]:
    """Serve a store until the block ends, and return a client with a key."""
    port = free_port()
    serve = (sys.executable, "-m", "petstore", "serve", "--port", str(port))
    with (
        running((*serve, "--database", database), port, folder / "stock.log") as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}) as client,
    ):
        yield client


def petstore(*arguments: str) -> str:
    """Run a command of the service and return what it prints, or raise what it said."""
    command = (sys.executable, "-m", "petstore", *arguments)
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    return ended.stdout.strip()
