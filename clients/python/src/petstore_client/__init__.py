"""The client of a Petstore service: typed, sync and async, polite to its limits."""

from msgspec import UNSET

from petstore_client import errors, events, models, webhooks
from petstore_client._calls import Page, Response
from petstore_client._client import AsyncClient, Client
from petstore_client._reading import AsyncListed, Listed
from petstore_client._version import __version__
from petstore_client.errors import (
    NoResponse,
    NotFound,
    OutcomeUnknown,
    PetstoreError,
    RateLimited,
    UnexpectedResponse,
)

__all__ = [
    "UNSET",
    "AsyncClient",
    "AsyncListed",
    "Client",
    "Listed",
    "NoResponse",
    "NotFound",
    "OutcomeUnknown",
    "Page",
    "PetstoreError",
    "RateLimited",
    "Response",
    "UnexpectedResponse",
    "__version__",
    "errors",
    "events",
    "models",
    "webhooks",
]
