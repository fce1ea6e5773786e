"""Fill a store with animals and keys, through the service itself."""

import csv
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx

from servers import free_port, running

ANIMALS = 200_000
# The first animals have every status; the others are available, to be ordered.
MIXED = 99_000
STATES = ("available", "pending", "sold")
CATEGORIES = 30
_UNREACHED = {"perMinute": 10**9, "perDay": 2 * 10**9}


def fill(folder: Path, database: str, animals: int = ANIMALS, python: str = sys.executable) -> None:
    """Import so many animals into the store at the URL ``database``."""
    file = folder / f"{animals}-animals.csv"
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("name", "categoryId", "status"))
        writer.writerows(_rows(animals))
    petstore("pets", "import", str(file), "--database", database, python=python)
    file.unlink()


def _rows(animals: int) -> Iterator[tuple[str, int, str]]:
    """Yield animals of each status and category in turn, so that all pairs are as frequent."""
    for number in range(animals):
        status = STATES[number % 3] if number < MIXED else "available"
        yield f"Animal {number}", category(number), status


def category(number: int) -> int:
    """Return the category of an animal, by its number from 0 on."""
    return number // len(STATES) % CATEGORIES + 1


def issue_key(
    database: str, *options: str, plan: str = "enterprise", python: str = sys.executable
) -> str:
    """Issue a key, without limits unless ``options`` name some, and return its token."""
    command = ("keys", "create", "--name", "bench", "--plan", plan)
    return petstore(*command, *options, "--database", database, python=python)


def issue_unlimited(database: str) -> str:
    """Issue a key with limits too high to reach, so that both windows still count."""
    per_minute, per_day = map(str, _UNREACHED.values())
    return issue_key(database, "--per-minute", per_minute, "--per-day", per_day)


def issue_many(database: str, number: int, folder: Path) -> list[str]:
    """Issue keys as ``issue_unlimited`` does, over HTTP: a command for each would take minutes."""
    # A key can give only the scopes that it has.
    scopes = ("pets:read", "pets:write", "orders:read", "orders:write", "keys:admin")
    admin = issue_key(database, *(part for scope in scopes for part in ("--scope", scope)))
    port = free_port()
    command = (sys.executable, "-m", "petstore", "serve", "--port", str(port))
    body = {"name": "bench", "plan": "enterprise", **_UNREACHED}
    with (
        running((*command, "--database", database), port, folder / "keys.log") as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {admin}"}) as client,
    ):
        responses = (client.post("/v1/keys", json=body) for _ in range(number))
        return [response.raise_for_status().json()["token"] for response in responses]


def petstore(*arguments: str, python: str = sys.executable) -> str:
    """Run a command of the service that ``python`` has and return what it prints.

    Raises:
        RuntimeError: it failed; the message is what it said.
    """
    command = (python, "-m", "petstore", *arguments)
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    return ended.stdout.strip()
