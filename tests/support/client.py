"""A client of the interface: what somebody with interface.md and an HTTP library would write."""

from collections.abc import Callable
from typing import Any, TypeAlias

import httpx

RATE_LIMIT_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


class Client(httpx.Client):
    def __init__(self, service: str, token: str | None = None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        super().__init__(base_url=f"{service}/v1", headers=headers, trust_env=False)

    def list_pets(self, **query: object) -> httpx.Response:
        return self.get("/pets", params={name: str(value) for name, value in query.items()})

    def create_pet(self, **fields: object) -> httpx.Response:
        return self.post("/pets", json=fields)

    def get_pet(self, pet_id: object) -> httpx.Response:
        return self.get(f"/pets/{pet_id}")

    def add(self, **fields: object) -> dict[str, Any]:
        created = self.create_pet(**{"name": "Bella", "categoryId": 1, **fields})
        assert created.status_code == 201, created.text
        pet: dict[str, Any] = created.json()
        return pet


IssueKey: TypeAlias = Callable[..., Client]
"""Takes a plan and options of ``petstore keys create``; returns a client with such a key."""
