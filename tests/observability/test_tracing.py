"""Traces of requests, as a collector receives them."""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from petstore import __version__
from petstore.observability.tracing import Tracing
from petstore.settings import SettingError, Settings
from support.manual_clock import ManualClock
from support.observed import Collector, ObservedService, attributes, collecting, observed_service
from support.postgres import PostgresServer
from support.process import StartServer, free_port
from support.waiting import eventually

pytestmark = pytest.mark.anyio

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


@pytest.fixture(autouse=True)
def _level_of_the_library() -> Iterator[None]:
    """Leave the logging of other tests as it was."""
    level = logging.getLogger("opentelemetry").level
    yield
    logging.getLogger("opentelemetry").setLevel(level)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


def span_of(collector: Collector, request_id: str) -> Span:
    (span,) = [
        each
        for each in collector.spans
        if attributes(each).get("petstore.request_id") == request_id
    ]
    return span


def parts_of(collector: Collector, span: Span) -> list[Span]:
    """Return the spans within a span, in the order in which they began."""
    parts = [part for part in collector.spans if part.parent_span_id == span.span_id]
    return sorted(parts, key=lambda part: part.start_time_unix_nano)


def resource_of(collector: Collector) -> dict[str, str]:
    resource = collector.requests[0].resource_spans[0].resource
    return {pair.key: pair.value.string_value for pair in resource.attributes}


Observed: TypeAlias = Callable[[], AbstractAsyncContextManager[ObservedService]]


@pytest.fixture
def observed(database: Path, clock: ManualClock, collector: Collector) -> Observed:
    return lambda: observed_service(database, clock, collector.endpoint)


async def test_a_request_is_a_span_with_the_http_semantic_conventions(
    observed: Observed, collector: Collector
) -> None:
    async with observed() as service:
        send, headers = service.client.request, await service.issue()
        for method, path, name in (
            ("GET", "/v1/pets/77?api_key=hidden", "absent"),
            ("FETCH", "/v1/nothing", "unknown"),
            ("GET", "/readyz", "check"),
        ):
            await send(method, path, headers=headers | {"X-Request-Id": name})
    span = span_of(collector, "absent")
    assert span.name == "GET /v1/pets/{petId}"
    assert span.kind == Span.SPAN_KIND_SERVER
    assert attributes(span) == {
        "http.request.method": "GET",
        "http.route": "/v1/pets/{petId}",
        "http.response.status_code": 404,
        "url.scheme": "http",
        "petstore.request_id": "absent",
    }
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert span.parent_span_id == b""
    unknown = span_of(collector, "unknown")
    assert unknown.name == "HTTP"
    assert attributes(unknown)["http.request.method"] == "_OTHER"
    assert "http.route" not in attributes(unknown)
    assert parts_of(collector, span_of(collector, "check")) == []
    named = resource_of(collector)
    assert (named["service.name"], named["service.version"]) == ("petstore", __version__)


async def test_a_request_continues_the_trace_of_its_client_if_that_is_valid_and_sampled(
    observed: Observed, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.version=7,deployment=blue")
    valid = f"00-{TRACE}-{PARENT}-01"
    async with observed() as service:
        for name, parents in (
            ("valid", [valid]),
            ("nonsense", ["nonsense"]),
            ("two", [valid, valid]),
            ("binary", ["\xff"]),
            ("unsampled", [f"00-{TRACE}-{PARENT}-00"]),
        ):
            headers = [(b"traceparent", parent.encode("latin-1")) for parent in parents]
            headers += [(b"tracestate", b"shop=1"), (b"x-request-id", name.encode())]
            response = await service.client.get("/healthz", headers=headers)
            assert response.status_code == 200
    named = {"service.name": "shop", "service.version": "7", "deployment": "blue"}
    assert resource_of(collector).items() >= named.items()
    assert len(collector.spans) == 4  # none of them is unsampled
    span = span_of(collector, "valid")
    assert span.name == "GET /healthz"
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert span.trace_state == "shop=1"
    for name in ("nonsense", "two", "binary"):
        assert span_of(collector, name).trace_id.hex() != TRACE


async def test_reads_and_writes_are_child_spans_of_their_request_without_token_or_query(
    observed: Observed, collector: Collector
) -> None:
    pet = {"name": "Bella", "categoryId": 1}
    async with observed() as service:
        headers = await service.issue()
        token = headers["Authorization"][7:]

        async def add(name: str) -> None:
            named = headers | {"X-Request-Id": name}
            added = await service.client.post("/v1/pets?a=hidden", headers=named, json=pet)
            assert added.status_code == 201

        await add("first")
        await asyncio.gather(add("second"), add("third"))
        await service.client.get(f"/v1/{token}?a=hidden", headers=headers)
    inserts = ["insert_pet", "queue_pet_words", "insert_events"]
    for name in ("first", "second", "third"):
        *reads, write = parts_of(collector, span_of(collector, name))
        assert (write.name, attributes(write)) == ("store write", {"db.system.name": "sqlite"})
        queries = parts_of(collector, write)
        assert [query.name for query in queries] == inserts
        for query in (*reads, *queries):
            expected = {"db.system.name": "sqlite", "db.query.summary": query.name}
            assert attributes(query) == expected
        first_reads = ["select_key_by_digest", "select_rate_limit"] if name == "first" else []
        assert [read.name for read in reads] == first_reads
    # Background tasks belong to no trace.
    assert len(collector.spans) == 4 + 2 + 3 * 4
    sent = b"".join(request.SerializeToString() for request in collector.requests)
    assert b"createPet" not in sent  # the route is
    assert b"/v1/pets" in sent
    for secret in (token.encode(), b"hidden", b"Bella"):
        assert secret not in sent


async def test_a_failing_database_marks_both_spans_as_errors(
    database: Path, observed: Observed, collector: Collector
) -> None:
    async with observed() as service:
        headers = await service.issue()
        await service.client.get("/v1/usage", headers=headers)
        database.rename(database.with_suffix(".away"))
        pet = {"name": "Bella", "categoryId": 1}
        failed = await service.client.post("/v1/pets", headers=headers, json=pet)
        assert failed.status_code == 503
    (span,) = [span for span in collector.spans if span.name == "POST /v1/pets"]
    (part,) = [part for part in collector.spans if part.name == "store write"]
    assert attributes(span)["error.type"] == "503"
    assert attributes(part) == {"db.system.name": "sqlite", "error.type": "service_unavailable"}
    assert span.status.code == part.status.code == Status.STATUS_CODE_ERROR


async def test_without_a_collector_requests_succeed_and_the_log_says_so_once(
    database: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    gone = f"http://127.0.0.1:{port}/v1/traces"
    async with observed_service(database, clock, gone) as service:

        async def is_said(what: str) -> bool:
            assert (await service.client.get("/healthz")).status_code == 200
            return f"the collector of traces is {what}" in caplog.text

        await eventually(lambda: is_said("out of reach"))
        with collecting(port) as collector:
            await eventually(lambda: is_said("back"))
            assert collector.spans != []
    assert caplog.text.count("collector") == 2


def test_a_running_service_exports_traces_until_it_stops(
    postgres: PostgresServer, start: StartServer, collector: Collector
) -> None:
    url = postgres.new_store()
    service = start("--database", url, "--trace-endpoint", collector.endpoint)
    service.database = url
    headers = {"Authorization": f"Bearer {service.issue()}"}
    response = httpx.get(f"{service.url}/v1/categories", headers=headers)
    assert response.status_code == 200
    assert service.stop() == 0
    (span,) = [span for span in collector.spans if span.name == "GET /v1/categories"]
    assert f'"trace":"{span.trace_id.hex()}"' in service.log_path.read_text()
    named_parts = {
        (part.name, attributes(part)["db.system.name"]) for part in parts_of(collector, span)
    }
    assert named_parts >= {
        ("select_key_by_digest", "postgresql"),
        ("select_categories", "postgresql"),
    }


def test_an_invalid_variable_is_logged_but_no_header_of_the_collector(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "bogus")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "geheim")
    Tracing("http://127.0.0.1:1/v1/traces", __version__).close()
    assert "recognize sampler bogus" in caplog.text
    assert "geheim" not in caplog.text


@pytest.mark.parametrize("missing", ["opentelemetry", "opentelemetry.exporter.otlp.proto.http"])
def test_tracing_without_its_extra_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for name in list(sys.modules):
        if name.startswith("opentelemetry"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SettingError, match=r"the extra \[tracing\] is not installed"):
        Settings(trace_endpoint="http://127.0.0.1:4318/v1/traces").check()
