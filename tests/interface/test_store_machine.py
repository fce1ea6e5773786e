"""Any requests in any order: the service responds like a model of plain dicts."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import AsyncExitStack
from copy import deepcopy
from functools import partial
from itertools import count, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.exploration import explored
from support.manual_clock import ManualClock
from support.service import Service, bare_app
from support.store_model import Ask, Reply, StoreModel

RUNS = explored(
    15,
    stateful_step_count=25,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # report a failure as found: shrinking takes minutes
    suppress_health_check=[HealthCheck.too_slow],
)
PATHS = ("/pets", "/categories", "/store/orders")
MINUTE = 60_000

NOTHING = st.none()
numbers = st.integers(1, 3)
statuses = st.sampled_from(["available", "available", "pending", "sold"])
order_statuses = st.sampled_from(["approved", "delivered", "returned", "cancelled", "placed"])
ship_dates = st.sampled_from(["2026-12-24T10:00:00Z", "2026-12-24T10:00:00.500000+01:00"])
names = st.sampled_from(["Dogs", "dogs", "Cats"])
reservation_minutes = st.sampled_from([0, 1, 2, 1440])
pauses = st.sampled_from([1, MINUTE - 1, MINUTE, MINUTE + 1, 1440 * MINUTE])


def fields(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


def each_of(path: str) -> st.SearchStrategy[str]:
    return numbers.map(lambda number: f"{path}/{number}")


def asks(
    method: str,
    targets: st.SearchStrategy[str],
    bodies: st.SearchStrategy[Any] = NOTHING,
    retries: st.SearchStrategy[Any] = NOTHING,
) -> st.SearchStrategy[Ask]:
    return st.builds(Ask, st.just(method), targets, bodies, retries)


new_pets = fields({"name": st.just("Bella"), "categoryId": numbers}, status=statuses)
available_pets = fields(
    {"name": st.just("Bella"), "categoryId": numbers, "status": st.just("available")}
)
pet_patches = fields(
    {}, name=st.sampled_from(["Max", "Rex"]), categoryId=numbers, status=st.none() | statuses
)
new_categories = fields({"name": names}, description=st.just("All of them"))
category_patches = fields({}, name=names, description=st.none() | st.just("Some of them"))
buyers = st.sampled_from(["Jane", "J\u00e4ne", "John Doe"])
new_orders = fields(
    {"petId": numbers},
    shipDate=ship_dates,
    complete=st.booleans(),
    buyer=buyers,
    note=st.just("Call\nfirst."),
    amount=numbers,
)
order_patches = st.one_of(
    fields({"status": order_statuses}),
    fields({"status": st.just("cancelled")}, cancelReason=st.just("Too late")),
    fields({}, status=order_statuses, shipDate=st.none() | ship_dates),
    fields({}, buyer=st.none() | buyers, amount=st.none() | numbers),
    fields({"status": st.just("returned")}, refund=numbers, returnReason=st.just("Sad")),
    fields({"refund": numbers}),
    fields({}, note=st.none() | st.just("Paid.")),
    st.just({"status": "approved", "cancelReason": "Too late"}),
)
retries = st.none() | st.sampled_from(["first", "second"])

changes = st.one_of(
    asks("POST", st.just("/pets"), new_pets, retries),
    asks("PATCH", each_of("/pets"), pet_patches),
    asks("DELETE", each_of("/pets")),
    asks("POST", st.just("/categories"), new_categories),
    asks("PATCH", each_of("/categories"), category_patches),
    asks("DELETE", each_of("/categories")),
)
orders = st.one_of(
    asks("POST", st.just("/store/orders"), new_orders, retries),
    asks("PATCH", each_of("/store/orders"), order_patches),
    asks("DELETE", each_of("/store/orders")),
)
filters = st.one_of(
    st.builds("/pets?status={}&categoryId={}".format, statuses, numbers),
    st.builds("/pets?status={}".format, statuses),
    st.builds("/store/orders?status={}".format, order_statuses),
    st.builds("/store/orders?petId={}&limit={}".format, numbers, numbers),
    st.builds("/store/orders?buyer={}".format, st.sampled_from(["j", "JA", "john"])),
    st.just("/store/inventory?by=category"),
    st.just("/store/inventory"),
    *(each_of(path) for path in PATHS),
)


class StoreMachine(RuleBasedStateMachine):
    """A service by a clock that is set, and the model beside it.

    Each starts on a copy of ``template``, in which the owner of ``token`` has a key.
    """

    def __init__(self, template: Path, token: str, folders: Iterator[Path]) -> None:
        super().__init__()
        self.headers = [(b"host", b"petstore"), (b"authorization", f"Bearer {token}".encode())]
        self.folders = folders
        self.database = next(folders) / "petstore.db"
        shutil.copy(template, self.database)
        self.clock = ManualClock()
        self.model = StoreModel(self.clock(), 0, strict_categories=False)
        self.runner = asyncio.Runner()
        self.running = AsyncExitStack()

    @initialize(
        pets=st.lists(available_pets, min_size=2, max_size=3),
        minutes=reservation_minutes,
        strict=st.booleans(),
    )
    def begin(self, pets: list[dict[str, Any]], minutes: int, *, strict: bool) -> None:
        self.start(minutes, strict=False)
        self.ask(*(Ask("POST", "/pets", pet) for pet in pets))
        self.restart(minutes, strict=strict)

    @rule(asks=st.lists(changes, min_size=1, max_size=4))
    def change(self, asks: list[Ask]) -> None:
        self.ask(*asks)

    @rule(asks=st.lists(orders, min_size=1, max_size=6))
    def order(self, asks: list[Ask]) -> None:
        self.ask(*asks)

    @rule(targets_read=st.lists(filters, min_size=1, max_size=3))
    def read(self, targets_read: list[str]) -> None:
        self.ask(*(Ask("GET", target) for target in targets_read))

    @precondition(lambda self: self.model.kept)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """Send again what was sent with an Idempotency-Key."""
        self.ask(data.draw(st.sampled_from([ask for ask, *_ in self.model.kept.values()])))

    @rule(asks=st.lists(changes | orders, min_size=2, max_size=3))
    def change_at_once(self, asks: list[Ask]) -> None:
        """Send several at once: the responses are as if they ran one by one, in some order."""
        asks = [ask._replace(idempotency_key=None) for ask in asks]

        async def send_all() -> list[Reply]:
            return await asyncio.gather(*map(self.send, asks))

        replies = self.runner.run(send_all())
        for turns in permutations(zip(asks, replies, strict=True)):
            model = deepcopy(self.model)
            if all(model.respond(ask) == reply for ask, reply in turns):
                self.model = model
                return
        pytest.fail(f"no order explains these responses: {replies}")

    @rule(pause=pauses)
    def wait(self, pause: int) -> None:
        self.clock.now += pause
        self.model.now += pause

    @precondition(lambda self: self.model.ends)
    @rule(early=st.sampled_from([0, 1]))
    def wait_for_a_lapse(self, early: int) -> None:
        """Come when a reservation ends, or a millisecond before."""
        self.wait(max(0, min(self.model.ends.values()) - self.model.now - early))

    def look_at_everything(self) -> None:
        self.ask(*(Ask("GET", f"{path}?limit=100") for path in PATHS))
        self.ask(Ask("GET", "/store/inventory?by=category"))

    @rule(minutes=reservation_minutes, strict=st.booleans())
    def restart(self, minutes: int, *, strict: bool) -> None:
        self.stop()
        self.start(minutes, strict=strict)

    @rule(minutes=reservation_minutes, pause=pauses)
    def crash(self, minutes: int, pause: int) -> None:
        """Continue later, from a copy of the files of the running service."""
        survives = next(self.folders) / "petstore.db"
        for suffix in ("", "-wal"):
            shutil.copy(f"{self.database}{suffix}", f"{survives}{suffix}")
        self.stop()
        self.database = survives
        self.wait(pause)
        self.start(minutes, strict=self.model.strict_categories)

    def teardown(self) -> None:
        with self.runner:
            try:
                self.look_at_everything()
            finally:
                self.stop()

    def start(self, minutes: int, *, strict: bool) -> None:
        self.app: Service = bare_app(
            self.database,
            self.clock,
            database_timeout=60,  # a busy disk is not what is tested
            reservation_minutes=minutes,
            strict_categories=strict,
        )
        self.model.reservation_minutes, self.model.strict_categories = minutes, strict
        self.runner.run(self.running.enter_async_context(self.app.app.lifespan()))

    def stop(self) -> None:
        self.runner.run(self.running.aclose())

    def ask(self, *asks: Ask) -> None:
        for ask in asks:
            expected = self.model.respond(ask)
            assert self.runner.run(self.send(ask)) == expected, ask

    async def send(self, ask: Ask) -> Reply:
        body = b"" if ask.body is None else json.dumps(ask.body).encode()
        headers = [*self.headers, (b"content-length", str(len(body)).encode())]
        if ask.idempotency_key is not None:
            headers.append((b"idempotency-key", ask.idempotency_key.encode()))
        response = await self.app.call(ask.method, f"/v1{ask.target}".encode(), headers, body)
        content: Any = json.loads(response.body) if response.body else None
        return Reply(response.status, content["code"] if response.status >= 400 else content)


@pytest.fixture
def template(tmp_path: Path) -> tuple[Path, str]:
    """A store in which a key has been issued, and the token of the key."""
    bare = bare_app(tmp_path / "template.db")

    async def prepare() -> str:
        await bare.store.open()
        token = (await bare.issue()).token
        await bare.store.close()
        return token

    return tmp_path / "template.db", asyncio.run(prepare())


@pytest.mark.explores
def test_the_service_responds_like_the_model(tmp_path: Path, template: tuple[Path, str]) -> None:
    def folders() -> Iterator[Path]:
        for number in count():
            path = tmp_path / str(number)
            path.mkdir()
            yield path

    made: Any = partial(StoreMachine, *template, folders())  # typed as if it had to be a class
    run_state_machine_as_test(made, settings=RUNS)
