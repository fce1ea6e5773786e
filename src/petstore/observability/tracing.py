"""A span for each request, and for each query in it, sent by OTLP over HTTP.

A thread sends spans in batches. If the collector does not take them they are dropped, and no
request waits. Spans hold no tokens, queries, bodies or paths beyond the route.
"""

import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Span, SpanKind, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from petstore.databases.contract import Statement, Store
from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from petstore.http.messages import Request
from petstore.interface.operation import Services
from petstore.logs import RequestLine
from petstore.observability.hooks import End
from petstore.observability.metrics import METHODS

_LOG = logging.getLogger(__name__)
_TRACE_CONTEXT = (b"traceparent", b"tracestate")
_SERVER_ERROR = 500
_BATCH_SECONDS = 1
_EXPORT_SECONDS = 5
_LAST_EXPORT_SECONDS = 0.3

_propagator = TraceContextTextMapPropagator()


class Tracing:
    """Makes spans of this ``version`` and sends them to the collector at ``endpoint``."""

    def __init__(self, endpoint: str, version: str) -> None:
        # Its warning about an invalid header has the value, which may be a key of the collector.
        logging.getLogger("opentelemetry.util.re").setLevel(logging.CRITICAL)
        ours = Resource.create({"service.name": "petstore", "service.version": version})
        resource = ours.merge(OTELResourceDetector().detect())  # the environment wins
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = _Exporter(endpoint, timeout=_EXPORT_SECONDS)
        delay = None if "OTEL_BSP_SCHEDULE_DELAY" in os.environ else _BATCH_SECONDS * 1000
        self._provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=delay))
        self._start = self._provider.get_tracer("petstore", version).start_span
        # It would log every batch that fails; ``_Exporter`` does so once.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)

    def requested(self, request: Request) -> None:
        """Begin the span of a request. It is current in the task of the request."""
        # Several of one name make an invalid one, as they should.
        trace_context = {
            name.decode("ascii"): request.fields.get(name, b"").decode("latin-1")
            for name in _TRACE_CONTEXT
        }
        is_known = request.method in METHODS
        span = self._start(
            request.method if is_known else "HTTP",
            _propagator.extract(trace_context),
            SpanKind.SERVER,
            {"http.request.method": request.method if is_known else "_OTHER", "url.scheme": "http"},
        )
        attach(set_span_in_context(span))

    def responded(self, line: RequestLine) -> None:
        span = get_current_span()
        if (context := span.get_span_context()).is_valid:
            line.trace = f"{context.trace_id:032x}"
        if span.is_recording():  # by the conventions of OpenTelemetry for HTTP servers
            if line.route is not None:
                method = line.method if line.method in METHODS else "HTTP"
                span.update_name(f"{method} {line.route}")
                span.set_attribute("http.route", line.route)
            span.set_attribute("http.response.status_code", line.status)
            span.set_attribute("petstore.request_id", line.request)
            if line.status >= _SERVER_ERROR:
                _fail(span, str(line.status))
        span.end()

    def database(self, store: Store) -> "_StoreSpans":
        return _StoreSpans(self, "sqlite" if isinstance(store, SqliteStore) else "postgresql")

    @asynccontextmanager
    async def running(self, services: Services) -> AsyncIterator[None]:
        del services  # they have no spans of their own
        try:
            yield
        finally:
            self.close()

    def begin(self, name: str, attributes: Mapping[str, str], parent: Context | None = None) -> End:
        """The span is current until its end, but not with a ``parent``: another task may run it."""
        if not get_current_span(parent).is_recording():
            return lambda _: None
        span = self._start(name, parent, SpanKind.CLIENT, attributes)
        token = None if parent else attach(set_span_in_context(span))

        def end(outcome: object) -> None:
            if isinstance(outcome, Unavailable):
                _fail(span, outcome.code)
            if token is not None:
                detach(token)
            span.end()

        return end

    def close(self) -> None:
        """Send the spans that are left, if the collector takes them at once."""
        # The library would wait for half a minute.
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(_LAST_EXPORT_SECONDS)


class _StoreSpans:
    def __init__(self, tracing: Tracing, system: str) -> None:
        self._begin = tracing.begin
        self._system = system

    def read(self, statement: Statement) -> End:
        return self._begin(statement.name, self._attributes(statement))

    def write(self) -> tuple[Callable[[Statement], End], End]:
        end = self._begin("store write", {"db.system.name": self._system})
        parent = get_current()
        return lambda each: self._begin(each.name, self._attributes(each), parent), end

    def _attributes(self, statement: Statement) -> dict[str, str]:
        # By the conventions of OpenTelemetry for databases.
        return {"db.system.name": self._system, "db.query.summary": statement.name}


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


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
