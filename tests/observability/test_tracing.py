"""Traces of requests, as a collector receives them."""

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
from petstore.app import check_tracing, observers_of
from petstore.settings import SettingError, Settings
from support.manual_clock import ManualClock
from support.observed import Collector, ObservedService, attributes, collecting, observed_service
from support.postgres import PostgresServer
from support.process import StartServer, free_port
from support.redis_server import redis_server
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


def server_span(collector: Collector) -> Span:
    (span,) = [span for span in collector.spans if span.kind == Span.SPAN_KIND_SERVER]
    return span


def parts_of(collector: Collector, span: Span) -> list[Span]:
    """Return the spans within a span, in the order in which they began."""
    parts = [part for part in collector.spans if part.parent_span_id == span.span_id]
    return sorted(parts, key=lambda part: part.start_time_unix_nano)


Observed: TypeAlias = Callable[[], AbstractAsyncContextManager[ObservedService]]


@pytest.fixture
def observed(database: Path, clock: ManualClock, collector: Collector) -> Observed:
    return lambda: observed_service(database, clock, collector.endpoint)


async def test_a_request_is_a_span_with_the_http_semantic_conventions(
    observed: Observed, collector: Collector
) -> None:
    async with observed() as service:
        headers = await service.issue() | {"X-Request-Id": "wanted"}
        await service.client.get("/v1/pets/77?api_key=hidden", headers=headers)
    span = server_span(collector)
    assert span.name == "GET /v1/pets/{petId}"
    assert attributes(span) == {
        "http.request.method": "GET",
        "http.route": "/v1/pets/{petId}",
        "http.response.status_code": 404,
        "url.scheme": "http",
        "petstore.request_id": "wanted",
    }
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert span.parent_span_id == b""
    ((resource,),) = (
        [each.resource for each in request.resource_spans] for request in collector.requests
    )
    named = {pair.key: pair.value.string_value for pair in resource.attributes}
    assert (named["service.name"], named["service.version"]) == ("petstore", __version__)


async def test_the_environment_names_the_service(
    observed: Observed, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.version=7,deployment=blue")
    async with observed() as service:
        await service.client.get("/v1/pets/77", headers=await service.issue())
    resource = collector.requests[0].resource_spans[0].resource
    named = {pair.key: pair.value.string_value for pair in resource.attributes}
    assert (
        named.items()
        >= {
            "service.name": "shop",
            "service.version": "7",
            "deployment": "blue",
        }.items()
    )


async def test_a_trace_contains_no_token_and_no_query(
    observed: Observed, collector: Collector
) -> None:
    async with observed() as service:
        headers = await service.issue()
        pet = {"name": "Bella", "categoryId": 1}
        await service.client.post("/v1/pets?a=hidden", headers=headers, json=pet)
        await service.client.get(f"/v1/{headers['Authorization'][7:]}?a=hidden", headers=headers)
    sent = b"".join(request.SerializeToString() for request in collector.requests)
    assert b"createPet" not in sent  # the route is
    assert b"/v1/pets" in sent
    for secret in (headers["Authorization"][7:].encode(), b"hidden", b"Bella"):
        assert secret not in sent


async def test_a_request_continues_the_trace_of_its_client(
    observed: Observed, collector: Collector
) -> None:
    async with observed() as service:
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "shop=1"}
        await service.client.get("/healthz", headers=headers)
    span = server_span(collector)
    assert span.name == "GET /healthz"
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert span.trace_state == "shop=1"


@pytest.mark.parametrize(
    "parents",
    [["nonsense"], [f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-01"], ["\xff"]],
)
async def test_an_invalid_traceparent_starts_a_new_trace(
    observed: Observed, collector: Collector, parents: list[str]
) -> None:
    async with observed() as service:
        headers = [(b"traceparent", parent.encode("latin-1")) for parent in parents]
        await service.client.get("/healthz", headers=headers)
    assert server_span(collector).trace_id.hex() != TRACE


async def test_an_unsampled_traceparent_is_not_traced(
    observed: Observed, collector: Collector
) -> None:
    async with observed() as service:
        headers = await service.issue() | {"traceparent": f"00-{TRACE}-{PARENT}-00"}
        response = await service.client.get("/v1/pets", headers=headers)
        assert response.status_code == 200
    assert collector.spans == []


async def test_reads_and_writes_are_child_spans_of_their_request(
    observed: Observed, collector: Collector
) -> None:
    async with observed() as service:
        headers = await service.issue()
        pet = {"name": "Bella", "categoryId": 1}
        added = await service.client.post("/v1/pets", headers=headers, json=pet)
        assert added.status_code == 201
    span = server_span(collector)
    *reads, write = parts_of(collector, span)
    queries = [*reads, *parts_of(collector, write)]
    assert (write.name, attributes(write)) == ("store write", {"db.system.name": "sqlite"})
    assert [(query.name, attributes(query)) for query in queries] == [
        (name, {"db.system.name": "sqlite", "db.query.summary": name})
        for name in (
            "select_key_by_digest",
            "select_rate_limit",
            "insert_pet",
            "insert_pet_words",
            "insert_events",
        )
    ]
    # Background tasks belong to no trace.
    assert len(collector.spans) == 2 + len(queries)


async def test_a_check_of_the_database_is_not_a_span(
    observed: Observed, collector: Collector
) -> None:
    async with observed() as service:
        assert (await service.client.get("/readyz")).status_code == 200
    assert [span.name for span in collector.spans] == ["GET /readyz"]


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
    assert attributes(part) == {
        "db.system.name": "sqlite",
        "error.type": "service_unavailable",
    }
    assert span.status.code == part.status.code == Status.STATUS_CODE_ERROR


async def test_an_unknown_method_is_not_recorded(observed: Observed, collector: Collector) -> None:
    async with observed() as service:
        await service.client.request("FETCH", "/v1/nothing")
    span = server_span(collector)
    assert span.name == "HTTP"
    assert attributes(span)["http.request.method"] == "_OTHER"
    assert "http.route" not in attributes(span)


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
    with redis_server() as redis:
        options = ("--database", url, "--redis", redis.url)
        service = start(*options, "--trace-endpoint", collector.endpoint)
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


@pytest.mark.parametrize(
    "variable",
    [
        "OTEL_BSP_SCHEDULE_DELAY=x",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=9999",
        "OTEL_TRACES_SAMPLER=bogus",
        "OTEL_EXPORTER_OTLP_COMPRESSION=zip",
        "OTEL_EXPORTER_OTLP_HEADERS=geheim",
        "OTEL_TRACES_EXPORTER=console",
    ],
)
def test_an_invalid_variable_is_refused_in_one_line_without_its_value(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(*variable.split("="))
    with pytest.raises(SettingError, match=r"^trace-endpoint: a variable of [^\n]*$") as refusal:
        check_tracing(Settings(trace_endpoint="http://127.0.0.1:1/v1/traces"))
    assert "geheim" not in str(refusal.value)


def test_the_environment_turns_traces_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    settings = Settings(trace_endpoint="http://127.0.0.1:1/v1/traces")
    check_tracing(settings)
    assert observers_of(settings, None) == []


@pytest.mark.parametrize("endpoint", ["collector:4318", "ftp://x", "http://"])
def test_an_unsupported_endpoint_is_refused(endpoint: str) -> None:
    with pytest.raises(SettingError, match="trace-endpoint: expected an address such as http"):
        Settings(trace_endpoint=endpoint).check()


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
