"""An administrator of a service in a process of its own, who sets a password."""

from uuid import uuid4

import httpx

from petstore.keys.model import SCOPES
from support.process import ServerProcess
from support.visitor import SAME_ORIGIN


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
