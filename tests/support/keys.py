"""API keys for tests that work on a store."""

from typing import Any

from petstore.clock import Clock
from petstore.domain.api_keys import DEFAULT_SCOPES
from petstore.operations.api_keys import IssuedKey, create_key
from petstore.storage.api_keys import NewApiKey
from petstore.storage.contract import Store


def new_api_key(**wanted: Any) -> NewApiKey:
    """Return a key to create: of the plan free, for production, but for what is ``wanted``."""
    values = {
        "name": "test",
        "plan": "free",
        "per_minute": None,
        "per_day": None,
        "scopes": frozenset(DEFAULT_SCOPES),
        "environment": "production",
        "expires_at": None,
    }
    return NewApiKey(**(values | wanted))


async def issue(store: Store, clock: Clock, **wanted: Any) -> IssuedKey:
    """Create a key in ``store``."""
    return await create_key(store, new_api_key(**wanted), clock)
