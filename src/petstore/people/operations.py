"""The operations on people, for callers that may administer keys."""

from msgspec import Struct

from petstore.databases.contract import Unit, mapped
from petstore.domain.fields import given_fields
from petstore.errors import (
    BeyondOwnRights,
    LastAdministrator,
    LoginTaken,
    PersonDisabled,
    SecretAlreadyShown,
)
from petstore.interface.idempotency import change
from petstore.interface.operation import Call, Context, Result, Success
from petstore.interface.pages import PageQuery, page_result
from petstore.interface.resource import Resource
from petstore.people.model import Person, PersonCreate, PersonPatch, PersonWithInvitation
from petstore.people.store import (
    Added,
    add_person,
    change_person,
    find_person,
    invite_person,
    list_people,
)


async def _list(context: Context, call: Call[None, PageQuery]) -> Result[list[Person]]:
    query, own = call.query, context.caller.environment
    return page_result(await list_people(context.services.store, own, query.after, query.limit))


async def _create(context: Context, call: Call[PersonCreate, None]) -> Result[PersonWithInvitation]:
    own = context.caller.environment
    return await _invited(context, add_person(call.body, context.checked_change, own))


async def _get(context: Context, call: Call[None, None]) -> Result[Person]:
    own = context.caller.environment
    return Result(await find_person(context.services.store, call.path_id, own))


async def _update(context: Context, call: Call[Struct, None]) -> Result[Person]:
    changes = given_fields(call.body)
    return await change(context, change_person(call.path_id, changes, context.checked_change))


async def _invite(context: Context, call: Call[None, None]) -> Result[PersonWithInvitation]:
    return await _invited(context, invite_person(call.path_id, context.checked_change))


async def _invited(context: Context, unit: Unit[Added]) -> Result[PersonWithInvitation]:
    root, now = context.root, context.services.clock()
    shown = mapped(unit, lambda added: added.shown(root, now))
    told = (
        "the first request invited person {id} and showed the link; invite them again for another"
    )
    return await change(context, shown, shown_once=told)


_PERSON = {
    "id": 5,
    "name": "Grace Hopper",
    "login": "grace@shop.example",
    "role": "clerk",
    "state": "active",
    "createdAt": "2026-11-21T10:00:00Z",
    "lastSeenAt": "2026-11-24T08:30:00Z",
}
_INVITED = _PERSON | {
    "state": "invited",
    "lastSeenAt": None,
    "invitation": {
        "url": "https://shop.example/console/invitation/" + 65 * "0",
        "expiresAt": "2026-11-24T10:00:00Z",
    },
}
_NEW = {"name": "Grace Hopper", "login": "grace@shop.example", "role": "clerk"}

_RESOURCE = Resource(
    *(Person, "/people", "People", "a person", "keys:admin", "keys:admin", _PERSON), no_store=True
)

OPERATIONS = (
    _RESOURCE.list(
        *(_list, PageQuery),
        "Returns a page of the people of this environment, by ascending `id`.",
        cached=False,
    ),
    _RESOURCE.row(
        *("createPerson", "POST", "/people", "Add a person"),
        "Adds a person of this environment. The link in `invitation` is shown only once: the"
        " person sets a password with it, within 72 hours. Your key cannot give a role with a"
        " scope that it does not have itself. If it expires or has networks, it cannot give"
        " any.",
        *(_create, Success(201, "The person and the invitation.", PersonWithInvitation, _INVITED)),
        body=PersonCreate,
        body_example=_NEW,
        errors=(BeyondOwnRights, LoginTaken, SecretAlreadyShown),
    ),
    _RESOURCE.get(_get, "Returns one person."),
    _RESOURCE.row(
        *("updatePerson", "PATCH", "/people/{personId}", "Change a person"),
        "Changes the fields in the body (RFC 7396), within a second everywhere. A person with"
        " the `state` `disabled` is signed out, and the links that they made end. The last"
        " active administrator cannot be disabled or get another role.",
        *(_update, Success(200, "The person as it is now.", Person, _PERSON | {"role": "manager"})),
        body=PersonPatch,
        body_example={"role": "manager"},
        errors=(BeyondOwnRights, LoginTaken, LastAdministrator),
    ),
    _RESOURCE.row(
        *("invitePerson", "POST", "/people/{personId}/invite", "Invite a person"),
        "Makes a link with which the person sets a password, once, within 72 hours; earlier"
        " ones end. The link is shown only once. The current password works until the link"
        " is used. Your key cannot invite a person with rights that it does not have itself.",
        *(_invite, Success(200, "The person and the invitation.", PersonWithInvitation, _INVITED)),
        errors=(BeyondOwnRights, PersonDisabled, SecretAlreadyShown),
    ),
)
