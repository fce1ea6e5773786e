"""Fill a store with animals and keys, by the service's own commands."""

import csv
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ANIMALS = 200_000
# The first ones are of every status, those after them available, to be ordered.
MIXED = 60_000
STATES = ("available", "pending", "sold")
CATEGORIES = 12


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
    for number in range(animals):
        status = STATES[number % 3] if number < MIXED else "available"
        yield f"Animal {number}", number % CATEGORIES + 1, status


def issue_key(
    database: str, *options: str, plan: str = "enterprise", python: str = sys.executable
) -> str:
    """Issue a key, without limits unless ``options`` name some, and return its token."""
    command = ("keys", "create", "--name", "bench", "--plan", plan)
    return petstore(*command, *options, "--database", database, python=python)


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
