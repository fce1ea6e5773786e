"""A model of the store in plain dicts: the simplest code that gives the right responses.

A request is a method, a path under ``/v1`` with its query, a body and perhaps an Idempotency-Key.
A response is its status with the JSON of its body, or with the code of an error.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

Record: TypeAlias = dict[str, Any]

OPEN = ("placed", "approved")
_DAY = 24 * 60 * 60_000
_PET_MOVES = {
    None: ("available", "pending", "sold"),
    "available": ("pending", "sold", None),
    "pending": ("available", "sold"),
    "sold": ("available",),
}
_ORDER_MOVES = {
    "placed": ("approved", "cancelled"),
    "approved": ("delivered", "cancelled"),
    "delivered": ("returned",),
    "returned": (),
    "cancelled": (),
}


class Ask(NamedTuple):
    method: str
    target: str
    body: Record | None = None
    idempotency_key: str | None = None


class Reply(NamedTuple):
    status: int
    content: Any


class Refused(Exception):
    def __init__(self, status: int, code: str) -> None:
        self.reply = Reply(status, code)


@dataclass
class StoreModel:
    """Everything a store knows, by the clock ``now`` in milliseconds."""

    now: int
    reservation_minutes: int
    strict_categories: bool
    pets: dict[int, Record] = field(default_factory=dict)
    categories: dict[int, Record] = field(default_factory=dict)
    orders: dict[int, Record] = field(default_factory=dict)
    kept: dict[str, tuple[Ask, Reply, int]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)  # of reservations, by order
    last_ids: dict[str, int] = field(default_factory=dict)

    def respond(self, ask: Ask) -> Reply:
        self._lapse()
        kept = self.kept.get(ask.idempotency_key or "")
        if kept is not None and kept[2] > self.now - _DAY:
            first, reply, _ = kept
            return reply if first == ask else Reply(422, "idempotency_key_reused")
        try:
            reply = self._response(ask)
        except Refused as refused:
            reply = refused.reply
        if ask.idempotency_key is not None and reply.status in (201, 409):
            self.kept[ask.idempotency_key] = (ask, reply, self.now)
        return reply

    def _lapse(self) -> None:
        for order_id in [number for number, end in self.ends.items() if end <= self.now]:
            self._move(self.orders[order_id], "cancelled")

    def _response(self, ask: Ask) -> Reply:
        path, _, query = ask.target.partition("?")
        name, _, item = path.removeprefix("/store").removeprefix("/").partition("/")
        if name == "inventory":
            return Reply(200, self._inventory(dict(parse_qsl(query))))
        records: dict[int, Record] = getattr(self, name)
        if not item:
            if ask.method == "GET":
                return Reply(200, self._page(records, dict(parse_qsl(query))))
            number = self.last_ids.get(name, 0) + 1
            records[number] = {"id": number, **getattr(self, f"_new_{name}")(number, ask.body)}
            self.last_ids[name] = number
            return Reply(201, dict(records[number]))
        body = ask.body or {}
        if "cancelReason" in body and body.get("status") != "cancelled":
            raise Refused(400, "invalid_body")
        if int(item) not in records:
            raise Refused(404, "not_found")
        record = records[int(item)]
        if ask.method == "DELETE":
            getattr(self, f"_delete_{name}")(record)
            return Reply(204, None)
        if ask.method == "PATCH":
            getattr(self, f"_patch_{name}")(record, ask.body)
        return Reply(200, dict(record))

    def _inventory(self, query: dict[str, str]) -> Record:
        if "by" not in query:
            return _counted([*self.pets.values()])
        pets: dict[int, list[Record]] = {}
        for pet in self.pets.values():
            pets.setdefault(pet["categoryId"], []).append(pet)
        rows = [_counted(found) | {"categoryId": number} for number, found in sorted(pets.items())]
        shown = [row for row in rows if row["available"] + row["pending"] + row["sold"]]
        return _counted([*self.pets.values()]) | {"categories": shown}

    def _page(self, records: dict[int, Record], query: dict[str, str]) -> list[Record]:
        limit, buyer = int(query.pop("limit", "20")), query.pop("buyer", "")
        found = [
            dict(record)
            for record in records.values()
            if all(str(record.get(name)) == value for name, value in query.items())
        ]
        if buyer:
            found = [record for record in found if _key(record).startswith(buyer.lower())]
        return found[:limit]

    # Pets

    def _new_pets(self, _: int, body: Record) -> Record:
        self._check_category(body["categoryId"])
        return body

    def _patch_pets(self, pet: Record, body: Record) -> None:
        wanted = body.get("status", pet.get("status"))
        if wanted != pet.get("status"):
            self._check_free(pet)
            if wanted not in _PET_MOVES[pet.get("status")]:
                raise Refused(409, "illegal_transition")
        if body.get("categoryId", pet["categoryId"]) != pet["categoryId"]:
            self._check_category(body["categoryId"])
        _merge(pet, body)

    def _delete_pets(self, pet: Record) -> None:
        self._check_free(pet)
        del self.pets[pet["id"]]

    def _check_free(self, pet: Record) -> None:
        for order in self.orders.values():
            if order["petId"] == pet["id"] and order["status"] in OPEN:
                raise Refused(409, "pet_reserved")

    def _check_category(self, category_id: int) -> None:
        if self.strict_categories and category_id not in self.categories:
            raise Refused(400, "unknown_category")

    # Categories

    def _new_categories(self, _: int, body: Record) -> Record:
        self._check_name(body["name"])
        return body

    def _patch_categories(self, category: Record, body: Record) -> None:
        name: str = body.get("name") or category["name"]
        if name.lower() != category["name"].lower():
            self._check_name(name)
        _merge(category, body)

    def _delete_categories(self, category: Record) -> None:
        if any(pet["categoryId"] == category["id"] for pet in self.pets.values()):
            raise Refused(409, "category_in_use")
        del self.categories[category["id"]]

    def _check_name(self, name: str) -> None:
        if name.lower() in [category["name"].lower() for category in self.categories.values()]:
            raise Refused(409, "category_name_taken")

    # Orders

    def _new_orders(self, order_id: int, body: Record) -> Record:
        pet = self.pets.get(body["petId"])
        if pet is None:
            raise Refused(400, "unknown_pet")
        if pet.get("status") != "available":
            raise Refused(409, "pet_not_available")
        order = {"quantity": 1, "status": "placed", "complete": False, **body}
        order["placedAt"] = text_of(self.now)
        if "amount" in order:
            order["currency"] = "USD"
        if order["complete"]:
            pet["status"] = "sold"
            order |= {"status": "delivered", "deliveredAt": order["placedAt"]}
            return order
        pet["status"] = "pending"
        if self.reservation_minutes:
            self.ends[order_id] = self.now + self.reservation_minutes * 60_000
            order["reservedUntil"] = text_of(self.ends[order_id])
        return order

    def _patch_orders(self, order: Record, body: Record) -> None:
        status: str = body.get("status") or order["status"]
        if "status" in body:
            self._check_move(order, status)
        if body.keys() & {"refund", "returnReason"} and status != "returned":
            raise Refused(400, "invalid_body")
        amount = body.get("amount", order.get("amount"))
        whole = amount if "status" in body and status == "returned" else None
        refund = body.get("refund", order.get("refund", whole))
        if refund is not None and (amount is None or refund > amount):
            raise Refused(400, "invalid_body")
        if "status" in body:
            self._move(order, status)
        if "amount" in body:
            order["currency"] = None if amount is None else "USD"
        _merge(order, body | ({} if refund is None else {"refund": refund}))

    def _delete_orders(self, order: Record) -> None:
        if order["status"] != "cancelled":
            self._check_move(order, "cancelled")
            self._move(order, "cancelled")

    def _check_move(self, order: Record, wanted: str) -> None:
        if wanted not in _ORDER_MOVES[order["status"]]:
            raise Refused(409, "illegal_transition")

    def _move(self, order: Record, status: str) -> None:
        was, end = order["status"], self.ends.pop(order["id"], self.now)
        order.pop("reservedUntil", None)
        order |= {"status": status, "complete": status in ("delivered", "returned")}
        order[f"{status}At"] = text_of(min(self.now, end) if was == "placed" else self.now)
        pet = self.pets.get(order["petId"], {})
        sold_again = any(
            each["petId"] == order["petId"] and each["status"] == "delivered"
            for number, each in self.orders.items()
            if number > order["id"]
        )
        if status == "returned" and (pet.get("status") != "sold" or sold_again):
            return
        after = {"cancelled": "available", "delivered": "sold", "returned": "available"}.get(status)
        if after is not None:
            pet["status"] = after


def _counted(pets: list[Record]) -> Record:
    found = [pet.get("status") for pet in pets]
    return {status: found.count(status) for status in ("available", "pending", "sold")}


def _key(order: Record) -> str:
    return str(order.get("buyer", "")).lower().replace("\u00e4", "a")


def _merge(record: Record, patch: Record) -> None:
    record |= patch
    for name in [name for name, value in record.items() if value is None]:
        del record[name]


def text_of(moment: int) -> str:
    written = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=moment)
    return written.isoformat().replace("+00:00", "Z")
