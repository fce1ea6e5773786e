"""A store to try the service with: sample animals, and a key kept in a file beside them."""

import os
from importlib.resources import as_file, files
from pathlib import Path

from petstore.clock import system_clock
from petstore.domain.api_keys import DEFAULT_SCOPES, Environment
from petstore.domain.pets import PetFilter
from petstore.operations.api_keys import KeyRing, create_key
from petstore.operations.pet_files import import_pets
from petstore.operations.pets import list_pets
from petstore.settings import Settings
from petstore.storage.api_keys import NewApiKey
from petstore.storage.contract import Store


async def prepare_demo(store: Store, settings: Settings) -> str:
    """Fill the store with the sample animals if it is empty, and return the token of a demo key.

    The token is kept in ``<database>.demo-key``, readable by its owner alone, so that the next
    start can print it again. If it is no longer valid, there is a new one.

    Raises:
        Unavailable: the database is out of reach.
        OSError: the file of the token cannot be written.
    """
    if not (await list_pets(store, PetFilter(), None, 1)).pets:
        await _import_samples(store)
    return await _demo_token(store, settings.environment, _token_file(settings))


async def _import_samples(store: Store) -> None:
    with as_file(files("petstore.samples") / "animals.csv") as animals:
        await import_pets(
            store,
            animals,
            "csv",
            system_clock,
            again=True,
            on_refused=lambda _: None,
            on_progress=lambda _: None,
        )


async def _demo_token(store: Store, environment: Environment, file: Path) -> str:
    if file.exists():
        token = file.read_text("ascii", errors="replace").strip()
        keys = KeyRing(store, system_clock, environment)
        if await keys.find(token.encode("ascii", "replace")) is not None:
            return token
    new = NewApiKey("demo", "business", None, None, frozenset(DEFAULT_SCOPES), environment, None)
    token = (await create_key(store, new, system_clock)).token
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as kept:
        kept.write(token + "\n")
    return token


def _token_file(settings: Settings) -> Path:
    ending = "demo-key" if settings.environment == "production" else "staging-demo-key"
    return settings.sqlite_path.with_name(f"{settings.sqlite_path.name}.{ending}")
