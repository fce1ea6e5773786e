"""Typical uses of the client, which the type checkers read; it is never run."""

from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import assert_type

from petstore_client import (
    AsyncClient,
    Client,
    OutcomeUnknown,
    Page,
    PetstoreError,
    Response,
    errors,
    webhooks,
)
from petstore_client.models import Event, Inventory, KeyWithToken, NewPet, Order, Pet, Usage


def with_threads() -> None:
    with Client("ps_live_0", "https://shop.example/v1", max_wait=10, pace=True) as client:
        pet = client.pets.create(name="Bella", category_id=1, status="available")
        assert_type(pet, Pet)
        assert_type(pet.category_id, int)
        assert_type(client.pets.get(7), Pet)
        assert_type(client.pets.get.raw(7), Response[Pet])
        assert_type(client.pets.update(7, status=None, if_match=pet.etag), Pet)
        client.pets.update(7, status=pet.status)
        bella = NewPet(name="Bella", category_id=1, status="available")
        assert_type(client.pets.create_many([bella], idempotency_key="a"), list[Pet])
        assert_type(client.pets.create_many.raw(iter([bella])), Response[list[Pet]])
        for listed in client.pets.list(status="available", id=[7, 9], limit=20):
            assert_type(listed, Pet)
        for page in client.pets.pages(status="available"):
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
        assert_type(client.inventory.get(), Inventory)
        assert_type(client.usage.get(), Usage)
        assert_type(client.keys.create(name="Till 2", plan="pro"), KeyWithToken)
        stream = client.events.follow(cursor="latest", types=["pet.created"])
        for event in stream:
            assert_type(event, Event)
            assert_type(stream.cursor, str | None)


async def with_tasks() -> None:
    async with AsyncClient() as client:
        assert_type(await client.pets.create(name="Bella", category_id=1), Pet)
        assert_type(await client.pets.create_many([]), list[Pet])
        assert_type(await client.pets.get(7), Pet)
        assert_type(await client.pets.get.raw(7), Response[Pet])
        async for listed in client.pets.list():
            assert_type(listed, Pet)
        async for page in client.keys.history.pages(4):
            assert_type(page.items[0].by, str)
        async for event in client.events.follow():
            assert_type(event, Event)


def deliver(body: bytes, headers: dict[str, str]) -> Event:
    return webhooks.verify(body, headers, ["whsec_new", "whsec_old"])


def deliver_to(handler: BaseHTTPRequestHandler) -> Event:
    return webhooks.verify(handler.rfile.read(), handler.headers, "whsec_secret")


def mistaken(client: Client) -> None:
    client.pets.create(name="Bella")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    client.pets.get("7")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    client.pets.list(colour="red")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
