"""The page of one's own account: the name, the password and the devices of a person."""

from msgspec import Struct

from petstore.console.fields import Field, FieldSet, undo_fields
from petstore.console.forms import Problem, problem_of
from petstore.console.notices import Notice, Undo, change_notice
from petstore.console.page import ConsolePage, PageRequest
from petstore.console.scopes import scopes_in_words
from petstore.domain.decoding import convert
from petstore.errors import InvalidBody, InvalidKey, NotFound, PetstoreError
from petstore.http.messages import Response
from petstore.people.accounts import Account, change_password, read_account, rename
from petstore.people.model import PersonName
from petstore.people.pages import ROLE_NAMES
from petstore.people.passwords import MAX_LENGTH, MIN_LENGTH, check_password
from petstore.sessions.store import Session, end_device, end_sessions, list_devices

_HOME = "/account"
_FORM = FieldSet(
    Field(
        "name",
        "Name",
        hint="Others see it beside what you change.",
        attributes={"required": "", "maxlength": 100, "autocomplete": "name"},
    )
)
_LABELS = {"current": "Your password until now", "password": "New password"}


class NameChange(Struct, frozen=True):
    """Another name of a person."""

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
    """Return the page as it is now. What is wrong with a name is in its form.

    ``problem`` is what is wrong with a password.
    """
    _, session = _signed_in_person(visit)
    services, caller_id = visit.services, visit.caller.id
    account = await read_account(services.store, caller_id)
    texts = _FORM.texts(account.caller)
    return visit.page(
        "account.html",
        error=error,
        account=account,
        role=ROLE_NAMES[session.caller.role or "viewer"],
        may_do=scopes_in_words(visit.caller.scopes),
        form=_FORM.shown(texts, "", visit.form, None if problem else error),
        problem=problem,
        devices=await list_devices(services.store, caller_id, services.clock()),
        lengths=(MIN_LENGTH, MAX_LENGTH),
    )
