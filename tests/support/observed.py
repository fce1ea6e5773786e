"""The service in this process, with metrics on a port and with traces."""

import asyncio
import io
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import anyio.to_thread
import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from prometheus_client.parser import text_string_to_metric_families

from petstore.app import create_registry, observers_of
from petstore.databases.contract import Store
from petstore.observability.registry import Registry, share_metrics
from petstore.settings import Settings
from support.keys import issue
from support.manual_clock import ManualClock
from support.odd_service import OddService, odd_service, response
from support.service import bare_app
from support.stores import address_of

Samples = dict[str, float]
"""Values by name and labels, as Prometheus writes them: ``petstore_bans_total``."""


def read_metrics(port: int) -> Samples:
    response = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False)
    assert response.status_code == 200, response.text
    return {
        f"{sample.name}{_written(sample.labels)}": sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


@contextmanager
def registry_of_test(worker_id: int = 0, folder: Path | None = None) -> Iterator[Registry]:
    """Give the registry of a worker, perhaps with a folder that other workers share."""
    with socket.create_server(("127.0.0.1", 0)) as listener, share_metrics(listener) as shared:
        yield create_registry(shared._replace(folder=folder or shared.folder, worker_id=worker_id))


def port_of(registry: Registry) -> int:
    port: int = vars(registry)["_listener"].getsockname()[1]
    return port


@asynccontextmanager
async def read_from(registry: Registry) -> AsyncIterator[Samples]:
    """Run a registry until the block ends, and give the samples that it has at its start."""
    async with registry.running():
        yield await asyncio.to_thread(read_metrics, port_of(registry))


def _written(labels: dict[str, str]) -> str:
    listed = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
    return f"{{{listed}}}" if listed else ""


@dataclass
class ObservedService:
    client: httpx.AsyncClient
    store: Store
    clock: ManualClock
    metrics_port: int
    log: io.BytesIO

    async def issue(self, plan: str = "enterprise", **wanted: Any) -> dict[str, str]:
        """Issue a key and return the header field that has it."""
        issued = await issue(self.store, self.clock, plan=plan, **wanted)
        return {"Authorization": f"Bearer {issued.token}"}

    async def metrics(self) -> Samples:
        return await anyio.to_thread.run_sync(read_metrics, self.metrics_port)


@asynccontextmanager
async def observed_service(
    database: str | Path, clock: ManualClock, trace_endpoint: str = "", **options: Any
) -> AsyncIterator[ObservedService]:
    with registry_of_test() as registry:
        options |= {"trace_endpoint": trace_endpoint}
        settings = Settings(database=address_of(database), **options)
        bare = bare_app(database, clock, observers=observers_of(settings, registry), **options)
        async with bare.app.lifespan(), bare.client:
            yield ObservedService(bare.client, bare.store, clock, port_of(registry), bare.log)


class Collector(NamedTuple):
    service: OddService

    @property
    def endpoint(self) -> str:
        return f"{self.service.url}/v1/traces"

    @property
    def requests(self) -> list[ExportTraceServiceRequest]:
        return [ExportTraceServiceRequest.FromString(asked.body) for asked in self.service.asked]

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def collecting(port: int = 0) -> Iterator[Collector]:
    taken = response(200, b"", Content_Type="application/x-protobuf")
    with odd_service(then=taken, port=port) as service:
        yield Collector(service)


def attributes(span: Span) -> dict[str, Any]:
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes
    }
