"""A page of the console: its row of the table, a request of it, and notices for the next page."""

import asyncio
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b
from hmac import compare_digest, digest
from http import HTTPStatus
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import urlencode, urlsplit
from zlib import compress, decompress
from zlib import error as zlib_error
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from petstore.clock import MINUTE, SECOND, Milliseconds, utc
from petstore.console.forms import (
    EMPTY,
    FieldSet,
    Form,
    SavedForm,
    Texts,
    page_address,
    undo_fields,
)
from petstore.console.templates import Templates, begun
from petstore.domain.decoding import convert
from petstore.errors import (
    CrossSiteRequest,
    IdempotencyKeyInUse,
    InvalidBody,
    InvalidParameter,
    MissingKey,
    MissingScope,
    Overloaded,
    PetstoreError,
)
from petstore.http.messages import Request, Response
from petstore.interface.authentication import require_network, require_scope
from petstore.interface.idempotency import request_digest
from petstore.interface.idempotency_records import Attempt
from petstore.interface.messages import NO_CONDITIONS, Conditions
from petstore.interface.operation import (
    BASE,
    Call,
    Context,
    FileBody,
    IdempotentRequest,
    Operation,
    Result,
    Services,
    Target,
    execute,
)
from petstore.interface.operations import OPERATIONS_BY_ID
from petstore.keys.model import Caller
from petstore.people.model import Session
from petstore.people.session_operations import Sessions
from petstore.pets.model import Pet

HOME = "/console"

MAX_FORM = 65536
"""The maximum size of a form without a file, in bytes."""

Handler: TypeAlias = "Callable[[PageRequest], Awaitable[Response]]"

# A person has neither limits nor a token.
_OF_KEYS = ("getUsage", "rotateCurrentKey")
# Besides these, the owner of a key sees its webhooks, and nothing of the shop.
_OWN = "Webhooks"
_OF_PEOPLE = "a key has its own pages here, and the shop is for people: sign in with a login"
_OF_OWNERS = "this page is for the owner of a key, who signs in with it"
_SECOND_CLICK_SECONDS = 0.05
_IDS_AT_ONCE = 100
SESSION = "petstore_console"

_NOTICE = "petstore_notice"
_HTTPS = "https://"
_UNDO = "Undo"
_PURPOSE = b"petstore console notice"
_SIGNATURE_LENGTH = 32
# The header of a response must fit the 4 KiB that proxies have for it.
_MAX_SIGNED = 3072

_FAULT = 500
_TITLES = {
    400: "This does not look right",
    401: "You are signed out",
    403: "You don't have access",
    404: "Page not found",
    405: "This page can't be opened directly",
    408: "That took too long",
    409: "That is not possible now",
    412: "Another user changed this",
    413: "That is too large",
    429: "Too many requests",
    _FAULT: "Something went wrong",
    503: "The shop is not available now",
}
_TEXTS = {
    401: "Your session has ended. Sign in again.",
    405: "Go back to the page with the form, and send it from there.",
    408: "What you sent did not arrive in time, and nothing was changed. Send it again.",
    503: "Its database does not respond. Wait a moment, and try again.",
}
# A browser would ask for a name and a password, or not understand it.
_NOT_FOR_BROWSERS = ("WWW-Authenticate",)
_OTHER_SITE = (
    "Your browser did not say that this came from a page of the console, so nothing was changed."
    " Open the console and do it there."
)


def cookie_of(request: Request, name: str, root: str) -> str:
    """Return a cookie, empty without one. Of two, one may be of another site."""
    cookies = request.fields.get(b"cookie", b"").decode("latin-1")
    values = re.findall(rf"(?:^|;)[ \t]*{_cookie_name(name, root)}=([^;]*)", cookies)
    return values[0].strip(" \t") if len(values) == 1 else ""


def cookie_header(name: str, value: str, root: str, life: Milliseconds | None = None) -> bytes:
    """Return the header that sets a cookie; without a ``life`` it ends with the browser."""
    secure = "; Secure" if root.startswith(_HTTPS) else ""
    lasts = "" if life is None else f"; Max-Age={life // SECOND}"
    text = f"set-cookie: {_cookie_name(name, root)}={value}; Path=/; HttpOnly; SameSite=Strict"
    return (text + secure + lasts).encode("ascii")


def _cookie_name(name: str, root: str) -> str:
    # A browser takes the prefix only together with Secure, which needs https.
    return f"__Host-{name}" if root.startswith(_HTTPS) else name


class Undo(Struct, frozen=True):
    path: str
    fields: Mapping[str, str] = {}
    label: str = _UNDO


class Notice(Struct, frozen=True):
    text: str
    undo: Undo | None = None


def change_notice(name: str, done: str, undo: Undo, pressed: str) -> Notice:
    """Return that ``name`` was changed; ``pressed`` is the label of the undo that did so."""
    if pressed != _UNDO:
        return Notice(done, undo)
    redo = replace(undo, label="Redo") if undo.label == _UNDO else undo
    return Notice(f"{name} is as it was before.", redo)


def sign_notice(notice: Notice, secret: bytes) -> str:
    """Return a notice as the value of its cookie; if it is too long, without its undo."""
    record = compress(msgspec.json.encode(notice))  # an undo may name 500 pets
    signed = urlsafe_b64encode(_signature(record, secret) + record).decode("ascii")
    if len(signed) > _MAX_SIGNED and notice.undo is not None:
        return sign_notice(replace(notice, undo=None), secret)
    return signed


def read_notice(signed: str, secret: bytes) -> Notice | None:
    if len(signed) > _MAX_SIGNED:  # its owner may have made it up, to be large once decompressed
        return None
    try:
        value = urlsafe_b64decode(signed)
        signature, record = value[:_SIGNATURE_LENGTH], value[_SIGNATURE_LENGTH:]
        if not compare_digest(signature, _signature(record, secret)):
            return None
        return msgspec.json.decode(decompress(record), type=Notice)
    except (ValueError, zlib_error, msgspec.MsgspecError):  # or it is not in base64
        return None


# Another site below the same domain could set a cookie, but not one whose undo a person presses.
def _signature(record: bytes, secret: bytes) -> bytes:
    return digest(digest(secret, _PURPOSE, "sha256"), record, "sha256")


@dataclass(frozen=True)
class ConsolePage:
    """A page of the console. ``path`` is relative to ``HOME``.

    It is for those who may carry out the operation ``needs`` here, or for everybody. If its handler
    raises an error that the person can fix, ``refused`` makes the page, which has what was typed
    and what is wrong with it; if it ``signs_in``, after every error. A ``public`` page
    needs no session.
    ``max_bytes`` is the maximum size of a form that it takes. One that ``has_file`` receives, sends
    or adds a file, in turn. The form of one that ``has_secret`` is never kept to be sent again.
    """

    method: Literal["GET", "POST"]
    path: str
    handler: Handler
    needs: str | None = None
    refused: "Handler | None" = None
    public: bool = False
    signs_in: bool = False
    max_bytes: int = MAX_FORM
    has_file: bool = False
    has_secret: bool = False

    @property
    def takes_files(self) -> bool:
        return self.has_file and self.method == "POST" and self.max_bytes > MAX_FORM


def executes(operation_id: str, told: str, back: str = "") -> Handler:
    """Return the handler of a button; it leads ``back``, else to the page of the resource."""

    async def handler(request: "PageRequest") -> Response:
        await request.execute(operation_id)
        return await request.redirect(back or request.own_path, Notice(told))

    return handler


class PageRequest(Struct):
    """``path_id`` is 0 where the path has no parameter, ``child_id`` where it has no second one.

    ``form`` has the fields of the query, or of the body of a POST. A ``refresh`` is a request that
    the page makes itself. Public pages have no ``session``. ``cursor`` is the position in the
    feed of events before the page was read; only a page that a person opens has one.

    For the log, ``signed_in`` is who is signed in or just did, and ``guessed`` the digest of a
    login that did not. ``renews_cookie`` is whether the response sets the cookie of the session
    once more. After an ``error``, its page says so, and ``again`` may have a form that can be sent
    again. The log has the ``id``.
    """

    services: Services
    templates: Templates
    sessions: Sessions
    head: Request
    root: str
    client: str
    id: str
    path_id: int = 0
    child_id: int = 0
    parameters: tuple[str, ...] = ()
    form: Form = EMPTY
    session: Session | None = None
    signed_in: Caller | None = None
    guessed: str = ""
    error: PetstoreError | None = None
    again: SavedForm | None = None
    cursor: str = ""
    renews_cookie: bool = False

    @property
    def caller(self) -> Caller:
        assert self.session is not None  # noqa: S101 - only public pages have none
        return self.session.caller

    @property
    def parameter(self) -> str:
        return self.parameters[0] if self.parameters else ""

    @property
    def home(self) -> str:
        return urlsplit(self.root).path + HOME

    @property
    def own_path(self) -> str:
        """The page of the resource that the request is about, such as ``/keys/3``."""
        kind = self.head.path.removeprefix(f"{HOME}/").partition("/")[0]
        return f"/{kind}/{self.path_id}" if self.path_id else f"/{kind}"

    @property
    def is_refresh(self) -> bool:
        return b"console-refresh" in self.head.fields

    @property
    def time_zone(self) -> ZoneInfo:
        return self.services.settings.zone

    @property
    def today(self) -> date:
        return utc(self.services.clock()).astimezone(self.time_zone).date()

    @property
    def secret(self) -> str:
        return cookie_of(self.head, SESSION, self.root)

    @property
    def _secret(self) -> bytes:
        return self.secret.encode("latin-1")

    def may(self, operation_id: str) -> bool:
        if self.session is None or not self.is_behind_own_door(operation_id):
            return False
        return OPERATIONS_BY_ID[operation_id].scope in (None, *self.caller.scopes)

    def is_behind_own_door(self, operation_id: str) -> bool:
        """Return whether the pages of an operation are for whoever signed in as the caller did."""
        is_of_keys = operation_id in _OF_KEYS
        if self.caller.kind == "key":
            return is_of_keys or OPERATIONS_BY_ID[operation_id].tag == _OWN
        return not is_of_keys

    def require(self, operation_id: str) -> None:
        if self.may(operation_id):
            return
        if self.is_behind_own_door(operation_id):
            require_scope(self.caller, OPERATIONS_BY_ID[operation_id].scope)
        raise MissingScope(_OF_PEOPLE if self.caller.kind == "key" else _OF_OWNERS)

    async def find_session(self) -> Session:
        """Find the session as it is now: it, its key or its rights may have ended meanwhile."""
        self.session, found = None, await self.sessions.find(self.secret)
        if found is None:
            raise MissingKey("sign in first")
        self.signed_in = found.caller
        if found.caller.allowed_networks:
            require_network(found.caller, self.client)
        self.session = found
        return found

    async def find_pet(self, pet_id: int | None) -> Pet | None:
        return None if pet_id is None else (await self.pets_of([pet_id])).get(pet_id)

    async def category_names(self, ids: Collection[int]) -> dict[int, str]:
        found = await self._by_ids("listCategories", ids)
        return {category.id: category.name for category in found}

    async def pets_of(self, ids: Collection[int]) -> dict[int, Pet]:
        return {pet.id: pet for pet in await self._by_ids("listPets", ids)}

    async def _by_ids(self, operation_id: str, ids: Collection[int]) -> list[Any]:
        wanted, found = sorted(set(ids)), list[Any]()
        for start in range(0, len(wanted), _IDS_AT_ONCE):
            query = {"id": wanted[start : start + _IDS_AT_ONCE], "limit": _IDS_AT_ONCE}
            found += (await self.execute(operation_id, query=query)).value
        return found

    async def execute(
        self,
        operation_id: str,
        body: Mapping[str, Any] | FileBody | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        path_id: int = 0,
        if_match: str | None = None,
        once: str | None = None,
        check: Callable[[Any], None] | None = None,
    ) -> Result[Any]:
        """Execute an operation of the interface, about the resource of the path.

        It changes the ``version`` that the form has, unless another one or a ``check`` of the
        resource is given. A POST with the same ``once``, which is its form's if no other is given,
        and the same body is executed once (``Idempotency-Key``): the second click of two waits for
        the first.
        """
        operation = OPERATIONS_BY_ID[operation_id]
        self.require(operation_id)
        given = {name: value for name, value in (query or {}).items() if value is not None}
        call: Call[Any, Any] = Call(
            operation.query and convert(given, operation.query, InvalidParameter),
            body if isinstance(body, FileBody) else self.decoded(operation_id, body or {}),
            *((path_id or self.path_id, self.child_id)[: len(operation.parameters)]),
        )
        is_post, once = operation.method == "POST", self.form.text("once") if once is None else once
        version = self.form.text("version") if if_match is None else if_match
        if check is None and version and operation.method != "GET":
            check = Conditions(version.encode("ascii", "replace")).check
        caller = self.caller
        if caller.kind == "key":  # its owner sees what is its own alone
            caller = replace(caller, scopes=caller.scopes - {"keys:admin"})
        context = Context(
            services=self.services,
            caller=caller,
            address=self.client,
            root=self.root,
            request_id=self.id,
            token=self._secret,
            session=self.session,
            check=check or NO_CONDITIONS.check,
            once=self._idempotent(operation, call, once) if once and is_post else None,
            client=self.head,
        )
        while True:
            try:
                return await execute(operation, context, call)
            except IdempotencyKeyInUse:  # until the first click has its response
                await asyncio.sleep(_SECOND_CLICK_SECONDS)

    def decoded(self, operation_id: str, body: Mapping[str, Any]) -> Any:
        into = OPERATIONS_BY_ID[operation_id].body
        return None if into is None else convert(body, into, InvalidBody)

    async def list_page(self, operation_id: str, limit: int = 50, **query: Any) -> Result[Any]:
        cursor = self.form.text("cursor") or None
        return await self.execute(operation_id, query={"limit": limit, "cursor": cursor, **query})

    def place(self, path: str) -> str:
        """Return the address of a list as the person last saw it, with its filters and page."""
        query = cookie_of(self.head, f"petstore_{path[1:]}", self.root)
        return (query and page_address(f"{path}?{query}")) or path

    async def list_response(
        self, path: str, filters: Mapping[str, str], found: Result[Any], page: Response
    ) -> Response:
        """Return the page of a list, whose place is kept; for an emptied one, the page before."""
        at = {name: self.form.text(name) for name in ("cursor", "before")}
        if at["cursor"] and not (found.value or found.next):
            return await self.redirect(f"{path}?{urlencode({**filters, 'cursor': at['before']})}")
        query = urlencode({name: text for name, text in {**filters, **at}.items() if text})
        name = f"petstore_{path[1:]}"
        if self.is_refresh or query == cookie_of(self.head, name, self.root):
            return page
        query = query if page_address(f"{path}?{query}") else ""
        cookie = cookie_header(name, query, self.root, None if query else 0)
        return replace(page, headers=[*page.headers, cookie])

    def _idempotent(
        self, operation: Operation, call: Call[Any, Any], once: str
    ) -> IdempotentRequest:
        ids = dict(zip(operation.parameters, (call.path_id, call.child_id), strict=False))
        path = f"{BASE}{operation.path}".format_map(ids)
        sent = call.body.digest if isinstance(call.body, FileBody) else call.body
        digest = request_digest(operation.method, path, sent)
        # A digest, since not every text of a form is one that the database takes.
        name = blake2b(once.encode("utf-8", "replace") + digest, digest_size=24).hexdigest()
        attempt = Attempt(self.caller, f"console-{name}", digest)
        return IdempotentRequest(attempt, operation, Target(self.root, path))

    def page(self, template: str, status: int = 200, **context: Any) -> Response:
        # Without a session there is no secret: anyone could have made the notice up.
        is_told = self.session is not None and not self.is_refresh
        signed = cookie_of(self.head, _NOTICE, self.root) if is_told else ""
        shown = {
            "request": self,
            "home": self.home,
            "may": self.may,
            "now": self.services.clock(),
            "notice": read_notice(signed, self._secret) if signed else None,
            "error": self.error,
            "problem": context["form"].problem if "form" in context else None,
            **context,
        }
        page = self.templates.page(template, self.error.status if self.error else status, shown)
        if not signed:
            return page
        return replace(page, headers=[*page.headers, cookie_header(_NOTICE, "", self.root, 0)])

    async def change(self, resource: str, fields: FieldSet) -> tuple[Any, Any]:
        """Return it before and after. Its version changes with each use, so this checks fields."""
        before: list[Any] = []

        def check(found: Any) -> None:
            fields.require_unchanged(self.form, found)
            before.append(found)

        changed = await self.execute(f"update{resource}", fields.patch(self.form), check=check)
        return before[-1], changed.value

    async def tell_change(
        self, name: str, before: Texts, now: Texts, version: str = ""
    ) -> Response:
        if before == now:
            return await self.back(Notice("Nothing was changed."))
        undo = Undo(self.own_path, undo_fields(before, now, version))
        pressed = self.form.text("undo")
        return await self.back(change_notice(name, f"{name} is changed.", undo, pressed))

    async def back(self, notice: Notice) -> Response:
        return await self.redirect(self.own_path, notice)

    async def redirect(self, path: str, notice: Notice | None = None) -> Response:
        response = redirect(f"{self.home}{path}")
        if notice is None:
            return response
        return with_notice(response, notice, self._secret, self.root)


def with_notice(response: Response, notice: Notice, secret: bytes, root: str) -> Response:
    cookie = cookie_header(_NOTICE, sign_notice(notice, secret), root, MINUTE)
    return replace(response, headers=[*response.headers, cookie])


def redirect(target: str) -> Response:
    headers = [f"location: {target}".encode("ascii"), b"cache-control: no-store"]
    return Response(HTTPStatus.SEE_OTHER, b"", headers)


def operation_in_words(operation_id: str | None) -> str:
    """Return what an operation does; a later or an earlier version may have others."""
    if operation_id is None:
        return "Unknown path or method"
    operation = OPERATIONS_BY_ID.get(operation_id)
    if operation is None:
        return operation_id
    return operation.summary.replace("an animal", "a pet").replace("animal", "pet")


class PageFailure(NamedTuple):
    title: str
    message: str


def failure_of(error: PetstoreError, request_id: str) -> PageFailure:
    status = error.status
    title = _TITLES.get(status, "This did not work")
    if isinstance(error, CrossSiteRequest):
        return PageFailure("This did not come from the console", _OTHER_SITE)
    if status == _FAULT:
        text = (
            "The service failed, and its log has the reason."
            f" An administrator finds it by the request {request_id}."
        )
    else:
        is_busy = isinstance(error, Overloaded)  # which is no matter of the database
        text = (None if is_busy else _TEXTS.get(status)) or sentence(error.message)
    return PageFailure(title, text)


def with_error(response: Response, error: PetstoreError) -> Response:
    headers = [
        f"{name.lower()}: {value}".encode("latin-1")
        for name, value in error.headers.items()
        if name not in _NOT_FOR_BROWSERS
    ]
    return replace(
        response, headers=[*response.headers, *headers], code=error.code, limit=error.limit
    )


def sentence(message: str) -> str:
    return f"{begun(message)}."
