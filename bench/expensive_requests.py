"""The cost of refused and odd requests, as multiples of a list.

The application runs in process on a fresh SQLite file, without a server: this is the cost of the
API alone. A list is the one of the comparison: 20 pets, the same page each time, from memory.
The requests alternate, so a busy machine slows all of them. Each number is the minimum of the
rounds, in CPU time of the serving thread. On a quiet core a list takes some 10 µs.

``--source`` measures another tree beside this one, such as the previous commit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

_HERE = Path(__file__).parent
_SOURCE = _HERE.parent / "src"
_CALLS = 20
_LARGEST_QUERY = 16_000
_LARGEST_FIELD = 60_000
_LARGEST_BODY = 65_000


class Dear(NamedTuple):
    """A request that asks for much work."""

    name: str
    method: str = "GET"
    path: str = "/v1/pets"
    query: bytes = b""
    fields: Mapping[bytes, bytes] = MappingProxyType({})
    body: bytes = b""


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--source", type=Path, action="append", help="src/ of another tree")
    parser.add_argument("--measurements", action="store_true", help="print JSON of this tree alone")
    options = parser.parse_args()
    if options.measurements:
        print(json.dumps(measurements(options.rounds)))
        return
    sources = [*(options.source or []), _SOURCE]
    found = [_measurements_of(source, options.rounds) for source in sources]
    print("".join(f"| {cell} " for cell in ("Request", *map(str, sources))) + "|")
    print("|---" + "|---:" * len(sources) + "|")
    for name in found[-1]:
        ratios = [f"{each[name][0] / each['a list'][0]:.1f} ({each[name][1]})" for each in found]
        print("".join(f"| {cell} " for cell in (name, *ratios)) + "|")
    lists = ", ".join(f"{each['a list'][0]:.1f}" for each in found)
    print(f"\nA list takes {lists} µs. In brackets: the status of the response.")


def _measurements_of(source: Path, rounds: int) -> dict[str, tuple[float, int]]:
    command = [sys.executable, __file__, "--measurements", "--rounds", str(rounds)]
    env = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{_HERE}"}
    run = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    found: dict[str, tuple[float, int]] = json.loads(run.stdout)
    return found


def measurements(rounds: int) -> dict[str, tuple[float, int]]:
    """Return the µs of each request, and the status of its response."""
    import uvloop

    with (
        tempfile.TemporaryDirectory(prefix=".dear-", dir=_HERE) as folder,
        Path("/dev/null").open("wb") as nowhere,
    ):
        return uvloop.run(_measurements(f"sqlite:///{folder}/petstore.db", nowhere, rounds))


async def _measurements(url: str, nowhere: BinaryIO, rounds: int) -> dict[str, tuple[float, int]]:
    from petstore.app import create_app
    from petstore.backends import create_limiter, database_of
    from petstore.clock import system_clock
    from petstore.events.store import Change
    from petstore.http.messages import Request
    from petstore.keys.model import SCOPES, KeyFields
    from petstore.keys.store import create_key
    from petstore.logs import RequestLog
    from petstore.settings import Settings

    settings = Settings(database=url)
    store = database_of(settings)
    store.migrate()
    wanted = KeyFields[int]("dear", "enterprise", 10**9, 2 * 10**9, frozenset(SCOPES))
    limiter = create_limiter(settings, store, system_clock)
    log = RequestLog(nowhere, system_clock, for_person=False)
    app = create_app(settings, store, limiter, log)

    always = {b"host": b"petstore"}

    async def ask(dear: Dear) -> Any:
        fields = {**always, **dear.fields}
        request = Request(dear.method, dear.path, dear.query, "127.0.0.1", fields)
        if dear.body:
            request.content, request.body = dear.body, "read"
        return await app(request, _nothing)

    async with app.lifespan():
        issued = await store.write(create_key(wanted, settings.environment, Change(system_clock())))
        always[b"authorization"] = b"Bearer " + issued.token.encode()
        for number in range(20):
            pet = b'{"name":"Pet %d","categoryId":1,"status":"available"}' % number
            await ask(Dear("", "POST", body=pet))
        await ask(Dear("", "POST", "/v1/categories", body=b'{"name":"Dogs"}'))
        found: dict[str, tuple[float, int]] = {}
        requests = list(_requests())
        for _ in range(rounds):
            for dear in requests:
                before = found.get(dear.name, (float("inf"), 0))[0]
                await ask(dear)  # what a change before it left is read anew
                started = time.thread_time()
                for _ in range(_CALLS):
                    response = await ask(dear)
                spent = (time.thread_time() - started) / _CALLS * 1e6
                found[dear.name] = min(before, spent), response.status
        return found


def _requests() -> Iterator[Dear]:
    yield Dear("a list", query=b"status=available&limit=20")
    yield Dear("a pet", path="/v1/pets/1")
    yield Dear("no such pet", path="/v1/pets/99")
    yield from _of_queries()
    yield from _of_fields()
    yield from _of_paths()
    yield from _of_bodies()


def _of_queries() -> Iterator[Dear]:
    for pair, count in ((b"a", 8_100), (b"a", 127), (b"id=1", 3_276), (b"id=1", 100)):
        query = b"&".join([pair] * count)
        yield Dear(f"query: {count} × {pair.decode()}", query=query)
    yield Dear("query: 100 × id%5B%5D=1", query=b"&".join([b"id%5B%5D=1"] * 100))
    yield Dear("query: 500 × %31 in 100 ids", query=b"&".join([b"id=" + b"%31" * 5] * 100))
    yield Dear("query: 102 × an encoded name", query=b"&".join([b"%69%64%31%31%31"] * 102))
    for name, value in {
        "limit=%25…": b"limit=" + b"%25" * (_LARGEST_QUERY // 3),
        "%25…=1": b"%25" * (_LARGEST_QUERY // 3) + b"=1",
        "limit=%31… 512 times": b"limit=" + b"%31" * 512,
        "x=y…": b"x=" + b"y" * _LARGEST_QUERY,
        "status=y…": b"status=" + b"y" * _LARGEST_QUERY,
        "status=+…": b"status=" + b"+" * _LARGEST_QUERY,
        "status=\\xff…": b"status=" + b"\xff" * _LARGEST_QUERY,
        "cursor=A…": b"cursor=" + b"A" * _LARGEST_QUERY,
        "a broken cursor": b"cursor=AAAAAAAAABR",
        "a cursor": b"cursor=AAAAAAAAABQ",
    }.items():
        yield Dear(f"query: {name}", query=value)


def _of_fields() -> Iterator[Dear]:
    commas, tags = b"," * _LARGEST_FIELD, b'"",' * (_LARGEST_FIELD // 3)
    for field in (b"if-match", b"if-none-match"):
        name = field.decode()
        yield Dear(f"{name}: 60,000 commas", path="/v1/pets/1", fields={field: commas})
        yield Dear(f"{name}: 20,000 tags", path="/v1/pets/1", fields={field: tags})
        yield Dear(f"{name}: 341 tags", path="/v1/pets/1", fields={field: tags[:1023]})
        yield Dear(f"{name}: 341 tags on a list", fields={field: tags[:1023]})
        yield Dear(f"{name}: 1,023 spaces", path="/v1/pets/1", fields={field: b'"' + b" " * 1023})
    patch = Dear("", "PATCH", "/v1/pets/1", body=b"{}")
    yield patch._replace(name="if-match: 341 tags on PATCH", fields={b"if-match": tags[:1023]})
    long = b"a" * _LARGEST_FIELD
    for field in (
        *(b"host", b"authorization", b"x-request-id", b"accept", b"origin", b"cookie"),
        *(b"content-type", b"expect", b"user-agent", b"traceparent"),
    ):
        yield Dear(f"{field.decode()}: 60,000 letters", fields={field: long})
    yield Dear(
        "authorization: Bearer, 60,000 letters", fields={b"authorization": b"Bearer " + long}
    )
    yield Dear("host: 20,000 × %41", fields={b"host": b"%41" * 20_000})
    yield Dear("100 fields", fields={b"x-%d" % number: b"y" for number in range(98)})
    post = Dear("", "POST", body=b'{"name":1}')
    for name, key in {
        "60,000 letters": long,
        "60,000 parameters": b'"a"' + b";a" * (_LARGEST_FIELD // 2),
        "60,000 spaces": b'"a";' + b" " * _LARGEST_FIELD,
        "60,000 escapes": b'"' + b'\\"' * (_LARGEST_FIELD // 2),
        "9 long parameters": b'"a"' + (b";" + b"a" * 32 + b"=" + b"1" * 64) * 9 + b"!",
    }.items():
        yield post._replace(name=f"idempotency-key: {name}", fields={b"idempotency-key": key})


def _of_paths() -> Iterator[Dear]:
    for name, path in {
        "60,000 slashes": "/v1" + "/" * _LARGEST_FIELD,
        "20,000 × %25": "/v1/" + "%25" * (_LARGEST_FIELD // 3),
        "an id of 60,000 digits": "/v1/pets/" + "1" * _LARGEST_FIELD,
    }.items():
        yield Dear(f"path: {name}", path=path)


def _of_bodies() -> Iterator[Dear]:
    """Yield bodies of nearly 64 KiB, all refused for their name at the latest."""
    for name, value in {
        **{f"[{unit}, …]": _array(unit.encode()) for unit in _UNITS},
        "[[[…]]] of depth 900": _array(b"[" * 900 + b"]" * 900),
        "[[[…]]] of depth 30,000": b"[" * 30_000 + b"]" * 30_000,
        "9…": b"9" * _LARGEST_BODY,
        "1.9…": b"1." + b"9" * _LARGEST_BODY,
        "1e999999999": b"1e999999999",
        "spaces": b" " * _LARGEST_BODY + b"1",
        "letters": b'"' + b"a" * _LARGEST_BODY + b'"',
        "a string of \\u0041": b'"' + b"\\u0041" * (_LARGEST_BODY // 6) + b'"',
        "a string of \\n": b'"' + b"\\n" * (_LARGEST_BODY // 2) + b'"',
        "a string of ä": b'"' + "ä".encode() * (_LARGEST_BODY // 2) + b'"',
    }.items():
        yield _post(f"ignored: {name}", b'{"name":1,"categoryId":1,"x":%b}' % value)
        yield _post(f"name: {name}", b'{"categoryId":1,"name":%b}' % value)
    for name, number in {
        "1.0…": b"1." + b"0" * _LARGEST_BODY + b"1",
        "10…e-…": b"1" + b"0" * 60_000 + b"e-60001",
        "-9….": b"-" + b"9" * _LARGEST_BODY + b".0",
    }.items():
        yield _post(f"categoryId: {name}", b'{"name":"a","categoryId":%b}' % number)
    for name, members in {
        "6,500 members": b",".join(b'"%04x":1' % number for number in range(6_500)),
        "10,000 × one member": b",".join([b'"a":1'] * 10_000),
        "5,900 × name": b",".join([b'"name":1'] * 5_900),
        "3,900 × categoryId": b",".join([b'"categoryId":1.5'] * 3_900),
    }.items():
        yield _post(name, b'{"name":1,"categoryId":1,%b}' % members)
    status = b" - at `$." * 7_000
    yield _post("a status like a message", b'{"name":"a","categoryId":1,"status":"%b"}' % status)
    floats = _array(b"1.5")
    yield Dear("floats in a merge patch", "PATCH", body=b'{"x":%b,"name":1}' % floats, path=_PET)
    yield _post("floats in an order", b'{"x":%b,"petId":1.5}' % floats, "/v1/store/orders")
    for item in (b'"pets:read"', b'"a"', b"1.5"):
        body = b'{"name":"a","plan":"none","scopes":%b}' % _array(item)
        yield _post(f"scopes: [{item.decode()}, …]", body, "/v1/keys")


_PET = "/v1/pets/1"
_UNITS = ("1.5", "1", "1e9", "-1", "true", "[]", "{}", '"a"', '""', "9223372036854775807")


def _array(unit: bytes) -> bytes:
    return b"[" + b",".join([unit] * (_LARGEST_BODY // (len(unit) + 1))) + b"]"


def _post(name: str, body: bytes, path: str = "/v1/pets") -> Dear:
    return Dear(f"body: {name}", "POST", path, body=body)


async def _nothing() -> bytes:
    return b""


if __name__ == "__main__":
    main()
