"""A span for each request and for what it asks of the database and Redis, sent by OTLP over HTTP.

Spans are sent by a thread, in batches. If the collector does not take them they are dropped, and
nobody waits. They hold no tokens, queries, bodies or paths beyond the route.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import (
    Span,
    SpanKind,
    StatusCode,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from petstore.api.application import Application, Servable
from petstore.api.messages import Receive, Request, Response
from petstore.databases.contract import Row, Statement, Store, T, Unit
from petstore.domain.api_keys import ApiKey
from petstore.errors import Unavailable
from petstore.observability.figures import METHODS
from petstore.observability.no_tracing import NoTracing
from petstore.observability.observed_units import observed
from petstore.rate_limits.contract import Decision, RateLimiter

_LOG = logging.getLogger(__name__)
_CARRIED = (b"traceparent", b"tracestate")
_SERVER_ERROR = 500
_BATCH_SECONDS = 1
_EXPORT_SECONDS = 5
_LAST_EXPORT_SECONDS = 0.3
_REDIS = {"db.system.name": "redis"}

_propagator = TraceContextTextMapPropagator()


class Tracing(NoTracing):
    """Makes spans of this ``version`` and sends them to the collector at ``endpoint``."""

    def __init__(self, endpoint: str, version: str) -> None:
        # It would log every batch that fails; ``_Exporter`` does so once.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        resource = Resource.create({"service.name": "petstore", "service.version": version})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = _Exporter(OTLPSpanExporter(endpoint, timeout=_EXPORT_SECONDS))
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, schedule_delay_millis=_BATCH_SECONDS * 1000)
        )
        self._tracer = self._provider.get_tracer("petstore", version)

    def of_application(self, app: Application) -> Servable:
        """Return ``app`` so that each request is a span."""
        return _TracedApplication(app, self)

    def of_store(self, store: Store, system: str) -> Store:
        """Return ``store``, a database of this ``system``, so that its reads and writes are too."""
        return _TracedStore(store, system, self)

    def of_limiter(self, limiter: RateLimiter) -> RateLimiter:
        """Return ``limiter``, one in Redis, so that its judgements are too."""
        return _TracedLimiter(limiter, self)

    @contextmanager
    def of_request(self, request: Request, route: str | None) -> Iterator[Span]:
        """Measure a request, as a part of the trace that its caller began if there is one."""
        method = request.method if request.method in METHODS else None
        # Several of one name make an invalid one, as they should.
        carried = {
            name.decode("ascii"): request.fields.get(name, b"").decode("latin-1")
            for name in _CARRIED
        }
        with self._tracer.start_as_current_span(
            " ".join(filter(None, (method or "HTTP", route))),
            context=_propagator.extract(carried),
            kind=SpanKind.SERVER,
            attributes={
                "http.request.method": method or "_OTHER",
                "url.scheme": "http",
                **({} if route is None else {"http.route": route}),
            },
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield span

    @contextmanager
    def of_trip(self, name: str, attributes: Mapping[str, str]) -> Iterator[None]:
        """Measure a trip to another system as a part of the request under way."""
        if not get_current_span().is_recording():
            yield
            return
        with self._tracer.start_as_current_span(
            name,
            kind=SpanKind.CLIENT,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except Unavailable as error:
                _fail(span, error.code)
                raise

    def of_unit(self, unit: Unit[T], system: str) -> Unit[T]:
        """Return ``unit`` so that its statements are measured as parts of what is under way now.

        They may run in the task of another request.
        """
        parent = get_current_span()
        if not parent.is_recording():
            return unit
        context = set_span_in_context(parent)

        def begin(statement: Statement) -> Callable[[], None]:
            attributes = _query_attributes(statement, system)
            return self._tracer.start_span(statement.name, context, SpanKind.CLIENT, attributes).end

        return observed(unit, begin)

    async def close(self) -> None:
        """Send what is left, if the collector takes it at once."""
        # The library would wait for half a minute.
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, _LAST_EXPORT_SECONDS)


class _TracedApplication:
    def __init__(self, app: Application, tracing: Tracing) -> None:
        self._app = app
        self._tracing = tracing
        self.hand_over, self.retire = app.hand_over, app.retire

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        try:
            async with self._app.lifespan():
                yield
        finally:
            await self._tracing.close()

    async def __call__(self, request: Request, receive: Receive) -> Response:
        route = self._app.route_of(request.method, request.path)
        with self._tracing.of_request(request, route) as span:
            answer = await self._app(request, receive)
            if span.is_recording():
                _describe(span, answer)
        return answer


class _TracedStore:
    def __init__(self, store: Store, system: str, tracing: Tracing) -> None:
        self._store = store
        self._system = system
        self._tracing = tracing
        self.migrate, self.open, self.close = store.migrate, store.open, store.close
        self.check, self.version = store.check, store.version

    async def read(self, statement: Statement) -> list[Row]:
        attributes = _query_attributes(statement, self._system)
        with self._tracing.of_trip(statement.name, attributes):
            return await self._store.read(statement)

    async def write(self, unit: Unit[T]) -> T:
        with self._tracing.of_trip("store write", {"db.system.name": self._system}):
            return await self._store.write(self._tracing.of_unit(unit, self._system))


class _TracedLimiter:
    def __init__(self, limiter: RateLimiter, tracing: Tracing) -> None:
        self._limiter = limiter
        self._tracing = tracing
        self.look, self.look_address = limiter.look, limiter.look_address
        self.heartbeat, self.save, self.close = limiter.heartbeat, limiter.save, limiter.close

    async def take(self, key: ApiKey) -> Decision:
        with self._tracing.of_trip("limiter take", _REDIS):
            return await self._limiter.take(key)

    async def take_address(self, address: str) -> Decision:
        with self._tracing.of_trip("limiter take", _REDIS):
            return await self._limiter.take_address(address)


class _Exporter(SpanExporter):
    """Says once when the collector no longer takes spans, and once when it does again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        failing = result is not SpanExportResult.SUCCESS
        if failing and not self._failing:
            _LOG.warning("the collector of traces is out of reach: they are dropped")
        elif self._failing and not failing:
            _LOG.warning("the collector of traces is back")
        self._failing = failing
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


def _query_attributes(statement: Statement, system: str) -> dict[str, str]:
    """Return the attributes of a statement, by the conventions of OpenTelemetry for databases."""
    return {"db.system.name": system, "db.query.summary": statement.name}


def _describe(span: Span, answer: Response) -> None:
    """Note the outcome, by the conventions of OpenTelemetry for HTTP servers."""
    span.set_attribute("http.response.status_code", answer.status)
    head = b"\r\n".join((b"", *answer.headers, b""))
    request_id = head.partition(b"\r\nx-request-id: ")[2].partition(b"\r\n")[0]
    span.set_attribute("petstore.request_id", request_id.decode("ascii"))
    if answer.status >= _SERVER_ERROR:
        _fail(span, str(answer.status))


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
