"""A person at the console, added and signed in without a password."""

import secrets

from petstore.databases.contract import Statement, Unit
from petstore.keys.model import Role, digest
from petstore.keys.status import new_caller
from petstore.sessions.store import open_session
from support.service import Service
from support.visitor import Visitor, newcomer

COOKIE = "petstore_console"


async def signed_in_person(
    service: Service, role: Role = "clerk", name: str = "Grace", environment: str = "production"
) -> Visitor:
    """Return a person with this role, whose id is ``key_id``."""
    token = secrets.token_bytes(32)
    person_id = await service.store.write(_added(role, name, environment, token, service.clock()))
    visitor = newcomer(service, key_id=person_id)
    secret = await service.store.write(open_session(person_id, token, service.clock()))
    visitor.client.cookies.set(COOKIE, secret)
    return visitor


def _added(role: Role, name: str, environment: str, token: bytes, now: int) -> Unit[int]:
    ((person_id,),) = yield new_caller("person")
    yield Statement(
        "INSERT INTO people (id, name, login, login_key, role, environment, created_at)"
        " VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6)",
        (person_id, name, f"login-{person_id}", role, environment, now),
    )
    yield Statement(
        "INSERT INTO api_key_tokens (digest, key_id) VALUES (?1, ?2)", (digest(token), person_id)
    )
    return int(person_id)
