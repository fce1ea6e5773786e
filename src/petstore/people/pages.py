"""The pages of people: for administrators, of one's own account, and of an invitation."""

from functools import partial

from petstore.clock import HOUR
from petstore.console.forms import Field, FieldSet, choice, isolated, problem_of
from petstore.console.history import history_of
from petstore.console.page import ConsolePage, Notice, PageRequest, Undo, failure_of
from petstore.console.sign_in import browser_of, is_phone, signed_in
from petstore.errors import InvalidBody, MissingKey, NotFound
from petstore.http.messages import Response
from petstore.keys.model import ROLES, Role
from petstore.people.model import INVITATION_LIFE, Person
from petstore.people.passwords import MIN_LENGTH

_ROLES: dict[Role, str] = {
    "viewer": "Viewer: sees everything in the shop",
    "clerk": "Clerk: sells, adds and changes pets",
    "manager": "Manager: also manages webhooks",
    "administrator": "Administrator: also people and keys",
}
_FORM = FieldSet(
    Field("name", "Name", hint="As others see it.", attributes={"aria-required": "true"}),
    Field(
        *("login", "Login"),
        hint="What the person signs in with, such as their e-mail address.",
        attributes={"aria-required": "true", "autocapitalize": "none", "spellcheck": "false"},
    ),
    choice("role", "Role", *_ROLES.items()),
)
_HOURS = INVITATION_LIFE // HOUR


async def _list(request: PageRequest) -> Response:
    return request.page("people.html", people=await request.list_page("listPeople"))


async def _new(request: PageRequest) -> Response:
    form = _FORM.new(request.form, request.error, {"role": "clerk"})
    return request.page("person_new.html", form=form)


async def _create(request: PageRequest) -> Response:
    await _confirm(request)
    created = await request.execute("createPerson", _FORM.body(_FORM.typed(request.form)))
    return request.page("person_invited.html", 201, person=created.value, hours=_HOURS)


async def _show(request: PageRequest) -> Response:
    person: Person = (await request.execute("getPerson")).value
    return request.page(
        "person.html",
        person=person,
        form=_FORM.shown(_FORM.texts(person), "", request.form, request.error),
        history=await history_of(request, f"person/{person.id}"),
        scopes=ROLES[person.role],
        devices=await request.sessions.devices(person.id),
        is_own=person.id == request.caller.id,
        hours=_HOURS,
    )


async def _update(request: PageRequest) -> Response:
    if _FORM.patch(request.form).keys() & {"login", "role"}:
        await _confirm(request)
    before, person = await request.change("Person", _FORM)
    if person.id == request.caller.id and person.role != "administrator":
        return await request.redirect("")  # these pages are no longer for this person
    texts, name = _FORM.texts(before), isolated(person.name)
    return await request.tell_change(name, texts, _FORM.texts(person))


async def _invite(request: PageRequest) -> Response:
    await _confirm(request)
    invited = await request.execute("invitePerson")
    return request.page("person_invited.html", person=invited.value, hours=_HOURS)


async def _set_state(state: str, request: PageRequest) -> Response:
    changed = await request.execute("updatePerson", {"state": state})
    person: Person = changed.value
    name, path = isolated(person.name), request.own_path
    text, undo = f"{name} has access again.", Undo(f"{path}/disable")
    if person.state == "disabled":
        text = f"{name} no longer has access, and is signed out everywhere."
        undo = Undo(f"{path}/enable")
    return await request.back(Notice(text, undo))


_disable, _enable = partial(_set_state, "disabled"), partial(_set_state, "active")


async def _end_device(request: PageRequest) -> Response:
    person = await request.sessions.read_account(request.path_id)  # of this environment
    await _end(request, person.caller.id)
    return await request.back(Notice("That device is signed out."))


async def _confirm(request: PageRequest) -> None:
    """Ask for one's own password in an old session, which may be in other hands."""
    if request.session is not None and not request.sessions.is_fresh(request.session):
        await request.sessions.confirm(request.session, request.form.raw("current"))


# One's own account: the password of a person, and where a caller is signed in

_ACCOUNT = "/account"
_LABELS = {"current": "Current password", "password": "New password"}


async def _show_account(request: PageRequest) -> Response:
    if isinstance(request.error, (MissingKey, NotFound)):
        raise type(request.error)(request.error.message)
    caller = request.caller
    is_person = caller.kind == "person"
    return request.page(
        "account.html",
        account=await request.sessions.read_account(caller.id) if is_person else None,
        problem=None if request.error is None else problem_of(request.error, _LABELS),
        devices=await request.sessions.devices(caller.id),
        shortest=MIN_LENGTH,
    )


async def _change_password(request: PageRequest) -> Response:
    session = request.session
    if session is None or session.caller.kind != "person":
        raise NotFound("a key has no password")
    current, password = request.form.raw("current"), request.form.raw("password")
    changed = await request.sessions.change_password(session, current, password, request.id)
    text = "Your new password is set. You were signed out everywhere else."
    return signed_in(request, changed, Notice(text), _ACCOUNT)


async def _end_own_device(request: PageRequest) -> Response:
    await _end(request, request.caller.id)
    return await request.redirect(_ACCOUNT, Notice("You are signed out there."))


async def _end(request: PageRequest, caller_id: int) -> None:
    """End a device, unless it has ended already: that is what was wanted."""
    for device in await request.sessions.devices(caller_id):
        if str(device.id) == request.form.text("device"):
            await request.sessions.end_device(caller_id, device.digest)


async def _end_others(request: PageRequest) -> Response:
    assert request.session is not None  # noqa: S101 - only public pages have none
    await request.sessions.end_others(request.session)
    return await request.redirect(_ACCOUNT, Notice("You are signed out everywhere else."))


# An invitation: a person sets a password with it, and is signed in.

_INVITATION = "/invitation/{secret}"


async def _show_invitation(request: PageRequest) -> Response:
    account = await request.sessions.find_invited(request.parameter)
    problem = ""
    if request.error is not None and not isinstance(request.error, NotFound):
        problem = failure_of(request.error, request.id).message
    return request.page(
        "invitation.html",
        200 if account else NotFound.status,
        account=account,
        problem=problem,
        is_typed=isinstance(request.error, InvalidBody),
        stays=request.form.text("stays") if problem else is_phone(request.head),
        shortest=MIN_LENGTH,
    )


async def _accept(request: PageRequest) -> Response:
    password, browser = request.form.raw("password"), browser_of(request)
    accepted = await request.sessions.accept(request.parameter, password, browser, request.id)
    text = "Your password is set. From now on you sign in with it and your login."
    return signed_in(request, accepted, Notice(text))


PAGES = (
    ConsolePage("GET", "/people", _list, "listPeople"),
    ConsolePage("GET", "/people/new", _new, "createPerson"),
    ConsolePage("POST", "/people", _create, "createPerson", _new),
    ConsolePage("GET", "/people/{personId}", _show, "getPerson"),
    ConsolePage("POST", "/people/{personId}", _update, "updatePerson", _show),
    ConsolePage("POST", "/people/{personId}/invite", _invite, "invitePerson", _show),
    ConsolePage("POST", "/people/{personId}/disable", _disable, "updatePerson", _show),
    ConsolePage("POST", "/people/{personId}/enable", _enable, "updatePerson", _show),
    ConsolePage("POST", "/people/{personId}/end-device", _end_device, "updatePerson"),
    ConsolePage("GET", _ACCOUNT, _show_account),
    ConsolePage(
        *("POST", f"{_ACCOUNT}/password", _change_password), refused=_show_account, has_secret=True
    ),
    ConsolePage("POST", f"{_ACCOUNT}/devices/end", _end_own_device),
    ConsolePage("POST", f"{_ACCOUNT}/devices/end-others", _end_others),
    ConsolePage("GET", _INVITATION, _show_invitation, public=True),
    ConsolePage("POST", _INVITATION, _accept, refused=_show_invitation, public=True, signs_in=True),
)
