"""A person at the console of a service in this process, as a browser without JavaScript."""

from dataclasses import dataclass
from typing import Any

import httpx

from petstore.domain.api_keys import SCOPES
from support.service import Service

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


@dataclass
class Visitor:
    """Somebody who is signed in with ``token``, the token of the key ``key_id``."""

    client: httpx.AsyncClient
    token: str
    key_id: int

    async def get(self, path: str, **query: Any) -> httpx.Response:
        """Open a page; ``path`` is relative to ``/console``."""
        return await self.client.get(f"/console{path}", params=query or None)

    async def post(self, path: str, files: Any = None, **fields: Any) -> httpx.Response:
        """Send a form, and return the response without following a redirect."""
        target = f"/console{path}"
        headers = dict(SAME_ORIGIN)
        if not fields and files is None:  # a browser names the type of an empty form, too
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        return await self.client.post(target, data=fields, files=files, headers=headers)

    async def submit(self, path: str, **fields: Any) -> httpx.Response:
        """Send a form that is accepted, and return the page that it leads to."""
        response = await self.post(path, **fields)
        assert response.status_code == 303, response.text
        return await self.client.get(response.headers["location"])


async def signed_in(service: Service, **wanted: Any) -> Visitor:
    """Return a person signed in with a new key; it has every scope unless others are wanted."""
    issued = await service.issue(**{"scopes": frozenset(SCOPES), **wanted})
    client = httpx.AsyncClient(
        transport=service.client._transport,  # noqa: SLF001 - a browser of its own for each person
        base_url=service.client.base_url,
    )
    visitor = Visitor(client, issued.token, issued.key.id)
    response = await visitor.post("/sign-in", key=issued.token)
    assert response.status_code == 303, response.text
    return visitor
