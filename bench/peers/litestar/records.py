"""The bodies of requests and responses, as msgspec structs."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

PetStatus = Literal["available", "pending", "sold"]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Name = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")]
Moment = Annotated[datetime, Meta(tz=True)]


class NewPet(Struct, rename="camel"):
    """A pet to add."""

    name: Name
    category_id: Int64
    status: PetStatus | UnsetType = UNSET


class Pet(Struct, rename="camel"):
    """A pet."""

    id: int
    name: str
    category_id: int
    status: PetStatus | UnsetType = UNSET


class Inventory(Struct):
    """How many pets there are of each status."""

    available: int = 0
    pending: int = 0
    sold: int = 0


class NewOrder(Struct, rename="camel"):
    """An order to place."""

    pet_id: Int64
    quantity: Annotated[int, Meta(ge=1, le=1)] = 1
    ship_date: Moment | UnsetType = UNSET


class Order(Struct, rename="camel"):
    """An order that was just placed."""

    id: int
    pet_id: int
    placed_at: datetime
    reserved_until: datetime
    quantity: int = 1
    status: str = "placed"
    complete: bool = False
    ship_date: datetime | UnsetType = UNSET


class Error(Struct):
    """Why a request was refused."""

    code: str
    message: str
    status: int
