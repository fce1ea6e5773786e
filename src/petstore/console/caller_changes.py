"""Changes to keys and people in words: the history of one of them, and lines of the activity."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from petstore.console.history import History, HistoryLine, place_of
from petstore.console.page import PageRequest
from petstore.console.templates import shown_time
from petstore.events.history import ON_A_PAGE
from petstore.keys.history import CallerChange, read_latest_changes
from petstore.keys.status import names_of_callers

_AUTHOR = re.compile(r"(?:key|person) [1-9][0-9]{0,18}")
_LINK = "link"
_ACTIONS = {
    "created": Markup("added {}"),
    "rotated": Markup("gave {} a new token"),
    "unbanned": Markup("lifted the ban of {}"),
    "invited": Markup("made a password link for {}"),
    "link_created": Markup("made a sign-in link for {}"),
    "link_used": Markup("signed in by a link as {}"),
    "password_set": Markup("set the password of {}"),
    "device_ended": Markup("signed {} out on a device"),
}
_LABELS = {
    "perMinute": "limit a minute",
    "perDay": "limit a day",
    "allowedNetworks": "networks",
    "expiresAt": "end",
}
_IMPLIED = {"state", "revokedAt"}
"""What changes with an action that says so."""

_NONE = {"allowedNetworks": "anywhere", "expiresAt": "never"}


async def history_of_caller(visit: PageRequest, caller_id: int) -> History:
    """Return what was done to a key or a person, from where the address begins.

    Only if the person at the console may see the key or the person.
    """
    before = place_of(visit)
    found = await read_latest_changes(visit.services.store, caller_id, before, ON_A_PAGE)
    lines = await lines_of_changes(visit, found.items)
    now = visit.services.clock()
    return History(f"caller/{caller_id}", lines, found.next_after, before is None, now)


async def lines_of_changes(
    visit: PageRequest, changes: Sequence[CallerChange], *, names_it: bool = False
) -> list[HistoryLine]:
    """Return changes in words, each with the present name of its author."""
    authors = {each.actor for each in changes if _AUTHOR.fullmatch(each.actor)}
    ids = {int(author.partition(" ")[2]) for author in authors}
    names = await names_of_callers(visit.services.store, ids) if ids else {}
    return [
        HistoryLine(
            f"change-{each.id}",
            each.action,
            each.at,
            _name(each, names),
            each.actor.replace(" ", "/") if each.actor in authors else "",
            _sentence(each, visit.home if names_it else ""),
            frozenset(each.changes),
        )
        for each in changes
    ]


def _name(change: CallerChange, names: Mapping[int, str]) -> str:
    """Return what to call who made a change. Only the person has a link for a password."""
    if change.actor == _LINK:
        return "Somebody" if change.role is None else change.name
    if _AUTHOR.fullmatch(change.actor):
        return names.get(int(change.actor.partition(" ")[2]), change.actor)
    return change.actor


def _sentence(change: CallerChange, home: str) -> Markup:
    """Return what was done, as a sentence goes on after a name.

    With the path of the console as ``home`` it names the key or the person, and tells less of a new
    one.
    """
    action, fields = change.action, [name for name in change.changes if name not in _IMPLIED]
    if action == "changed" and fields:
        return _changed(change, fields, home)
    own = _own_act(change)
    if own:
        return Markup("{}").format(own)
    told = _ACTIONS.get(action, Markup("{} {{}}").format(_words(action)))
    told = told.format(_it(change, home))
    if not fields or (action == "created" and home):
        return told
    if action != "created":
        return Markup("{} and {}").format(told, _changed(change, fields, ""))
    parts = [
        Markup("the {} {}").format(_label(name), _value(name, change.changes[name]["after"]))
        for name in fields
    ]
    return Markup("{}, with {}").format(told, _joined(parts))


def _own_act(change: CallerChange) -> str:
    """Return what a person did with the own account, empty if it was something else."""
    by_link = change.actor == _LINK
    if change.role is None or not (by_link or change.actor == f"person {change.caller_id}"):
        return ""
    if change.action == "password_set":
        return "set a password with a link" if by_link else "set a new password"
    return "signed in by a link" if change.action == "link_used" else ""


def _changed(change: CallerChange, fields: Sequence[str], home: str) -> Markup:
    """Return how fields changed."""
    if home and fields == ["name"]:
        old, new = (change.changes["name"][moment] for moment in ("before", "after"))
        link = _link(change, home, new)
        return Markup("renamed the {} <bdi>{}</bdi> to {}").format(change.kind, old, link)
    parts = []
    for name in fields:
        of_it = Markup(" of {}").format(_it(change, home)) if home else ""
        values = [_value(name, change.changes[name][moment]) for moment in ("before", "after")]
        parts.append(Markup("the {}{} from {} to {}").format(_label(name), of_it, *values))
        home = ""  # named once
    return Markup("changed {}").format(_joined(parts))


def _it(change: CallerChange, home: str) -> Markup:
    """Return what to call a key or a person."""
    if not home:
        return Markup("this {}").format(change.kind)
    return Markup("the {} {}").format(change.kind, _link(change, home, change.name))


def _link(change: CallerChange, home: str, name: str) -> Markup:
    page = "keys" if change.role is None else "people"
    link = Markup('<a href="{}/{}/{}"><bdi>{}</bdi></a>')
    return link.format(home, page, change.caller_id, name)


def _value(name: str, value: Any) -> Markup:
    if value in (None, [], ""):
        value = _NONE.get(name, "none")
    elif isinstance(value, bool):
        value = "yes" if value else "no"
    elif name == "expiresAt":
        return shown_time(value)
    elif isinstance(value, list):
        value = ", ".join(value)
    elif name == "role":
        value = value.capitalize()
    return Markup("<bdi>{}</bdi>").format(value)


def _label(name: str) -> str:
    return _LABELS.get(name) or _words(name)


def _joined(parts: Sequence[Markup]) -> Markup:
    """Return the parts of a list in words."""
    first, last = Markup(", ").join(parts[:-1]), parts[-1]
    return Markup("{} and {}").format(first, last) if first else last


def _words(name: str) -> str:
    """Return a name of the interface in words, such as ``signed in``."""
    return name.replace("_", " ")
