"""The path of a request of the console. Whatever goes wrong becomes a page."""

import logging
from http import HTTPStatus
from urllib.parse import quote

from msgspec.structs import replace

from petstore.api.application import Exchange
from petstore.api.authentication import require_network, require_scope
from petstore.api.bodies import BodyReader
from petstore.api.operation import Services
from petstore.api.parameters import decode_path_id
from petstore.api.rate_limit_headers import LOOKUP, Holder, refusal
from petstore.api.routes import Routes
from petstore.console.cookies import session_secret
from petstore.console.forms import Form, decode_form, decode_urlencoded
from petstore.console.origins import require_same_origin
from petstore.console.page import HOME, Page, Visit, redirect, scope_of
from petstore.console.pages import PAGES
from petstore.console.templates import Templates
from petstore.errors import InternalError, MissingKey, PetstoreError, Unavailable
from petstore.http.messages import Receive, Request, Response
from petstore.rate_limits.minutes import MinuteLimiter
from petstore.store.console_sessions import Session, find_session, touch_session
from petstore.store.events import newest_position

_LOG = logging.getLogger(__name__)
_ASSETS = f"{HOME}/assets/"
_CONSOLE = Holder("console", "this key in the console")


class Console:
    """Serves the pages below ``path``; see ``petstore.api.application.Section``.

    ``limiter`` limits the requests of each key here: they cost nothing of its own limits.
    """

    path = HOME

    def __init__(
        self,
        services: Services,
        bodies: BodyReader,
        limiter: MinuteLimiter[int],
    ) -> None:
        self._services = services
        self._bodies = bodies
        self._limiter = limiter
        self._templates = Templates()
        self._routes = Routes(HOME, PAGES)

    async def __call__(self, exchange: Exchange, receive: Receive) -> Response:
        """Respond to one request, whatever happens."""
        request = exchange.request
        asset = self._templates.assets.get(request.path.removeprefix(_ASSETS))
        if asset is not None:
            exchange.template = request.path
            return asset.response(request)
        visit = Visit(self._services, self._templates, request, exchange.root, exchange.client)
        try:
            return await self._respond(visit, exchange, receive)
        except MissingKey as error:
            return _error_page(visit, error) if visit.is_refresh else _to_sign_in(visit)
        except PetstoreError as error:
            if isinstance(error, Unavailable):
                _LOG.warning("request %s: %s", exchange.request_id, error)
            return _error_page(visit, error)
        except Exception:  # noqa: BLE001 - whatever it is, the person gets a page
            _LOG.exception("request %s failed", exchange.request_id)
            return _error_page(visit, InternalError("the service failed; its log has the reason"))

    async def _respond(self, visit: Visit, exchange: Exchange, receive: Receive) -> Response:
        request = visit.request
        route, visit.parameter = self._routes.find(request.path)
        page = route.operations.get(request.method)
        if page is None or not page.public:
            visit.session = await self._session(visit)
            exchange.key = visit.key
            self._charge(visit)
        if page is None:
            raise route.refusal(request.method, request.path)
        exchange.template = route.template
        if page.method == "POST":
            require_same_origin(request)
        if page.needs is not None:
            require_scope(visit.key, scope_of(page.needs))
        if page.has_id:
            visit.path_id = decode_path_id(visit.parameter)
        visit.form = await self._form(page, request, receive)
        if page.method == "GET" and visit.session is not None and not visit.is_refresh:
            # Read first, so that the script misses no change to what the page shows.
            visit.cursor = (await newest_position(self._services.store)).cursor
        return await page.handler(visit)

    async def _session(self, visit: Visit) -> Session:
        """Return the session of the person.

        A cookie that nobody has is limited by address, as tokens are that nobody has.

        Raises:
            MissingKey: there is no cookie, or its session has ended.
            NetworkNotAllowed: the key may not be used from there.
            RateLimitExceeded: the address has sent too many cookies without a session.
        """
        services, now = self._services, self._services.clock()
        secret = session_secret(visit.request, visit.root)
        session = None
        if secret:
            decision = services.look_ups.take(visit.client)
            if decision.verdict != "admitted":
                raise refusal(decision, LOOKUP)
            session = await find_session(services.store, secret, services.keys.environment, now)
        if session is None:
            msg = "sign in first"
            raise MissingKey(msg)
        services.look_ups.give_back(visit.client)
        if session.key.allowed_networks:
            require_network(session.key, visit.client)
        if session.needs_touch(now) and not visit.is_refresh:
            await services.store.write(touch_session(session, now))
        return session

    def _charge(self, visit: Visit) -> None:
        decision = self._limiter.take(visit.key.id)
        if decision.verdict != "admitted":
            raise refusal(decision, _CONSOLE)

    async def _form(self, page: Page, request: Request, receive: Receive) -> Form:
        if page.method == "GET":
            return decode_urlencoded(request.query)
        body = await self._bodies.read_any(request, receive, page.max_bytes)
        return decode_form(request.fields.get(b"content-type", b"").decode("latin-1"), body)


def _to_sign_in(visit: Visit) -> Response:
    """Send the person to the sign-in page, and from there back to this page."""
    request, target = visit.request, f"{visit.home}/sign-in"
    if request.method == "GET" and request.path != HOME:
        query = f"?{request.query.decode('latin-1')}" if request.query else ""
        target += f"?next={quote(request.path.removeprefix(HOME) + query, safe='')}"
    return redirect(target)


def _error_page(visit: Visit, error: PetstoreError) -> Response:
    headers = [
        f"{name.lower()}: {value}".encode("latin-1") for name, value in error.headers.items()
    ]
    phrase = HTTPStatus(error.status).phrase
    response = visit.page("error.html", error.status, error=error, title=phrase)
    return replace(
        response, headers=[*response.headers, *headers], code=error.code, limit=error.limit
    )
