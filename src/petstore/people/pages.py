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


async def _list(visit: PageRequest) -> Response:
    return visit.page("people.html", people=await visit.list_page("listPeople"))


async def _new(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    form = _FORM.new(visit.form, error, {"role": "clerk"})
    return visit.page("person_new.html", error=error, form=form)


async def _create(visit: PageRequest) -> Response:
    await _confirm(visit)
    created = await visit.execute("createPerson", _FORM.body(_FORM.typed(visit.form)))
    return visit.page("person_invited.html", 201, person=created.value, hours=_HOURS)


async def _show(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    person: Person = (await visit.execute("getPerson")).value
    form = _FORM.shown(_FORM.texts(person), "", visit.form, error)
    is_own, problem = person.id == visit.caller.id, form.problem
    if isinstance(error, LastAdministrator) and is_own:
        problem = _LAST
    return visit.page(
        "person.html",
        error=error,
        person=person,
        form=form,
        history=await history_of(visit, f"person/{person.id}"),
        problem=problem,
        scopes=ROLES[person.role],
        devices=(await visit.execute("listPersonDevices")).value,
        own_device=visit.session.device.id if visit.session else 0,
        is_own=is_own,
        hours=_HOURS,
    )


async def _update(visit: PageRequest) -> Response:
    if _FORM.patch(visit.form).keys() & {"login", "role"}:
        await _confirm(visit)
    before, person = await visit.change("Person", _FORM)
    if person.id == visit.caller.id and person.role != "administrator":
        return await visit.redirect("")  # these pages are no longer for this person
    texts, name = _FORM.texts(before), isolated(person.name)
    return await visit.tell_change(_path(visit), name, texts, _FORM.texts(person))


async def _invite(visit: PageRequest) -> Response:
    await _confirm(visit)
    invited = await visit.execute("invitePerson")
    return visit.page("person_invited.html", person=invited.value, hours=_HOURS)


async def _set_state(state: str, visit: PageRequest) -> Response:
    changed = await visit.execute("updatePerson", {"state": state})
    person: Person = changed.value
    name, path = isolated(person.name), _path(visit)
    if person.state == "disabled":
        text, undo = f"{name} is disabled, and signed out everywhere.", Undo(f"{path}/enable")
    else:
        text, undo = f"{name} is enabled again.", Undo(f"{path}/disable")
    return await visit.redirect(path, Notice(text, undo))


_disable, _enable = partial(_set_state, "disabled"), partial(_set_state, "active")


async def _end_device(visit: PageRequest) -> Response:
    text = "That device is signed out."
    try:
        await visit.execute("endPersonDevice")
    except NotFound:
        text = "That device was signed out already."
    return await visit.redirect(_path(visit), Notice(text))


async def _confirm(visit: PageRequest) -> None:
    """Ask for one's own password in an old session, which may be in other hands."""
    if visit.session is not None and not visit.sessions.is_fresh(visit.session):
        await visit.sessions.confirm(visit.session, visit.form.raw("current"))


def _path(visit: PageRequest) -> str:
    return f"/people/{visit.path_id}"


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
