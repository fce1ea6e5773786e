"""Prints what happened to pets and orders."""

import os

from pet_shop import AuthenticatedClient
from pet_shop.api.events import list_events

client = AuthenticatedClient(base_url="https://shop.example/v1", token=os.environ["PETSTORE_KEY"])

events = list_events.sync(client=client, limit=100)
assert isinstance(events, list), events
for event in events:
    if event.type_.startswith("pet."):
        print(event.type_, event.data["name"])
    elif event.type_.startswith("order."):
        print(event.type_, event.data["petId"])
