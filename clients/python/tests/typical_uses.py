"""Typical uses of the client, which the type checkers read; it is never run."""

from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any, assert_type

from petstore_client import (
    AsyncClient,
    Client,
    OutcomeUnknown,
    Page,
    PetstoreError,
    Response,
    errors,
    events,
    webhooks,
)
from petstore_client.models import (
    Category,
    Event,
    Inventory,
    KeyWithToken,
    NewPet,
    Order,
    Pet,
    Usage,
)


def with_threads() -> None:
    with Client("ps_live_0", "https://shop.example/v1", max_wait=10) as client:
        pet = client.pets.create(name="Bella", category_id=1, status="available")
        assert_type(pet, Pet)
        assert_type(pet.category_id, int)
        assert_type(client.pets.get(7), Pet)
        assert_type(client.pets.get.raw(7), Response[Pet])
        assert_type(client.pets.update(7, status=None, if_match=pet.etag), Pet)
        if pet.status == "sold":
            client.pets.update(7, status="available")
        bella = NewPet(name="Bella", category_id=1, status="available")
        assert_type(client.pets.create_many([bella], idempotency_key="a"), list[Pet])
        assert_type(client.pets.create_many.raw(iter([bella])), Response[list[Pet]])
        for listed in client.pets.list(status="available", id=[7, 9], limit=20):
            assert_type(listed, Pet)
        client.pets.list(id={7, 9})
        client.keys.create(name="Till 3", scopes=("pets:read",))
        for page in client.pets.list(status="available").pages():
            assert_type(page, Page[Pet])
            assert_type(page.items, list[Pet])
            assert_type(page.cursor, str | None)
        try:
            order = client.orders.place(pet_id=pet.id, ship_date=datetime.now(UTC))
            assert_type(order, Order)
        except errors.PetNotAvailable as error:
            assert_type(error.code, str | None)
        except OutcomeUnknown as error:
            assert_type(error.idempotency_key, str | None)
        except PetstoreError as error:
            assert_type(error.retry_after, float | None)
            assert_type(error.documentation, str | None)
            if error.headers is not None:
                assert_type(error.headers["Date"], str)
        assert_type(client.with_options(timeout=5, headers={"Traceparent": "0"}), Client)
        assert_type(client.inventory.get(), Inventory)
        assert_type(client.request("GET", "/later", query={"id": [7]}), Any)
        assert_type(client.request.raw("GET", "/later"), Response[Any])
        assert_type(pet.to_dict(), dict[str, Any])
        assert_type(client.usage.get(), Usage)
        assert_type(client.keys.create(name="Till 2", plan="pro"), KeyWithToken)


def events_with_threads(client: Client) -> None:
    stream = client.events.follow(cursor="latest", types=["pet.created"])
    for event in stream:
        assert_type(event, Event)
        assert_type(stream.cursor, str | None)
        match event:
            case events.PetCreated(data=pet) | events.PetUpdated(data=pet):
                assert_type(pet, Pet)
            case events.OrderPlaced():
                assert_type(event.data, Order)
            case events.KeyBanned(data=data):
                assert_type(data["keyId"], Any)
            case _:
                break
    assert_type(client.events.latest(), str)


async def with_tasks() -> None:
    async with AsyncClient() as client:
        assert_type(await client.pets.create(name="Bella", category_id=1), Pet)
        assert_type(await client.pets.create_many([]), list[Pet])
        assert_type(await client.pets.get(7), Pet)
        assert_type(await client.pets.get.raw(7), Response[Pet])
        async for listed in client.pets.list():
            assert_type(listed, Pet)
        async for page in client.webhooks.deliveries(4).pages():
            assert_type(page.items[0].type, str)
        assert_type(await client.events.latest(), str)
        async for event in client.events.follow(types={"category.created"}):
            assert_type(event, Event)
            if isinstance(event, events.CategoryCreated):
                assert_type(event.data, Category)


def deliver_own(body: bytes) -> Event:
    headers = webhooks.sign(body, "whsec_secret", id="evt_1", at=0)
    assert_type(headers, dict[str, str])
    return webhooks.verify(body, headers, ["whsec_new", "whsec_old"])


def deliver_to(handler: BaseHTTPRequestHandler) -> Event:
    return webhooks.verify(handler.rfile.read(), handler.headers, "whsec_secret")


def mistaken(client: Client) -> None:
    client.pets.create(name="Bella")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    client.pets.get("7")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    webhooks.verify({}, {}, "whsec_secret")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    client.pets.list(colour="red")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    client.events.follow(types=["pet.sold"])  # type: ignore[list-item] # pyright: ignore[reportArgumentType]
    client.pets.create(name="Bella", category_id=1, status="bogus")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
