"""The path of a request of the console. Whatever goes wrong becomes a page."""

import logging
from contextlib import ExitStack, suppress
from io import BytesIO
from urllib.parse import urlsplit
from weakref import finalize

from msgspec.structs import replace

from petstore.categories import pages as categories
from petstore.console import sign_in
from petstore.console.forms import (
    EMPTY,
    Form,
    SavedForm,
    again_of,
    decode_form,
    decode_urlencoded,
    page_address,
)
from petstore.console.page import HOME, ConsolePage, PageRequest, failure_of, sentence, with_error
from petstore.console.sign_in import session_cookie, sign_in_page, to_sign_in
from petstore.console.templates import templates
from petstore.errors import (
    CrossSiteRequest,
    InternalError,
    MissingKey,
    MissingScope,
    NetworkNotAllowed,
    NotFound,
    PetstoreError,
    RateLimitExceeded,
    Unavailable,
)
from petstore.events import pages as events
from petstore.events.model import IN_FEED
from petstore.events.store import newest_position
from petstore.http.messages import Receive, Request, Response
from petstore.imports import pages as imports
from petstore.interface.application import Exchange
from petstore.interface.bodies import BodyReader, room_for_file
from petstore.interface.operation import Services
from petstore.interface.routes import Routes, decode_path_id
from petstore.keys import pages as keys
from petstore.orders import pages as orders
from petstore.orders import today_pages as today
from petstore.people import pages as people
from petstore.people.session_operations import Sessions
from petstore.pets import pages as pets
from petstore.pets import selection_pages as selection
from petstore.sales import pages as sales
from petstore.time_slices import TimeSlices
from petstore.webhooks import pages as webhooks

_LOG = logging.getLogger(__name__)
_ASSETS = f"{HOME}/assets/"
# Bytes a second: lines of phones are often no faster.
_SLOWEST = 65_536
# Bytes of a form of a person who is not signed in: thousands may wait with one for a password.
_MAX_OF_STRANGERS = 16_384
# Bytes of a form whose sender is beyond a limit, or unknown while the database is unreachable: it
# must not cost much more than a refusal.
_MAX_KEPT = 4096
# A person can only send the same again, later.
_NOT_MENDED = (RateLimitExceeded, Unavailable)
_BEYOND_ROLE = "Your role ({}) does not include this. An administrator can change that."
_TOO_LATE = (
    "You were signed out before this arrived. Sign in again; then you can send what you typed."
)
_LOST = "You were signed out before this arrived. Sign in again, and then fill in the form again."


async def _help(request: PageRequest) -> Response:
    return request.page("help.html")


PAGES: tuple[ConsolePage, ...] = (
    *sign_in.PAGES,
    *events.PAGES,
    *today.PAGES,
    *pets.PAGES,
    *selection.PAGES,
    *orders.PAGES,
    *sales.PAGES,
    *categories.PAGES,
    *imports.PAGES,
    *webhooks.PAGES,
    *keys.PAGES,
    *people.PAGES,
    ConsolePage("GET", "/help", _help),
)
"""The pages of the console: routes and rights come from here."""


class Console:
    """``public_url`` is empty if the operator has named none."""

    path = HOME

    def __init__(self, services: Services, bodies: BodyReader, public_url: str) -> None:
        self._services = services
        self._bodies = bodies
        self._origin = _origin_of(public_url) if public_url else b""
        self._sessions = Sessions(services)
        self._templates = templates(services.settings.zone)
        self._routes = Routes(HOME, PAGES)

    async def __call__(self, exchange: Exchange, receive: Receive) -> Response:
        head = exchange.request
        asset = self._templates.assets.get(head.path.removeprefix(_ASSETS))
        if asset is not None:
            exchange.template = head.path
            return asset.response(head)
        request = PageRequest(
            *(self._services, self._templates, self._sessions, head),
            *(exchange.root, exchange.client, exchange.request_id),
        )
        try:
            return _with_cookie(request, await self._respond(request, exchange, receive))
        except PetstoreError as error:
            return with_error(_error_page(request, error), error)
        except Exception:  # noqa: BLE001 - whatever it is, the person gets a page
            _LOG.exception("request %s failed", exchange.request_id)
            failure = InternalError("the service failed; its log has the reason")
            return with_error(_error_page(request, failure), failure)
        finally:
            exchange.caller = request.signed_in or exchange.caller
            exchange.guessed = request.guessed

    async def _respond(
        self, request: PageRequest, exchange: Exchange, receive: Receive
    ) -> Response:
        head = request.head
        route, request.parameters = self._routes.find(head.path)
        exchange.template = route.template or None
        page = route.operations.get(head.method)
        if page is None:
            await self._recognize_if_possible(request)
            if not route.operations:
                raise NotFound("the console has no page at this address")
            raise route.refusal(head.method, head.path)
        if page.method == "GET":
            return await self._admitted(page, request, receive)
        _require_same_origin(head, self._origin)
        try:
            return await self._admitted(page, request, receive)
        except _NOT_MENDED:
            request.again = await self._pending(page, request, receive, _MAX_KEPT)
            raise

    async def _admitted(
        self, page: ConsolePage, request: PageRequest, receive: Receive
    ) -> Response:
        if page.public:
            if not page.signs_in:
                await self._recognize_if_possible(request)
        else:
            try:
                session = await request.find_session()
                request.sessions.charge(session.caller, request.client)
                if not request.is_refresh and await request.sessions.touch(session):
                    request.renews_cookie = session.device.stays
            except NetworkNotAllowed as error:
                return await sign_in_page(request, error.status, problem=sentence(error.message))
            except MissingKey:
                if request.is_refresh:
                    raise
                return await self._ask_to_sign_in(page, request, receive)
        if page.needs is not None:
            request.require(page.needs)
        if "Id}" in page.path:  # of a row of the store, such as {petId}
            request.path_id, request.child_id, *_ = (*map(decode_path_id, request.parameters), 0)
        if page.has_file:
            return await self._respond_with_file(page, request, receive)
        await self._receive_form(page, request, receive)
        return await self._visited(page, request)

    async def _respond_with_file(
        self, page: ConsolePage, request: PageRequest, receive: Receive
    ) -> Response:
        """Receive, send or add a file in turn: each has rows or words of a file in memory."""
        admission, caller = self._services.admission, request.caller.id
        with await admission.files.take(caller) as begun:
            with room_for_file(), ExitStack() as opened:
                if page.takes_files:
                    seconds = page.max_bytes / _SLOWEST
                    received = self._bodies.read_file(
                        request.head, receive, page.max_bytes, seconds
                    )
                    body = opened.enter_context(await received)
                    opened.enter_context(await admission.readings.take(caller))
                    request.form = await decode_form(request.head, body, opened)
                else:
                    await self._receive_form(page, request, receive)
                    opened.enter_context(await admission.working_files.take(caller))
                response = await self._visited(page, request)
            if response.file is not None:
                finalize(response.file, begun.pop_all().close)
            return response

    async def _receive_form(
        self, page: ConsolePage, request: PageRequest, receive: Receive
    ) -> None:
        largest = page.max_bytes if request.session else min(page.max_bytes, _MAX_OF_STRANGERS)
        request.form = await self._form(page, request.head, receive, largest)

    async def _visited(self, page: ConsolePage, request: PageRequest) -> Response:
        if request.session is not None:  # else a crowd without a key would be ahead of people
            await TimeSlices().begin()
        if page.method == "POST" and request.session is not None and request.head.content is None:
            await request.find_session()
        if page.method == "GET" and request.may("listEvents") and not request.is_refresh:
            # Read first, so that the script misses no change to what the page shows.
            request.cursor = IN_FEED.encode(await newest_position(self._services.store))
        try:
            return await page.handler(request)
        except PetstoreError as error:
            if page.refused is None or (isinstance(error, _NOT_MENDED) and not page.signs_in):
                raise
            _log(request, error)
            request.error = error
            return with_error(await page.refused(request), error)

    async def _recognize_if_possible(self, request: PageRequest) -> None:
        with suppress(MissingKey, NetworkNotAllowed):  # uncharged: signing out always works
            await request.find_session()

    async def _ask_to_sign_in(
        self, page: ConsolePage, request: PageRequest, receive: Receive
    ) -> Response:
        if page.method == "POST":
            request.sessions.charge_stranger(request.client)
            # In a sign-in form it is longer.
            again = await self._pending(page, request, receive, _MAX_OF_STRANGERS // 2)
            problem = _LOST if again is None else _TOO_LATE
            return await sign_in_page(request, 401, again=again, problem=problem)
        return to_sign_in(request)

    async def _pending(
        self, page: ConsolePage, request: PageRequest, receive: Receive, largest: int
    ) -> SavedForm | None:
        form, path = request.form, page_address(request.head.path.removeprefix(HOME))
        if page.signs_in or page.has_secret or page.takes_files or not path:
            return None
        if form is EMPTY:
            try:
                form = await self._form(page, request.head, receive, largest)
            except PetstoreError:
                return None
        return None if form.file is not None else again_of(path, form)

    async def _form(self, page: ConsolePage, head: Request, receive: Receive, largest: int) -> Form:
        if page.method == "GET":
            return decode_urlencoded(head.query)
        body = await self._bodies.read_any(head, receive, largest)
        with ExitStack() as opened:
            return await decode_form(head, BytesIO(body), opened)


def _with_cookie(request: PageRequest, response: Response) -> Response:
    sets_cookie = any(line.startswith(b"set-cookie:") for line in response.headers)
    if not request.renews_cookie or sets_cookie:
        return response
    cookie = session_cookie(request.secret, request.root, stays=True)
    return replace(response, headers=[*response.headers, cookie])


def _require_same_origin(request: Request, own: bytes) -> None:
    """Refuse a request that a page of another origin may have made.

    Browsers send ``Sec-Fetch-Site`` (Fetch Metadata) where the connection is secure, and ``Origin``
    with every form. The origin of the console is the ``public_url``'s. Where the operator has
    named none, it is the ``Host``'s, by http or by https: a proxy may end TLS. Then a proxy
    may also have replaced the ``Host``, so ``Sec-Fetch-Site`` alone counts if it is there.
    """
    site, origin = request.fields.get(b"sec-fetch-site"), request.fields.get(b"origin")
    is_own = site == b"same-origin"
    if origin is not None and (own or site is None):
        host = request.fields.get(b"host", b"")
        origins = (own,) if own else (b"http://" + host, b"https://" + host)
        is_own = site in (b"same-origin", None) and origin in origins and bool(own or host)
    if not is_own:
        msg = "Origin: expected a request from a page of this console; open the console and repeat"
        raise CrossSiteRequest(msg)


def _origin_of(url: str) -> bytes:
    scheme, netloc, *_ = urlsplit(url.lower())
    usual = ":443" if scheme == "https" else ":80"
    return f"{scheme}://{netloc.removesuffix(usual)}".encode("ascii")


def _error_page(request: PageRequest, error: PetstoreError) -> Response:
    _log(request, error)
    failure = failure_of(error, request.id)
    role = request.caller.role if request.session is not None else None
    if role is not None and isinstance(error, MissingScope) and error.headers:
        failure = failure._replace(message=_BEYOND_ROLE.format(role.capitalize()))
    request.error = error
    return request.page("error.html", failure=failure, again=request.again)


def _log(request: PageRequest, error: PetstoreError) -> None:
    if isinstance(error, Unavailable):
        _LOG.warning("request %s: %s", request.id, error)
