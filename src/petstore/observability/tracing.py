"""A span for each request, and for each query and each call of Redis in it, sent by OTLP over HTTP.

A thread sends spans in batches. If the collector does not take them they are dropped, and no
request waits. Spans hold no tokens, queries, bodies or paths beyond the route.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import (
    Span,
    SpanKind,
    StatusCode,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from petstore.api.application import RequestObserver, Servable
from petstore.databases.contract import Row, Statement, Store, T, Unit
from petstore.domain.api_keys import ApiKey
from petstore.errors import Unavailable
from petstore.http.messages import Receive, Request, Response
from petstore.logs import RequestLine
from petstore.observability.measured import watch
from petstore.observability.metrics import METHODS
from petstore.rate_limits.contract import Decision, RateLimiter

_LOG = logging.getLogger(__name__)
_TRACE_CONTEXT = (b"traceparent", b"tracestate")
_SERVER_ERROR = 500
_BATCH_SECONDS = 1
_EXPORT_SECONDS = 5
_LAST_EXPORT_SECONDS = 0.3
_REDIS = {"db.system.name": "redis"}

_propagator = TraceContextTextMapPropagator()


class Tracing:
    """Makes spans of this ``version`` and sends them to the collector at ``endpoint``."""

    def __init__(self, endpoint: str, version: str) -> None:
        # It would log every batch that fails; ``_Exporter`` does so once.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        resource = Resource.create({"service.name": "petstore", "service.version": version})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = _Exporter(endpoint, timeout=_EXPORT_SECONDS)
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, schedule_delay_millis=_BATCH_SECONDS * 1000)
        )
        tracer = self._provider.get_tracer("petstore", version)
        self.start_span = tracer.start_span
        self.span = partial(
            tracer.start_as_current_span, record_exception=False, set_status_on_exception=False
        )

    def trace_application(self, app: Servable) -> Servable:
        """Return ``app`` so that each request is a span."""
        return _TracedApplication(app, self)

    def trace_requests(self, observer: RequestObserver) -> RequestObserver:
        """Return ``observer`` so that the span of a request gets its outcome."""
        return _TracedRequests(observer, self)

    def trace_store(self, store: Store, system: str) -> Store:
        """Return ``store``, a database of this ``system``, so that queries are spans."""
        return _TracedStore(store, system, self)

    def trace_limiter(self, limiter: RateLimiter) -> RateLimiter:
        """Return ``limiter``, one in Redis, so that its calls of Redis are spans."""
        return _TracedLimiter(limiter, self)

    @contextmanager
    def client_span(self, name: str, attributes: Mapping[str, str]) -> Iterator[None]:
        """Make a call of another system a span, within the span of the request."""
        if not get_current_span().is_recording():
            yield
            return
        with self.span(name, kind=SpanKind.CLIENT, attributes=attributes) as span:
            try:
                yield
            except Unavailable as error:
                _fail(span, error.code)
                raise

    def close(self) -> None:
        """Send the spans that are left, if the collector takes them at once."""
        # The library would wait for half a minute.
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(_LAST_EXPORT_SECONDS)


class _TracedApplication:
    def __init__(self, app: Servable, tracing: Tracing) -> None:
        self._app = app
        self._tracing = tracing
        self.lifespan, self.hand_over, self.retire = app.lifespan, app.hand_over, app.retire

    async def __call__(self, request: Request, receive: Receive) -> Response:
        # Several of one name make an invalid one, as they should.
        trace_context = {
            name.decode("ascii"): request.fields.get(name, b"").decode("latin-1")
            for name in _TRACE_CONTEXT
        }
        is_known = request.method in METHODS
        with self._tracing.span(
            request.method if is_known else "HTTP",
            _propagator.extract(trace_context),
            SpanKind.SERVER,
            {
                "http.request.method": request.method if is_known else "_OTHER",
                "url.scheme": "http",
            },
        ):
            return await self._app(request, receive)


class _TracedRequests:
    def __init__(self, observer: RequestObserver, tracing: Tracing) -> None:
        self._observer = observer
        self._tracing = tracing

    def add(self, line: RequestLine) -> None:
        self._observer.add(line)
        span = get_current_span()
        if span.is_recording():
            _describe(span, line)

    def close(self) -> None:
        self._tracing.close()
        self._observer.close()


class _TracedStore:
    def __init__(self, store: Store, system: str, tracing: Tracing) -> None:
        self._store = store
        self._system = system
        self._tracing = tracing
        self.migrate, self.open, self.close = store.migrate, store.open, store.close
        self.check, self.version = store.check, store.version

    async def read(self, statement: Statement) -> list[Row]:
        with self._tracing.client_span(statement.name, self._attributes(statement)):
            return await self._store.read(statement)

    async def write(self, unit: Unit[T]) -> T:
        with self._tracing.client_span("store write", {"db.system.name": self._system}):
            return await self._store.write(self._traced(unit))

    def _traced(self, unit: Unit[T]) -> Unit[T]:
        """Return ``unit`` so that its statements are spans; the task of another may run them."""
        parent = get_current_span()
        if not parent.is_recording():
            return unit
        context = set_span_in_context(parent)
        start = self._tracing.start_span

        def begin(statement: Statement) -> Callable[[], None]:
            attributes = self._attributes(statement)
            return start(statement.name, context, SpanKind.CLIENT, attributes).end

        return watch(unit, begin)

    def _attributes(self, statement: Statement) -> dict[str, str]:
        # By the conventions of OpenTelemetry for databases.
        return {"db.system.name": self._system, "db.query.summary": statement.name}


class _TracedLimiter:
    def __init__(self, limiter: RateLimiter, tracing: Tracing) -> None:
        self._limiter = limiter
        self._tracing = tracing
        self.look, self.look_address = limiter.look, limiter.look_address
        self.heartbeat, self.save, self.close = limiter.heartbeat, limiter.save, limiter.close

    async def take(self, key: ApiKey) -> Decision:
        with self._tracing.client_span("limiter take", _REDIS):
            return await self._limiter.take(key)

    async def charge(self, key: ApiKey, requests: int) -> Decision:
        with self._tracing.client_span("limiter charge", _REDIS):
            return await self._limiter.charge(key, requests)

    async def take_address(self, address: str) -> Decision:
        with self._tracing.client_span("limiter take", _REDIS):
            return await self._limiter.take_address(address)


class _Exporter(OTLPSpanExporter):
    """Logs once that the collector no longer takes spans, and once that it does again."""

    _is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        is_failing = result is not SpanExportResult.SUCCESS
        if is_failing != self._is_failing:
            state = "out of reach: traces are dropped" if is_failing else "back"
            _LOG.warning("the collector of traces is %s", state)
        self._is_failing = is_failing
        return result


def _describe(span: Span, line: RequestLine) -> None:
    """Set the outcome, by the conventions of OpenTelemetry for HTTP servers."""
    if line.route is not None:
        span.update_name(f"{line.method if line.method in METHODS else 'HTTP'} {line.route}")
        span.set_attribute("http.route", line.route)
    span.set_attribute("http.response.status_code", line.status)
    span.set_attribute("petstore.request_id", line.request)
    if line.status >= _SERVER_ERROR:
        _fail(span, str(line.status))


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
