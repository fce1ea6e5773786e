"""A person at the console, as a browser without JavaScript."""

import html
import re
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from petstore.databases.contract import Statement, Unit, read_unit
from petstore.keys.model import ROLES, SCOPES, Role
from petstore.keys.store import new_caller
from petstore.people.model import Browser
from petstore.people.store import begin_session, find_account
from support.process import ServerProcess
from support.service import Service

COOKIE = "petstore_console"
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass
class Visitor:
    """Somebody signed in as the key or person ``key_id``; ``token`` is that of a key."""

    client: httpx.AsyncClient
    token: str
    key_id: int

    async def get(self, path: str, **query: Any) -> httpx.Response:
        return await self.client.get(f"/console{path}", params=query or None, headers=SAME_ORIGIN)

    async def post(self, path: str, files: Any = None, **fields: Any) -> httpx.Response:
        target = f"/console{path}"
        # A browser names the type of a form without fields, too.
        headers = SAME_ORIGIN if files else SAME_ORIGIN | FORM
        return await self.client.post(target, data=fields, files=files, headers=headers)

    async def submit(self, path: str, **fields: Any) -> httpx.Response:
        response = await self.post(path, **fields)
        assert response.status_code == 303, response.text
        return await self.client.get(response.headers["location"])


def words(response: httpx.Response) -> str:
    """Return the text of a page, without its header, the help and the invisible isolates."""
    main = re.search(r"<main.*</main>", response.text, re.DOTALL)
    assert main is not None, response.text
    text = html.unescape(re.sub(r"<[^>]*>|[\u2068\u2069]", "", main[0]))
    return " ".join(text.split())


def newcomer(service: Service, token: str = "", key_id: int = 0) -> Visitor:
    """Return a person with a browser of their own, who is not signed in."""
    client = httpx.AsyncClient(
        transport=service.client._transport,  # noqa: SLF001 - a browser of its own for each person
        base_url=service.client.base_url,
    )
    return Visitor(client, token, key_id)


async def signed_in(service: Service, role: Role | None = None, **wanted: Any) -> Visitor:
    """Return a person at the console, an administrator unless another ``role`` is wanted.

    If ``scopes`` are wanted, it is the role with the fewest that has them. The ``token`` is that of
    a key with these scopes, to call the interface with.
    """
    scopes = wanted.setdefault("scopes", frozenset(SCOPES))
    name = wanted.get("name", "test")
    least = next(each for each, its in ROLES.items() if scopes <= its)
    issued = await service.issue(**wanted)
    visitor = await signed_in_person(service, role or least, name)
    visitor.token = issued.token
    return visitor


async def owner_of_key(service: Service, **wanted: Any) -> Visitor:
    """Return the owner of a new key, signed in with it; it has every scope unless others are."""
    issued = await service.issue(**{"scopes": frozenset(SCOPES), **wanted})
    visitor = newcomer(service, issued.token, issued.id)
    response = await visitor.post("/sign-in", key=issued.token)
    assert response.status_code == 303, response.text
    return visitor


async def signed_in_person(
    service: Service, role: Role = "administrator", name: str = "Ada", login: str = ""
) -> Visitor:
    """Return an active person at the console, of whom there is no event."""

    def insert() -> Unit[int]:
        ((person_id,),) = yield new_caller("person")
        yield Statement(
            "INSERT INTO people (id, name, login, login_key, role, environment, created_at,"
            " password) VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, 'no hash')",
            (
                *(person_id, name, login or f"login-{person_id}", role),
                *(service.settings.environment, service.clock()),
            ),
        )
        return int(person_id)

    return await signed_in_again(service, await service.store.write(insert()))


async def signed_in_again(service: Service, person_id: int) -> Visitor:
    account = await read_unit(service.store, find_account(person_id))
    assert account is not None
    unit = begin_session(account.caller, account.credential, service.clock(), Browser())
    visitor = newcomer(service, key_id=person_id)
    visitor.client.cookies.set(COOKIE, await service.store.write(unit))
    return visitor


def issue_for_console(shop: ServerProcess) -> str:
    return shop.issue("enterprise", *(word for scope in SCOPES for word in ("--scope", scope)))


def invitation(shop: ServerProcess, token: str) -> str:
    """Add an administrator with the key of ``token``, and return the link of the invitation."""
    login = f"ada-{uuid4().hex[:8]}"
    person = {"name": "Ada", "login": login, "role": "administrator"}
    headers = {"Authorization": f"Bearer {token}"}
    added = httpx.post(f"{shop.url}/v1/people", headers=headers, json=person)
    assert added.status_code == 201, added.text
    return str(added.json()["invitation"]["url"])


def cookies_of_administrator(shop: ServerProcess, token: str) -> httpx.Cookies:
    """Add an administrator with the key of ``token``, and return the cookies of their browser."""
    data = {"password": "correct horse"}
    response = httpx.post(invitation(shop, token), data=data, headers=SAME_ORIGIN)
    assert response.status_code == 303, response.text
    response.cookies.delete("petstore_notice")  # which the first page would show
    return response.cookies
