"""The backup of a PostgreSQL store, and its restore: the very commands of ``docs/moving.md``."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from petstore.pets.model import NewPet, Pet
from support.changes import create_pet
from support.full_stores import contents, make_full_store, query
from support.postgres import PostgresServer, programs
from support.shop import Shop
from support.stores import open_store

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/moving.md").read_text()
BACK_UP, RESTORE = re.findall(
    r"```sh\n(.*?)```",
    PAGE[PAGE.index("\n## PostgreSQL\n") : PAGE.index("\n## Move to")],
    re.DOTALL,
)


class Operator:
    """Types the commands of the page, with the addresses of the test's own server."""

    def __init__(self, server: PostgresServer, store: str, folder: Path) -> None:
        self._folder = folder
        self._path = f"{programs()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._addresses = {
            "petstore_restored": (restored := f"{store.rpartition('/')[2]}_restored"),
            "postgresql://postgres@db/postgres": server.url(),
            f"postgresql://petstore@db/{restored}": server.url(restored),
            "postgresql://petstore@db/petstore": store,
        }
        self.restored = server.url(restored)

    def run(self, commands: str) -> str:
        for documented, address in self._addresses.items():
            commands = commands.replace(documented, address)
        return subprocess.run(
            ["/bin/sh", "-e", "-c", commands],
            cwd=self._folder,
            env={**os.environ, "PATH": self._path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=120,
            check=True,
        ).stdout


@pytest.fixture
def store(postgres_url: str, tmp_path: Path) -> str:
    """The address of a store with something in every table."""
    make_full_store(tmp_path / "full.db")
    Shop("", "").succeed("copy", "--from", f"sqlite:///{tmp_path}/full.db", "--to", postgres_url)
    return postgres_url


async def add_pet(url: str) -> int:
    async with open_store(url) as store:
        pet: Pet = await store.write(create_pet(NewPet("Later", 1), strict_categories=False))
    return pet.id


def test_a_restored_store_is_identical_and_can_be_used(
    postgres: PostgresServer, store: str, tmp_path: Path
) -> None:
    operator = Operator(postgres, store, tmp_path)
    backed_up = contents(store)
    operator.run(BACK_UP)
    later = asyncio.run(add_pet(store))
    operator.run(RESTORE)
    assert contents(operator.restored) == backed_up
    assert contents(store) != backed_up
    assert asyncio.run(add_pet(operator.restored)) == later
    inventory = "SELECT sum(pets)::BIGINT FROM inventory"
    pets = "SELECT count(*) FROM pets WHERE status IS NOT NULL"
    assert query(operator.restored, inventory) == query(operator.restored, pets)


def test_a_damaged_dump_restores_nothing(
    postgres: PostgresServer, store: str, tmp_path: Path
) -> None:
    operator = Operator(postgres, store, tmp_path)
    operator.run(BACK_UP)
    (dump,) = tmp_path.glob("*.dump")
    dump.write_bytes(dump.read_bytes()[: dump.stat().st_size * 2 // 3])
    with pytest.raises(subprocess.CalledProcessError):
        operator.run(RESTORE)
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    assert query(operator.restored, tables) == []
