"""Prints what happened to animals and orders."""

import os

from pet_shop import AuthenticatedClient
from pet_shop.api.events import list_events
from pet_shop.models import OrderSnapshot, PetSnapshot

client = AuthenticatedClient(base_url="https://shop.example/v1", token=os.environ["PETSTORE_KEY"])

events = list_events.sync(client=client, limit=100)
assert isinstance(events, list), events
for event in events:
    match event.data:
        case PetSnapshot(name=name):
            print(event.type_, name)
        case OrderSnapshot(pet_id=pet_id):
            print(event.type_, pet_id)
        case _:
            pass  # about something else, or of a type that was added later
