"""The demo store: sample animals, a key in a file beside the database, and an administrator."""

from contextlib import suppress
from importlib.resources import files
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

from petstore.categories.model import CategoryCreate
from petstore.categories.store import create_category
from petstore.clock import system_clock
from petstore.databases.contract import Store
from petstore.databases.private_files import create
from petstore.errors import CategoryNameTaken
from petstore.keys.cache import ApiKeyCache
from petstore.keys.model import Environment, KeyFields
from petstore.keys.store import Principal, create_key
from petstore.people.accounts import find_account
from petstore.people.model import PersonCreate
from petstore.people.store import add_person
from petstore.pets.files import open_import_file
from petstore.pets.imports import ImportRun, import_pets
from petstore.pets.model import PetFilter
from petstore.pets.store import list_pets
from petstore.sessions.store import create_link
from petstore.settings import Settings, is_postgres, sqlite_path

_BY = Principal("petstore serve --demo")
_LOGINS: dict[Environment, str] = {"production": "demo", "staging": "staging-demo"}


class Demo(NamedTuple):
    """The token of a key, and the secret of a link that signs the administrator in.

    The ``link`` is empty if somebody has disabled that person.
    """

    token: str
    link: str


async def prepare_demo(store: Store, settings: Settings) -> Demo:
    """Fill an empty store with sample animals, and return a demo key and a link to sign in.

    The token is stored in ``<file>.demo-key`` beside the database, or with PostgreSQL in
    ``<name>.demo-key`` in the current folder, so that the next start can print it again. Only its
    owner can read the file. A token that is no longer valid is replaced. The administrator ``demo``
    is added if there is none.
    """
    if not (await list_pets(store, PetFilter(), None, 1)).items:
        await _import_samples(store)
    token = await _demo_token(store, settings.environment, _token_file(settings))
    return Demo(token, await _demo_link(store, settings.environment))


async def _import_samples(store: Store) -> None:
    samples = files("petstore.samples")
    for name in (samples / "categories.txt").read_text("utf-8").splitlines():
        with suppress(CategoryNameTaken):
            await store.write(create_category(CategoryCreate(name), now=system_clock()))
    animals = open_import_file(BytesIO((samples / "animals.csv").read_bytes()))
    await import_pets(store, ImportRun(animals), system_clock, again=True)


async def _demo_token(store: Store, environment: Environment, file: Path) -> str:
    if file.exists():
        token = file.read_text("ascii", errors="replace").strip()
        keys = ApiKeyCache(store, system_clock, environment)
        if await keys.find(token.encode("ascii", "replace")) is not None:
            return token
    new = KeyFields[int]("demo", "business")
    unit = create_key(new, environment, _BY, system_clock())
    token = (await store.write(unit)).token
    file.unlink(missing_ok=True)
    with create(file) as kept:
        kept.write(f"{token}\n".encode("ascii"))
    return token


async def _demo_link(store: Store, environment: Environment) -> str:
    """Return the secret of a link that signs the demo's administrator in."""
    login, now = _LOGINS[environment], system_clock()
    account = await find_account(store, login, environment)
    if account is None:
        new = PersonCreate("Demo", login, "administrator")
        await store.write(add_person(new, _BY, environment, now))
        account = await find_account(store, login, environment)
    assert account is not None  # noqa: S101 - it is there now
    if account.caller.state(now) != "active":
        return ""
    return await store.write(create_link(account.caller.id, _BY.name, now))


def _token_file(settings: Settings) -> Path:
    ending = "demo-key" if settings.environment == "production" else "staging-demo-key"
    if is_postgres(settings.database):
        # An address without a name means the database that is named after the user.
        store = Path(PurePosixPath(urlsplit(settings.database).path).name or "petstore")
    else:
        store = sqlite_path(settings.database)
    return store.with_name(f"{store.name}.{ending}")
