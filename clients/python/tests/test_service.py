"""The client against the real service: every resource, with threads and with tasks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from petstore_client import AsyncClient, Client, errors, events
from petstore_client.models import NewPet
from support.memory_folder import folder_in_memory
from support.process import ServerProcess, serving

FREE = 10**6  # a category that no test creates
SCOPES = ("pets:read", "pets:write", "orders:read", "orders:write", "webhooks:write", "keys:admin")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    network = ("--webhook-network", "127.0.0.0/8")
    with folder_in_memory() as folder, serving(folder, *network) as server:
        yield server


@pytest.fixture(scope="module")
def token(server: ServerProcess) -> str:
    scopes = [word for scope in SCOPES for word in ("--scope", scope)]
    return server.issue("enterprise", *scopes)


class Uses:
    """Calls a client of either kind: what has to be awaited is, and what iterates is a list."""

    def __init__(self, client: Client | AsyncClient, run: Callable[[Any], Any]) -> None:
        self.client = client
        self._run = run

    def __call__(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        method: Any = self.client
        name, paged, _ = name.partition("().pages")
        for part in name.split("."):
            method = getattr(method, part)
        outcome = method(*args, **kwargs)
        if paged:
            outcome = outcome.pages()
        if isinstance(outcome, AsyncIterator):
            return self._run(listed(outcome))
        if isinstance(self.client, AsyncClient):
            return self._run(outcome)
        return list(outcome) if isinstance(outcome, Iterator) else outcome


async def listed(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


@pytest.fixture(params=["threads", "tasks"])
def use(request: pytest.FixtureRequest, server: ServerProcess, token: str) -> Iterator[Uses]:
    url = f"{server.url}/v1"
    if request.param == "threads":
        with Client(token, url) as client:
            yield Uses(client, lambda outcome: outcome)
        return
    with asyncio.Runner() as runner:
        async_client = AsyncClient(token, url)
        yield Uses(async_client, runner.run)
        runner.run(async_client.__aexit__(None, None, None))


def test_a_pet_is_created_read_changed_and_deleted(use: Uses) -> None:
    pet = use("pets.create", name="Bella", category_id=FREE)
    assert (pet.name, pet.category_id, pet.status) == ("Bella", FREE, None)
    assert use("pets.get", pet.id) == pet
    assert use("pets.get", pet.id).etag == pet.etag
    changed = use("pets.update", pet.id, status="available", if_match=pet.etag)
    assert changed.status == "available"
    assert changed.name == "Bella"
    assert use("pets.update", pet.id, status=None).status is None
    with pytest.raises(errors.PreconditionFailed):
        use("pets.delete", pet.id, if_match=changed.etag)
    assert use("pets.delete", pet.id) is None
    with pytest.raises(errors.NotFound, match=f"there is no pet {pet.id}") as raised:
        use("pets.get", pet.id)
    assert (raised.value.status, raised.value.code) == (404, "not_found")
    assert raised.value.request_id


def test_many_pets_are_added_at_once(use: Uses) -> None:
    news = [NewPet(name=f"P{n}", category_id=FREE) for n in range(99)]
    news.append(NewPet(name="Last", category_id=FREE, status="sold"))
    once = f"many-{type(use.client).__name__}"
    pets = use("pets.create_many", iter(news), idempotency_key=once)
    assert [(pet.name, pet.category_id, pet.status) for pet in pets] == [
        (new.name, new.category_id, new.status) for new in news
    ]
    again = use("pets.create_many.raw", news, idempotency_key=once)
    assert (again.value, again.headers["Idempotent-Replayed"]) == (pets, "true")
    with pytest.raises(errors.IdempotencyKeyReused):
        use("pets.create_many", news[1:], idempotency_key=once)
    with pytest.raises(errors.BadRequest, match=r"^\[1\]\.name: expected "):
        use("pets.create_many", [news[0], NewPet(name="", category_id=FREE)])


def test_a_list_reads_all_pages_of_the_given_size(use: Uses) -> None:
    category = use("categories.create", name=f"Pages {datetime.now(UTC)}")
    ids = [use("pets.create", name="P", category_id=category.id).id for _ in range(5)]
    found = use("pets.list", category_id=category.id, limit=2)
    assert [pet.id for pet in found] == ids
    pages = use("pets.list().pages", category_id=category.id, limit=2)
    assert [[pet.id for pet in page] for page in pages] == [ids[:2], ids[2:4], ids[4:]]
    assert pages[-1].cursor is None
    rest = use("pets.list", category_id=category.id, limit=2, cursor=pages[0].cursor)
    assert [pet.id for pet in rest] == ids[2:]
    assert pages[0].response.json()[0]["categoryId"] == category.id


def test_an_order_goes_from_placed_to_delivered_and_another_is_cancelled(use: Uses) -> None:
    pet = use("pets.create", name="Sold", category_id=FREE, status="available")
    sold = use("inventory.get").sold
    ship_date = datetime(2031, 12, 24, 10, tzinfo=UTC)
    order = use("orders.place", pet_id=pet.id, ship_date=ship_date)
    assert (order.status, order.ship_date, order.complete) == ("placed", ship_date, False)
    assert order.reserved_until is not None
    with pytest.raises(errors.PetNotAvailable) as raised:
        use("orders.place", pet_id=pet.id)
    root = use.client.base_url.removesuffix("/v1")
    assert raised.value.documentation == f"{root}/docs/errors#pet_not_available"
    with pytest.raises(errors.PetReserved):
        use("pets.delete", pet.id)
    assert use("orders.update", order.id, ship_date=None, if_match=order.etag).ship_date is None
    assert use("orders.update", order.id, status="approved").status == "approved"
    assert use("orders.update", order.id, status="delivered").complete
    assert [each.id for each in use("orders.list", pet_id=pet.id)] == [order.id]
    assert use("orders.get", order.id).status == "delivered"
    assert use("inventory.get").sold == sold + 1
    with pytest.raises(errors.UnknownPet):
        use("orders.place", pet_id=2**62)


def test_a_key_is_created_changed_rotated_and_revoked(use: Uses, server: ServerProcess) -> None:
    expires_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    limits = {"plan": "enterprise", "per_minute": 10, "expires_at": expires_at}
    key = use("keys.create", name="Till 2", scopes=["pets:read"], **limits)
    assert (key.per_minute, key.per_day, key.expires_at) == (10, None, expires_at)
    with Client(key.token, f"{server.url}/v1") as till:
        assert till.usage.get().minute.limit == 10
        with pytest.raises(errors.MissingScope):
            till.pets.create(name="Bella", category_id=FREE)
    rotated = use("keys.rotate", key.id, grace_seconds=0)
    with Client(rotated.token, f"{server.url}/v1") as till:
        till.keys.rotate_current(grace_seconds=3600)
        with pytest.raises(errors.BeyondOwnRights):
            till.keys.rotate_current()
        use("keys.revoke", key.id)
        with pytest.raises(errors.Unauthorized):
            till.pets.get(1)
    told = [event.type.partition(".")[2] for event in use("events.list", resource=f"key/{key.id}")]
    assert told == ["created", "rotated", "rotated", "revoked"]
    assert use("usage.get").deprecated == []  # the client itself calls nothing deprecated


def test_a_webhook_is_tested_changed_and_deleted(use: Uses) -> None:
    webhook = use("webhooks.create", url="http://127.0.0.1:9/", types=["pet.created"])
    assert webhook.secret.startswith("whsec_")
    assert use("webhooks.test", webhook.id).event_id.startswith("evt_")
    since = datetime.now(UTC) - timedelta(minutes=5)
    assert use("webhooks.recover", webhook.id, since=since).id == webhook.id
    pages = use("webhooks.deliveries().pages", webhook.id, state="failed")
    assert [page.items for page in pages] == [[]]
    assert not use("webhooks.update", webhook.id, enabled=False).enabled
    with pytest.raises(errors.WebhookDisabled):
        use("webhooks.test", webhook.id)
    use("webhooks.delete", webhook.id)


def test_what_a_method_returns_has_an_etag_unless_it_has_a_secret(use: Uses) -> None:
    pet = use("pets.create", name="Bella", category_id=FREE, status="available")
    order = use("orders.place", pet_id=pet.id)
    category = use("categories.create", name=f"Tags {datetime.now(UTC)}")
    login = f"grace-{datetime.now(UTC).timestamp()}"
    person = use("people.create", name="Grace", login=login, role="clerk")
    key = use("keys.create", name="Till 3")
    webhook = use("webhooks.create", url="http://127.0.0.1:9/")
    for each in (pet, order, category):
        assert each.etag.startswith('"')
    for each in (person, key, webhook):
        with pytest.raises(AttributeError, match="or with a token, secret or invitation"):
            _ = each.etag
    for name, made in (("people", person), ("keys", key), ("webhooks", webhook)):
        alone = use(f"{name}.get", made.id)
        assert use(f"{name}.update", made.id, if_match=alone.etag).etag == alone.etag
    changed = use("orders.update", order.id, status="approved", if_match=order.etag)
    assert changed.etag != order.etag


def test_events_describe_the_changes(use: Uses) -> None:
    cursor = use("events.latest")
    pet = use("pets.create", name="Bella", category_id=FREE)
    (event,) = use("events.list", cursor=cursor, types=["pet.created"])
    assert isinstance(event, events.PetCreated)
    assert (event.resource, event.data) == (f"pet/{pet.id}", pet)
    assert (event.actor.type, isinstance(event.actor.id, int)) == ("key", True)
    assert event.request_id
    assert [one.id for one in use("events.list", resource=f"pet/{pet.id}")] == [event.id]
