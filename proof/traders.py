"""Traders: clients that add, change, order, sell and delete pets, and record the responses."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any

from proof.ledger import REFUSED, KnownOrder, KnownPet, Ledger
from proof.wire import Lost, Response, Wire, request

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_ON_SALE = 64  # pets that traders choose from: so few that several want the same
# A key may have 8 in progress, and one whose response was lost may still be.
_BATCHES_AT_ONCE = 4
_RETRY_PAUSE = 0.02  # s
_DRAIN_SECONDS = 3.0
_TRIES = 100
_REFUSALS = (400, 404, 409, 412, 422)
_MOVES = {"placed": ("approved", "approved", "cancelled"), "approved": ("delivered", "cancelled")}


class Traders:
    """So many callers of the service at ``port()``; their ledger is what the store must hold.

    ``acknowledged`` are the changes that were confirmed, ``special`` the batches, the counter sales
    and those taken back, ``statuses`` those of all responses, and ``unexpected`` what no caller
    should ever see. ``lost`` are requests without a response, ``unconnected`` failed attempts to
    connect. ``slowest`` is the longest wait for a response, in seconds. Each caller rests ``pause``
    seconds between its acts. So many ``fresh`` ones open a connection for each request.
    """

    def __init__(
        self,
        port: Callable[[], int],
        token: str,
        ledger: Ledger,
        random: Random,
        callers: int = 48,
        pause: float = 0,
        fresh: int = 0,
    ) -> None:
        self.ledger = ledger
        self.acknowledged = self.replayed = self.retried = self.reads = 0
        self.statuses: Counter[int] = Counter()
        self.special: Counter[str] = Counter()
        self.batch_turns = asyncio.Semaphore(_BATCHES_AT_ONCE)
        self.lost = self.unconnected = 0
        self.unexpected: list[str] = []
        self.slowest = 0.0
        self.numbers = count(1)
        self.on_sale: deque[int] = deque(maxlen=_ON_SALE)
        self.port = port
        self.token = token
        self.pause = pause
        self.is_stopping = False
        self._traders = [
            _Trader(self, Random(random.random()), keeps_alive=number >= fresh)
            for number in range(callers)
        ]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Let them trade until ``stop``."""
        self.is_stopping = False
        self._tasks = [asyncio.create_task(trader.trade()) for trader in self._traders]

    async def stop(self) -> None:
        """Stop all traders; wait a few seconds for their last responses.

        Raises:
            Exception: a trader failed itself.
        """
        self.is_stopping = True
        _, late = await asyncio.wait(self._tasks, timeout=_DRAIN_SECONDS)
        for task in late:
            task.cancel()
        outcomes = await asyncio.gather(*self._tasks, return_exceptions=True)
        for trader in self._traders:
            trader.wire.close()
        await asyncio.sleep(0)  # until they are closed
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome

    async def acknowledge_more(self, changes: int, seconds: float) -> bool:
        """Wait for so many more confirmed changes; return whether they came in time."""
        enough, deadline = self.acknowledged + changes, time.monotonic() + seconds
        while self.acknowledged < enough:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.01)
        return True

    def note(self, response: Response, asked: str, seconds: float) -> None:
        """Note a response, and whether it is one that may be."""
        self.statuses[response.status] += 1
        self.slowest = max(self.slowest, seconds)
        if response.status not in (200, 201, 204, 503, *_REFUSALS):
            self.unexpected.append(f"{asked}: {response.status} {response.body[:200]!r}")
        if response.status == 503 and b"\r\nretry-after: " not in response.head:
            self.unexpected.append(f"{asked}: 503 without Retry-After")


class _Trader:
    """One client. While a change is under way, its resource is not in the client's lists."""

    def __init__(self, traders: Traders, random: Random, *, keeps_alive: bool) -> None:
        self._all = traders
        self._keeps_alive = keeps_alive
        self._ledger = traders.ledger
        self._random = random
        self.wire = Wire()
        self._pets: deque[int] = deque(maxlen=32)
        self._orders: deque[int] = deque(maxlen=32)

    async def trade(self) -> None:
        acts = (
            *(self._add, self._add_batch, self._order, self._sell),
            *(self._move, self._change, self._delete, self._look),
        )
        while not self._all.is_stopping:
            (act,) = self._random.choices(acts, (30, 3, 20, 5, 24, 8, 3, 7))
            await act()
            if self._all.pause:
                await asyncio.sleep(self._all.pause)

    async def _ask(
        self, method: str, target: str, body: object = None, line: str = ""
    ) -> Response | None:
        """Return the response; ``None`` if the outcome is unknown."""
        while not self.wire.is_connected:
            try:
                async with asyncio.timeout(2):
                    await self.wire.connect(self._all.port())
            except (OSError, TimeoutError):
                self._all.unconnected += 1
                await asyncio.sleep(_RETRY_PAUSE)
        started = time.monotonic()
        try:
            response = await self.wire.ask(request(method, target, self._all.token, body, line))
        except Lost:
            self._all.lost += 1
            return None
        if not self._keeps_alive:
            self.wire.close()
        self._all.note(response, f"{method} {target}", time.monotonic() - started)
        if response.status == 503:
            await asyncio.sleep(_RETRY_PAUSE)
            return None
        if method == "GET":
            self._all.reads += 1
        elif response.status < 300:
            self._all.acknowledged += 1
        return response

    async def _create(self, path: str, tag: str, body: object) -> Response | None:
        """Send a creation, half of the time with an Idempotency-Key and until it has an outcome."""
        if self._random.random() < 0.5:
            return await self._ask("POST", path, body)
        line = f"Idempotency-Key: {tag}"
        for attempt in range(_TRIES):
            response = await self._ask("POST", path, body, line)
            if response is not None and b'"idempotency_key_in_use"' not in response.body:
                self._all.retried += attempt > 0
                if response.status == 201 and self._random.random() < 0.1:
                    await self._replay(path, body, line, response)
                return response
            if self._all.is_stopping:
                return None
            await asyncio.sleep(_RETRY_PAUSE)
        return None

    async def _replay(self, path: str, body: object, line: str, first: Response) -> None:
        """Send a creation again that was done."""
        again = await self._ask("POST", path, body, line)
        if again is None:
            return
        self._all.acknowledged -= again.status == 201
        self._all.replayed += 1
        if again.body != first.body or b"\r\nidempotent-replayed: true" not in again.head:
            self._all.unexpected.append(f"{path}: another response to the same {line}")

    async def _add(self) -> None:
        number = next(self._all.numbers)
        tag = f"pet-{number}"
        self._ledger.pet_tags[tag] = None
        new = {"name": tag, "categoryId": number, "status": "available"}
        response = await self._create("/v1/pets", tag, new)
        if response is None:
            return
        if response.status != 201:
            self._ledger.pet_tags[tag] = REFUSED
            self._all.unexpected.append(f"a new pet: {response.status}")
            return
        self._know(response.content)

    def _know(self, pet: dict[str, Any]) -> None:
        """Note a pet that was acknowledged."""
        pet_id, tag = pet["id"], pet["name"]
        self._ledger.pet_tags[tag] = pet_id
        self._ledger.pets[pet_id] = KnownPet(tag, {pet["categoryId"]})
        self._pets.append(pet_id)
        self._all.on_sale.append(pet_id)

    async def _add_batch(self) -> None:
        numbers = [next(self._all.numbers) for _ in range(self._random.randint(2, 5))]
        tags = [f"pet-{number}" for number in numbers]
        self._ledger.pet_tags |= dict.fromkeys(tags)
        self._ledger.batches.append(tags)
        new = [
            {"name": tag, "categoryId": number, "status": "available"}
            for tag, number in zip(tags, numbers, strict=True)
        ]
        async with self._all.batch_turns:
            response = await self._create("/v1/pets/batch", tags[0], new)
        if response is None:
            return
        self._all.special["batches"] += 1
        told = response.content if response.status == 201 else []
        if [pet["name"] for pet in told] != tags:
            self._all.unexpected.append(f"a batch: {response.status} {response.body[:200]!r}")
        for pet in told:
            self._know(pet)

    async def _order(self) -> None:
        await self._buy(at_once=False)

    async def _sell(self) -> None:
        """Sell a pet over the counter, and now and then take the sale back."""
        order_id = await self._buy(at_once=True)
        if order_id is None:
            return
        self._all.special["counter sales"] += 1
        if self._random.random() < 0.3:
            known = self._ledger.orders[order_id]
            known.statuses = {"delivered", "cancelled"}
            cancelled = {"status": "cancelled"}
            response = await self._ask("PATCH", f"/v1/store/orders/{order_id}", cancelled)
            if response is not None:
                # It may be refused once a minute has passed, as after a step of the clock.
                known.statuses = {"cancelled" if response.status == 200 else "delivered"}
                self._all.special["counter sales taken back"] += response.status == 200
                if response.status == 200:
                    self._all.on_sale.append(known.pet_id)

    async def _buy(self, *, at_once: bool) -> int | None:
        """Order a pet, or sell it ``at_once``; return the id of the order."""
        if not self._all.on_sale:
            return None
        pet_id = self._random.choice(self._all.on_sale)
        number = next(self._all.numbers)
        tag = (_EPOCH + timedelta(seconds=number)).isoformat()
        self._ledger.order_tags[tag] = None
        new = {"petId": pet_id, "shipDate": tag, "amount": number, "complete": at_once}
        response = await self._create("/v1/store/orders", tag, new)
        if response is None:
            return None
        if response.status != 201:
            self._ledger.order_tags[tag] = REFUSED
            if self._random.random() < 0.3:
                self._take_off_sale(pet_id)
            return None
        order_id: int = response.content["id"]
        self._ledger.order_tags[tag] = order_id
        status = "delivered" if at_once else "placed"
        self._ledger.orders[order_id] = KnownOrder(tag, pet_id, {status}, number)
        if at_once:
            self._take_off_sale(pet_id)
        else:
            self._orders.append(order_id)
        return order_id

    def _take_off_sale(self, pet_id: int) -> None:
        with suppress(ValueError):
            self._all.on_sale.remove(pet_id)

    async def _move(self) -> None:
        if not self._orders:
            return
        order_id = self._orders.popleft()
        known = self._ledger.orders[order_id]
        (status,) = known.statuses
        wanted = self._random.choice(_MOVES[status])
        known.statuses = {status, wanted}
        path = f"/v1/store/orders/{order_id}"
        if wanted == "cancelled" and self._random.random() < 0.5:
            response = await self._ask("DELETE", path)
        else:
            response = await self._ask("PATCH", path, {"status": wanted})
        if response is None:
            return
        if response.status >= 300:
            self._all.unexpected.append(f"order {order_id} to {wanted}: {response.body!r}")
            return
        known.statuses = {wanted}
        if wanted in _MOVES:
            self._orders.append(order_id)
        elif wanted == "cancelled":
            self._all.on_sale.append(known.pet_id)

    async def _change(self) -> None:
        if not self._pets:
            return
        pet_id = self._pets.popleft()
        known, category = self._ledger.pets[pet_id], next(self._all.numbers)
        before = known.categories
        known.categories = before | {category}
        response = await self._ask("PATCH", f"/v1/pets/{pet_id}", {"categoryId": category})
        if response is None:
            return
        if response.status == 200:
            known.categories = {category}
            self._pets.append(pet_id)
        else:
            known.categories = before
            self._all.unexpected.append(f"pet {pet_id} to {category}: {response.body!r}")

    async def _delete(self) -> None:
        if not self._pets:
            return
        pet_id = self._pets.popleft()
        known = self._ledger.pets[pet_id]
        known.may_exist = {True, False}
        response = await self._ask("DELETE", f"/v1/pets/{pet_id}")
        if response is None:
            return
        known.may_exist = {response.status == 409}
        self._take_off_sale(pet_id)

    async def _look(self) -> None:
        if not self._pets:
            return
        pet_id = self._random.choice(self._pets)
        response = await self._ask("GET", f"/v1/pets?id={pet_id}")
        if response is None:
            return
        known = self._ledger.pets[pet_id]
        found: list[dict[str, Any]] = response.content if response.status == 200 else []
        if len(found) != 1 or found[0]["categoryId"] not in known.categories:
            self._all.unexpected.append(f"pet {pet_id} reads {found}, not {known}")
