"""Whether a peer does the work of interface.md: each check is a sentence, asked over real sockets.

The checks run on a small store of their own. Where the interface leaves something open (the words
of a message, the form of a cursor, further headers, unknown members) a peer may do as it likes.
"""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import httpx

from stock import STATES, category, issue_key, issue_unlimited, petstore

PETS = 250
_UNKNOWN = 10**9


class Keys(NamedTuple):
    """The tokens in the store that is checked."""

    unlimited: str
    free: str
    free_at_once: str
    five_a_day: str
    revoked: str
    expired: str
    revoked_later: str


class Api:
    """A peer under check: the way to it, the URL of its store, and the keys in that."""

    def __init__(self, client: httpx.Client, database: str, keys: Keys) -> None:
        self.keys = keys
        self.database = database
        self._client = client

    def ask(
        self, method: str, path: str, token: str | None = None, **options: Any
    ) -> httpx.Response:
        """Send one request, with the unlimited key unless ``token`` is another, or "" for none."""
        headers = options.pop("headers", {})
        if token != "":
            headers = {"Authorization": f"Bearer {token or self.keys.unlimited}", **headers}
        response = self._client.request(method, path, headers=headers, **options)
        _expect_common_parts(response)
        return response

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Send a GET."""
        return self.ask("GET", path, **options)

    def post(self, path: str, body: object, **options: Any) -> httpx.Response:
        """Send a POST of JSON, or of bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        return self.ask("POST", path, content=content, headers=headers, **options)


class Difference(Exception):
    """A response differs from the interface."""


Check = Callable[[Api], None]
_CHECKS: list[tuple[str, Check]] = []


def differences(url: str, database: str, keys: Keys, does: tuple[str, ...]) -> list[str]:
    """Return what a peer that ``does`` this much does otherwise than the interface says."""
    with httpx.Client(base_url=url, timeout=20) as client:
        api = Api(client, database, keys)
        return [
            f"{check.__name__.replace('_', ' ')}: {difference}"
            for work, check in _CHECKS
            if work in does and (difference := _difference(check, api))
        ]


def _difference(check: Check, api: Api) -> str | None:
    try:
        check(api)
    except Difference as difference:
        return str(difference)
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        return repr(error)
    return None


def issue_keys(database: str) -> Keys:
    """Issue the keys that the checks ask with, in a store whose one key is that of ``fill``."""
    revoked, revoked_later = issue_key(database), issue_unlimited(database)
    _revoke(2, database)
    return Keys(
        unlimited=issue_unlimited(database),
        free=issue_key(database, plan="free"),
        free_at_once=issue_key(database, plan="free"),
        five_a_day=issue_key(database, "--per-minute", "1000", "--per-day", "5"),
        revoked=revoked,
        expired=issue_key(database, "--expires-in", "1s"),
        revoked_later=revoked_later,
    )


def _revoke(key_id: int, database: str) -> None:
    petstore("keys", "revoke", str(key_id), "--database", database)


def _of(work: str) -> Callable[[Check], Check]:
    """Make a function a check of peers that do this work."""

    def add(check: Check) -> Check:
        _CHECKS.append((work, check))
        return check

    return add


def _expect(condition: object, what: str) -> None:
    if not condition:
        raise Difference(what)


def _expect_common_parts(response: httpx.Response) -> None:
    """Check what every response has, and every refusal (sections "Errors" and "Limits")."""
    request = f"{response.request.method} {response.request.url.raw_path.decode()[:80]}"
    headers = response.headers
    for name in ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"):
        _expect(headers.get(name, "").isdecimal(), f"{request}: {name} is {headers.get(name)!r}")
    _expect(headers.get("X-Request-Id"), f"{request}: no X-Request-Id")
    media_type = headers.get("Content-Type", "").partition(";")[0]
    _expect(media_type == "application/json", f"{request}: Content-Type is {media_type!r}")
    if response.is_error:
        error = response.json()
        _expect(set(error) == {"code", "message", "status"}, f"{request}: the body is {error}")
        _expect(error["status"] == response.status_code, f"{request}: status is {error['status']}")
        texts = (error["code"], error["message"])
        _expect(all(text and isinstance(text, str) for text in texts), f"{request}: {error}")


def _expect_status(response: httpx.Response, status: int) -> None:
    request = response.request
    _expect(
        response.status_code == status,
        f"{request.method} {request.url.raw_path.decode()} {request.content.decode('latin-1')[:80]}"
        f" is {response.status_code}, not {status}: {response.text[:200]}",
    )


def _expect_refusal(response: httpx.Response, named: str) -> None:
    """Check that a request is 400 and that the message names what is wrong with it."""
    _expect_status(response, 400)
    message = response.json()["message"]
    _expect(named in message, f"{message!r} does not name {named}")


def _expect_body(response: httpx.Response, status: int, body: object) -> None:
    _expect_status(response, status)
    seen = response.json()
    _expect(seen == body, f"{response.request.url} is {str(seen)[:200]}, not {str(body)[:200]}")


def _pet(pet_id: int) -> dict[str, object]:
    """Return a pet as ``stock.fill`` has made it."""
    number = pet_id - 1
    return {
        "id": pet_id,
        "name": f"Pet {number}",
        "categoryId": category(number),
        "status": STATES[number % 3],
    }


def _pets(**wanted: object) -> list[dict[str, object]]:
    pets = map(_pet, range(1, PETS + 1))
    return [one for one in pets if all(one[name] == value for name, value in wanted.items())]


@_of("list")
def a_page_has_the_first_pets_of_a_status(api: Api) -> None:
    """The request that is measured."""
    response = api.get("/v1/pets?status=available&limit=20")
    _expect_body(response, 200, _pets(status="available")[:20])
    _expect("next" in response.links, "no Link to the next page")


@_of("get")
def a_page_has_20_pets_unless_it_is_asked_for_others(api: Api) -> None:
    """Section "List pets"."""
    _expect_body(api.get("/v1/pets"), 200, _pets()[:20])
    for limit in (1, 100):
        _expect_body(api.get(f"/v1/pets?limit={limit}"), 200, _pets()[:limit])


@_of("get")
def a_page_can_be_of_one_category_too(api: Api) -> None:
    """Alone and with a status."""
    _expect_body(api.get("/v1/pets?categoryId=3"), 200, _pets(categoryId=3)[:20])
    both = api.get("/v1/pets?categoryId=3&status=sold&limit=2")
    _expect_body(both, 200, _pets(categoryId=3, status="sold")[:2])
    _expect_body(api.get("/v1/pets?categoryId=99"), 200, [])


@_of("get")
def the_links_lead_through_every_pet_once(api: Api) -> None:
    """And the last page has none."""
    path, seen = "/v1/pets?status=pending&limit=30", []
    while path:
        response = api.get(path)
        _expect_status(response, 200)
        seen += response.json()
        path = response.links.get("next", {}).get("url", "")
    _expect(seen == _pets(status="pending"), f"{len(seen)} pets on all pages")


@_of("get")
def a_parameter_that_is_not_as_it_must_be_is_named(api: Api) -> None:
    """Each a 400."""
    for name, values in {
        "limit": ("0", "101", "-1", "abc", "5.0", ""),
        "status": ("lost", "Available", ""),
        "categoryId": ("x", "1.5", "9223372036854775808"),
        "cursor": ("%25%25", "not-a-cursor!"),
    }.items():
        for value in values:
            _expect_refusal(api.get(f"/v1/pets?{name}={value}"), name)


@_of("get")
def a_pet_is_found_by_its_id(api: Api) -> None:
    """Section "Get a pet"."""
    for pet_id in (1, 77, PETS):
        _expect_body(api.get(f"/v1/pets/{pet_id}"), 200, _pet(pet_id))
    for path in (f"/v1/pets/{_UNKNOWN}", "/v1/pets/x", "/v1/nothing"):
        _expect_status(api.get(path), 404)


@_of("get")
def the_id_of_a_request_comes_back(api: Api) -> None:
    """Only if it is one."""
    response = api.get("/v1/pets/1", headers={"X-Request-Id": "bench-1"})
    _expect(response.headers["X-Request-Id"] == "bench-1", "it does not")
    response = api.get("/v1/pets/1", headers={"X-Request-Id": "a b"})
    _expect(response.headers["X-Request-Id"] != "a b", "so does one that is none")


@_of("create")
def a_pet_is_added_as_it_was_sent(api: Api) -> None:
    """Section "Add a pet"."""
    for body in (
        {"name": "Bella", "categoryId": 1, "status": "available"},
        {"name": "Ünï \u2603 \U0001f415", "categoryId": -(2**63)},
        {"name": "x" * 255, "categoryId": 2**63 - 1, "status": "sold"},
    ):
        response = api.post("/v1/pets", body)
        _expect_status(response, 201)
        pet_id = response.json()["id"]
        _expect(isinstance(pet_id, int) and pet_id > PETS, f"its id is {pet_id}")
        _expect_body(response, 201, {**body, "id": pet_id})
        _expect_body(api.get(f"/v1/pets/{pet_id}"), 200, {**body, "id": pet_id})


@_of("create")
def a_body_that_is_not_as_it_must_be_is_refused(api: Api) -> None:
    """Each a 400 that names the field, where it is one."""
    good = {"name": "Bella", "categoryId": 1}
    for field, values in {
        "name": ("", "x" * 256, "   ", 5, None, ["a"]),
        "categoryId": ("1", True, 1.5, 2**63, None, {}),
        "status": ("lost", None, 1),
    }.items():
        for value in values:
            _expect_refusal(api.post("/v1/pets", {**good, field: value}), field)
    for field, value in good.items():
        _expect_refusal(api.post("/v1/pets", {field: value}), next(iter(good.keys() - {field})))
    for body in (b"", b"{", b"[]", b"null", b'{"name":"\xff","categoryId":1}', b"{}{}"):
        _expect_status(api.post("/v1/pets", body), 400)


@_of("inventory")
def the_inventory_counts_the_pets_of_each_status(api: Api) -> None:
    """And one that is added counts at once."""
    before = api.get("/v1/store/inventory")
    _expect_status(before, 200)
    _expect(set(before.json()) == set(STATES), before.text)
    api.post("/v1/pets", {"name": "Bella", "categoryId": 1, "status": "sold"})
    after = {**before.json(), "sold": before.json()["sold"] + 1}
    _expect_body(api.get("/v1/store/inventory"), 200, after)


@_of("order")
def an_order_reserves_its_pet(api: Api) -> None:
    """Once."""
    response = api.post("/v1/store/orders", {"petId": 4})
    _expect_status(response, 201)
    order = response.json()
    wanted = {"petId": 4, "quantity": 1, "status": "placed", "complete": False}
    _expect({name: order.get(name) for name in wanted} == wanted, f"the order is {order}")
    _expect(isinstance(order["id"], int), f"its id is {order['id']}")
    _expect(order["placedAt"] < order["reservedUntil"], f"the order is {order}")
    _expect_body(api.get("/v1/pets/4"), 200, {**_pet(4), "status": "pending"})
    _expect_status(api.post("/v1/store/orders", {"petId": 4}), 409)


@_of("order")
def an_order_that_is_not_as_it_must_be_is_refused(api: Api) -> None:
    """Each a 400 that names the field."""
    for body in ({}, {"petId": "7"}, {"petId": None}, {"petId": 1.5}, {"petId": _UNKNOWN}):
        _expect_refusal(api.post("/v1/store/orders", body), "pet")
    _expect_body(api.get("/v1/pets/7"), 200, _pet(7))


@_of("order")
def of_many_buyers_one_gets_the_pet(api: Api) -> None:
    """However they race."""
    with ThreadPoolExecutor(10) as buyers:
        responses = buyers.map(lambda _: api.post("/v1/store/orders", {"petId": 10}), range(40))
        statuses = sorted(response.status_code for response in responses)
    _expect(statuses == [201] + [409] * 39, f"they got {statuses}")


@_of("keys")
def without_a_valid_key_a_response_is_401(api: Api) -> None:
    """Whatever is wrong with it (section "Authentication")."""
    time.sleep(1)  # until the key that lasts so long has expired, whenever it was issued
    unknown = api.keys.unlimited[:-1] + ("a" if api.keys.unlimited[-1] != "a" else "b")
    for token in ("", "x", "ps_live_", unknown, api.keys.revoked, api.keys.expired):
        _expect_status(api.get("/v1/pets/1", token=token), 401)
        _expect_status(api.post("/v1/pets", {"name": "x", "categoryId": 1}, token=token), 401)
    basic = {"Authorization": f"Basic {api.keys.unlimited}"}
    _expect_status(api.get("/v1/pets", headers=basic), 401)


@_of("keys")
def a_revoked_key_is_refused_within_a_second(api: Api) -> None:
    """Though it was good just before."""
    token = api.keys.revoked_later
    _expect_status(api.get("/v1/pets/1", token=token), 200)
    _revoke(3, api.database)
    time.sleep(1)
    _expect_status(api.get("/v1/pets/1", token=token), 401)


@_of("limits")
def the_minute_of_a_key_admits_its_limit(api: Api) -> None:
    """60 of the plan Free, each counted, whatever it asks (section "Limits")."""
    _wait_for_most_of_a_minute()
    for used in range(1, 61):
        path = "/v1/pets/1" if used % 2 else "/v1/pets/x"
        response = api.get(path, token=api.keys.free)
        _expect_status(response, 200 if used % 2 else 404)
        _expect_window(response, 60, 60 - used, 60)
    response = api.get("/v1/pets/1", token=api.keys.free)
    _expect_status(response, 429)
    _expect_window(response, 60, 0, 60)
    wait = response.headers.get("Retry-After", "")
    _expect(wait.isdecimal() and 1 <= int(wait) <= 61, f"Retry-After is {wait!r}")


@_of("limits")
def the_day_of_a_key_admits_its_limit(api: Api) -> None:
    """And is what the headers describe while it has less room than the minute."""
    for used in range(1, 6):
        response = api.get("/v1/pets/1", token=api.keys.five_a_day)
        _expect_status(response, 200)
        _expect_window(response, 5, 5 - used, 86400)
    _expect_status(api.get("/v1/pets/1", token=api.keys.five_a_day), 429)


@_of("limits")
def requests_at_once_are_counted_each(api: Api) -> None:
    """No more than the limit pass."""
    _wait_for_most_of_a_minute()
    with ThreadPoolExecutor(10) as callers:
        ask = callers.map(lambda _: api.get("/v1/pets", token=api.keys.free_at_once), range(100))
        statuses = [response.status_code for response in ask]
    admitted = statuses.count(200)
    _expect(admitted == 60, f"{admitted} passed")
    _expect(statuses.count(429) == 40, f"the answers are {sorted(set(statuses))}")


@_of("limits")
def the_key_that_is_measured_with_counts_too(api: Api) -> None:
    """It has limits, if large ones."""
    first, second = (int(api.get("/v1/pets/1").headers["X-RateLimit-Remaining"]) for _ in range(2))
    _expect(first - second == 1, f"{second} remained after {first}")


def _wait_for_most_of_a_minute() -> None:
    """Wait until the minute by the clock is young: some libraries count by it."""
    if time.time() % 60 > 50:
        time.sleep(60 - time.time() % 60)


def _expect_window(response: httpx.Response, limit: int, remaining: int, seconds: int) -> None:
    """Check the headers of a window of so many seconds, wherever libraries let it begin."""
    names = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
    seen = [int(response.headers[name]) for name in names]
    _expect(seen[:2] == [limit, remaining], f"limit and remaining are {seen[:2]}")
    _expect(-1 <= seen[2] - time.time() <= seconds + 1, f"it resets at {seen[2]}")
