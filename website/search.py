"""The index of the search, with short addresses and the words that readers bring along."""

import re
from typing import Any

import msgspec

SYNONYMS = {
    "": "sandbox",
    "agents": "AI, agent, MCP, Model Context Protocol, LLM, Claude, ChatGPT, Copilot, Cursor",
    "authentication": "API key, auth, bearer, credentials, login",
    "client-library": "SDK, Python client",
    "deploying": "Helm, Docker, Kubernetes, container",
    "errors": "status codes",
    "events": "change data capture, polling, stream",
    "guides/back-off": "backoff, exponential, jitter",
    "guides/generated-clients": "Postman, Insomnia, Swagger, code generation",
    "guides/receive-webhooks": "callback",
    "limits": "throttle, throttling, rate limit, quota",
    "pagination": "paging, pages, cursor, offset",
    "pipelines": "dlt, Singer, Meltano, ETL, ELT, warehouse, sync, pipeline",
    "pets": "metadata, custom fields",
    "retries": "idempotency, duplicate",
    "tutorials/sell-a-pet-curl": "quickstart, getting started, hello world",
    "versions": "deprecation, breaking change",
}
"""What readers call the subject of a page, by the address of the page."""

_LOCATION = re.compile(r"(index)?\.html(?=#|$)")


def searchable(content: bytes) -> bytes:
    """Return the index with short addresses and synonyms."""
    index = msgspec.json.decode(content)
    index["items"] = [_finished(item) for item in index["items"]]
    return msgspec.json.encode(index)


def _finished(item: dict[str, Any]) -> dict[str, Any]:
    location = _LOCATION.sub("", item["location"])
    finished = item | {"location": location}
    if words := SYNONYMS.get(location):
        finished["path"] = [*item["path"], words]
    return finished
