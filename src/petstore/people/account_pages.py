"""The page of one's own account: name and password of a person, and where a caller is signed in."""

from typing import Any

from msgspec import Struct

from petstore.console.forms import Field, FieldSet, Problem, problem_of
from petstore.console.page import ConsolePage, Notice, PageRequest
from petstore.console.sign_in import signed_in
from petstore.domain.decoding import convert
from petstore.errors import InvalidBody, MissingKey, NotFound, PetstoreError
from petstore.http.messages import Response
from petstore.people.model import PersonName, Session
from petstore.people.passwords import MIN_LENGTH

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


async def _password_again(request: PageRequest, error: PetstoreError) -> Response:
    return await _show(request, error, problem_of(error, _LABELS))


async def _show(
    request: PageRequest, error: PetstoreError | None = None, problem: Problem | None = None
) -> Response:
    """Return the page as it is now.

    ``error`` refused the form of the name, unless there is a ``problem`` with a password.
    """
    if isinstance(error, (MissingKey, NotFound)):
        raise type(error)(error.message)
    session, caller, wrong = request.session, request.caller, problem
    account, forms = None, dict[str, Any]()
    if caller.kind == "person":
        account = await request.sessions.read_account(caller.id)
        texts = _FORM.texts(account.caller)
        forms["form"] = form = _FORM.shown(texts, "", request.form, None if problem else error)
        problem = problem or form.problem
    return request.page(
        "account.html",
        error=error,
        account=account,
        problem=problem,
        wrong=wrong,
        **forms,
        devices=await request.sessions.devices(caller.id),
        own=session and session.device,
        shortest=MIN_LENGTH,
    )


async def _rename(request: PageRequest) -> Response:
    session = _person_of(request)
    account = await request.sessions.read_account(session.caller.id)
    _FORM.require_unchanged(request.form, account.caller)
    texts = _FORM.texts(account.caller)
    wanted = convert(texts | _FORM.patch(request.form), _OwnName, InvalidBody)
    await request.sessions.rename(session, wanted.name, request.id)
    return await request.tell_change(_HOME, "Your name", texts, {"name": wanted.name})


async def _change_password(request: PageRequest) -> Response:
    current, password = request.form.raw("current"), request.form.raw("password")
    changed = await request.sessions.change_password(
        _person_of(request), current, password, request.id
    )
    text = "Your new password is set. You were signed out everywhere else."
    return signed_in(request, changed, Notice(text), _HOME)


async def _end_device(request: PageRequest) -> Response:
    sent = request.form.text("device")
    for device in await request.sessions.devices(request.caller.id):
        if str(device.id) == sent:
            await request.sessions.end_device(request.caller.id, device.digest)
    # Also if it has ended already: that is what the person wants.
    return await request.redirect(_HOME, Notice("You are signed out there."))


async def _end_others(request: PageRequest) -> Response:
    assert request.session is not None  # noqa: S101 - only public pages have none
    await request.sessions.end_others(request.session)
    return await request.redirect(_HOME, Notice("You are signed out everywhere else."))


def _person_of(request: PageRequest) -> Session:
    session = request.session
    if session is None or session.caller.kind != "person":
        msg = "a key has neither a name to change here nor a password"
        raise NotFound(msg)
    return session


PAGES = (
    ConsolePage("GET", _HOME, _show),
    ConsolePage("POST", _HOME, _rename, refused=_show),
    ConsolePage(
        *("POST", f"{_HOME}/password", _change_password), refused=_password_again, has_secret=True
    ),
    ConsolePage("POST", f"{_HOME}/devices/end", _end_device),
    ConsolePage("POST", f"{_HOME}/devices/end-others", _end_others),
)
