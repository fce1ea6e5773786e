"""The page of one's own account: the name, the password and the devices of a person."""

from msgspec import Struct

from petstore.console.fields import Field, FieldSet, undo_fields
from petstore.console.forms import Problem, problem_of
from petstore.console.notices import Notice, Undo, change_notice
from petstore.console.page import ConsolePage, PageRequest
from petstore.console.scopes import scopes_in_words
from petstore.domain.decoding import convert
from petstore.errors import InvalidBody, InvalidKey, MissingKey, NotFound, PetstoreError
from petstore.http.messages import Response
from petstore.people.accounts import Account, change_password, read_account, rename
from petstore.people.model import PersonName
from petstore.people.passwords import MIN_LENGTH, check_password
from petstore.sessions.store import Session, end_device, end_sessions, list_devices

_HOME = "/account"
_FORM = FieldSet(
    Field(
        "name",
        "Name",
        hint="As others see it beside what you do.",
        attributes={"aria-required": "true", "maxlength": 100, "autocomplete": "name"},
    )
)
_LABELS = {"current": "Current password", "password": "New password"}


class _OwnName(Struct, frozen=True):
    """Another name that a person wants to have."""

    name: PersonName


async def _show(visit: PageRequest) -> Response:
    if visit.caller.role is None:
        return await visit.redirect("/session")
    return await _page(visit)


async def _name_again(visit: PageRequest, error: PetstoreError) -> Response:
    return await _page(visit, error)


async def _password_again(visit: PageRequest, error: PetstoreError) -> Response:
    return await _page(visit, error, problem_of(error, _LABELS))


async def _page(
    visit: PageRequest, error: PetstoreError | None = None, problem: Problem | None = None
) -> Response:
    """Return the page as it is now.

    ``error`` refused the form of the name, unless there is a ``problem`` with a password.
    """
    if isinstance(error, (MissingKey, NotFound)):
        raise type(error)(error.message)
    services, caller = visit.services, visit.caller
    account = await read_account(services.store, caller.id)
    texts = _FORM.texts(account.caller)
    form = _FORM.shown(texts, "", visit.form, None if problem else error)
    return visit.page(
        "account.html",
        error=error,
        account=account,
        role=(caller.role or "").capitalize(),
        may_do=scopes_in_words(caller.scopes),
        form=form,
        problem=problem or form.problem,
        wrong=problem,
        devices=await list_devices(services.store, caller.id, services.clock()),
        own_device=_session_of(visit).digest,
        shortest=MIN_LENGTH,
    )


async def _rename(visit: PageRequest) -> Response:
    session, services = _session_of(visit), visit.services
    account = await read_account(services.store, session.caller.id)
    _FORM.require_unchanged(visit.form, account.caller)
    texts = _FORM.texts(account.caller)
    wanted = convert(texts | _FORM.patch(visit.form), _OwnName, InvalidBody)
    await services.store.write(rename(session, wanted.name, services.clock(), visit.id))
    undo = Undo(_HOME, undo_fields(texts, {"name": wanted.name}))
    notice = change_notice("Your name", "Your name is changed.", undo, visit.form.text("undo"))
    return await visit.redirect(_HOME, notice)


async def _change_password(visit: PageRequest) -> Response:
    session, services = _session_of(visit), visit.services
    account = await read_account(services.store, session.caller.id)
    check_password(visit.form.raw("password"), account.login)
    try:
        hashed = await _new_hash(visit, session, account)
    except InvalidKey as error:
        raise InvalidBody(error.message) from None
    unit = change_password(session, account.password, hashed, services.clock(), visit.id)
    await services.store.write(unit)
    text = "Your new password is set. You were signed out everywhere else."
    return await visit.redirect(_HOME, Notice(text))


async def _new_hash(visit: PageRequest, session: Session, account: Account) -> str:
    """Return the hash of the new password, if the person knows the one until now or has none."""
    form, passwords = visit.form, visit.limits.passwords
    async with visit.limits.own_password_attempt(account.login, session.digest):
        current, known = form.raw("current"), account.password
        if known is not None and not await passwords.verify(current, known):
            msg = "current: this is not your password"
            raise InvalidKey(msg)
        return await passwords.hash(form.raw("password"))


async def _end_device(visit: PageRequest) -> Response:
    caller, store = _session_of(visit).caller, visit.services.store
    digest = visit.form.text("device").encode("ascii", "replace")
    devices = await list_devices(store, caller.id, visit.services.clock())
    for device in devices:
        if device.digest.hex().encode("ascii") == digest:
            await store.write(end_device(caller.id, device.digest))
    # Also if it has ended already: that is what the person wants.
    return await visit.redirect(_HOME, Notice("You are signed out there."))


async def _end_others(visit: PageRequest) -> Response:
    session, store = _session_of(visit), visit.services.store
    if len(await list_devices(store, session.caller.id, visit.services.clock())) > 1:
        await store.write(end_sessions(session.caller.id, session.digest))
    return await visit.redirect(_HOME, Notice("You are signed out everywhere else."))


def _session_of(visit: PageRequest) -> Session:
    session = visit.session
    if session is None or session.caller.role is None:
        msg = "only people have an account; a key has a session"
        raise NotFound(msg)
    return session


# With a limit of its own, as the session of a key: whoever is to be signed out uses up the other.
PAGES = (
    ConsolePage("GET", _HOME, _show, ends_sessions=True),
    ConsolePage("POST", _HOME, _rename, refused=_name_again, ends_sessions=True),
    ConsolePage(
        *("POST", f"{_HOME}/password", _change_password),
        refused=_password_again,
        ends_sessions=True,
        has_secret=True,
    ),
    ConsolePage("POST", f"{_HOME}/devices/end", _end_device, ends_sessions=True),
    ConsolePage("POST", f"{_HOME}/devices/end-others", _end_others, ends_sessions=True),
)
