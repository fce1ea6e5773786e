"""The demo store: sample animals, a key in a file beside the database, and an administrator."""

from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from io import BytesIO
from pathlib import Path, PurePosixPath
from shlex import quote
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
from petstore.people.accounts import Account, find_account
from petstore.people.model import PersonCreate
from petstore.people.store import add_person
from petstore.pets.files import open_import_file
from petstore.pets.imports import ImportRun, import_pets
from petstore.pets.model import PetFilter
from petstore.pets.store import list_pets
from petstore.sessions.store import create_link
from petstore.settings import Settings, is_postgres, masked, sqlite_path

_BY = Principal("petstore serve --demo")
_LOGINS: dict[Environment, str] = {"production": "demo", "staging": "staging-demo"}


class Demo(NamedTuple):
    """The token of a key, and the secret of a link that signs the administrator in.

    The ``link`` is empty if somebody has disabled that person. ``ways_back`` are commands that make
    them an active administrator again.
    """

    token: str
    link: str
    ways_back: Sequence[str]


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
    account, now = await _demo_account(store, settings.environment), system_clock()
    link, ways_back = "", _ways_back(account, settings.database)
    if account.caller.state(now) == "active":
        link = await store.write(create_link(account.caller.id, _BY.name, now))
    return Demo(token, link, ways_back)


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


async def _demo_account(store: Store, environment: Environment) -> Account:
    """Return the account of the demo's administrator, who is added if there is none."""
    login = _LOGINS[environment]
    account = await find_account(store, login, environment)
    if account is None:
        new = PersonCreate("Demo", login, "administrator")
        await store.write(add_person(new, _BY, environment, system_clock()))
        account = await find_account(store, login, environment)
    assert account is not None  # noqa: S101 - it is there now
    return account


def _ways_back(account: Account, database: str) -> Sequence[str]:
    """Return the commands that make somebody an active administrator again, and let them in."""
    person, is_disabled = account.caller, account.caller.revoked_at is not None
    commands = [f"enable {person.id}"] if is_disabled else []
    if person.role != "administrator":
        commands.append(f"change {person.id} --role administrator")
    if is_disabled:
        commands.append(f"invite {person.id}")
    option = "" if database == Settings().database else f" --database {quote(masked(database))}"
    return [f"petstore people {command}{option}" for command in commands]


def _token_file(settings: Settings) -> Path:
    ending = "demo-key" if settings.environment == "production" else "staging-demo-key"
    if is_postgres(settings.database):
        # An address without a name means the database that is named after the user.
        store = Path(PurePosixPath(urlsplit(settings.database).path).name or "petstore")
    else:
        store = sqlite_path(settings.database)
    return store.with_name(f"{store.name}.{ending}")
