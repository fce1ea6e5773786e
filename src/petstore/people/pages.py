"""The pages of people, for administrators: list, add, change, invite and disable them."""

from functools import partial

from petstore.clock import HOUR
from petstore.console.forms import Field, FieldSet, Problem, choice
from petstore.console.history import history_of
from petstore.console.page import ConsolePage, Notice, PageRequest, Undo
from petstore.console.templates import isolated
from petstore.errors import LastAdministrator, NotFound, PetstoreError
from petstore.http.messages import Response
from petstore.keys.model import ROLES, Role
from petstore.people.model import INVITATION_LIFE, Person

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
_LAST = Problem(
    "",
    "You are the last administrator. First make somebody an administrator who has set a password.",
)
_HOURS = INVITATION_LIFE // HOUR


async def _list(request: PageRequest) -> Response:
    return request.page("people.html", people=await request.list_page("listPeople"))


async def _new(request: PageRequest, error: PetstoreError | None = None) -> Response:
    form = _FORM.new(request.form, error, {"role": "clerk"})
    return request.page("person_new.html", error=error, form=form)


async def _create(request: PageRequest) -> Response:
    await _confirm(request)
    created = await request.execute("createPerson", _FORM.body(_FORM.typed(request.form)))
    return request.page("person_invited.html", 201, person=created.value, hours=_HOURS)


async def _show(request: PageRequest, error: PetstoreError | None = None) -> Response:
    person: Person = (await request.execute("getPerson")).value
    form = _FORM.shown(_FORM.texts(person), "", request.form, error)
    is_own, problem = person.id == request.caller.id, form.problem
    if isinstance(error, LastAdministrator) and is_own:
        problem = _LAST
    return request.page(
        "person.html",
        error=error,
        person=person,
        form=form,
        history=await history_of(request, f"person/{person.id}"),
        problem=problem,
        scopes=ROLES[person.role],
        devices=(await request.execute("listPersonDevices")).value,
        own_device=request.session.device.id if request.session else 0,
        is_own=is_own,
        hours=_HOURS,
    )


async def _update(request: PageRequest) -> Response:
    if _FORM.patch(request.form).keys() & {"login", "role"}:
        await _confirm(request)
    before, person = await request.change("Person", _FORM)
    if person.id == request.caller.id and person.role != "administrator":
        return await request.redirect("")  # these pages are no longer for this person
    texts, name = _FORM.texts(before), isolated(person.name)
    return await request.tell_change(_path(request), name, texts, _FORM.texts(person))


async def _invite(request: PageRequest) -> Response:
    await _confirm(request)
    invited = await request.execute("invitePerson")
    return request.page("person_invited.html", person=invited.value, hours=_HOURS)


async def _set_state(state: str, request: PageRequest) -> Response:
    changed = await request.execute("updatePerson", {"state": state})
    person: Person = changed.value
    name, path = isolated(person.name), _path(request)
    if person.state == "disabled":
        text, undo = f"{name} is disabled, and signed out everywhere.", Undo(f"{path}/enable")
    else:
        text, undo = f"{name} is enabled again.", Undo(f"{path}/disable")
    return await request.redirect(path, Notice(text, undo))


_disable, _enable = partial(_set_state, "disabled"), partial(_set_state, "active")


async def _end_device(request: PageRequest) -> Response:
    text = "That device is signed out."
    try:
        await request.execute("endPersonDevice")
    except NotFound:
        text = "That device was signed out already."
    return await request.redirect(_path(request), Notice(text))


async def _confirm(request: PageRequest) -> None:
    """Ask for one's own password in an old session, which may be in other hands."""
    if request.session is not None and not request.sessions.is_fresh(request.session):
        await request.sessions.confirm(request.session, request.form.raw("current"))


def _path(request: PageRequest) -> str:
    return f"/people/{request.path_id}"


PAGES = (
    ConsolePage("GET", "/people", _list, "listPeople"),
    ConsolePage("GET", "/people/new", _new, "createPerson"),
    ConsolePage("POST", "/people", _create, "createPerson", _new),
    ConsolePage("GET", "/people/{personId}", _show, "getPerson"),
    ConsolePage("POST", "/people/{personId}", _update, "updatePerson", _show),
    ConsolePage("POST", "/people/{personId}/invite", _invite, "invitePerson", _show),
    ConsolePage("POST", "/people/{personId}/disable", _disable, "updatePerson", _show),
    ConsolePage("POST", "/people/{personId}/enable", _enable, "updatePerson", _show),
    ConsolePage(
        "POST", "/people/{personId}/devices/{deviceId}/end", _end_device, "endPersonDevice"
    ),
)
