"""The history of a key in words."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from petstore.console.key_fields import LABELS
from petstore.store.key_history import KeyEvent

Shown: TypeAlias = str | datetime
"""A value as a page shows it."""

_ACTIONS = {"link_created": "Sign-in link made", "link_used": "Signed in with a link"}
_MOMENTS = ("expiresAt", "revokedAt")
_NONE = {"allowedNetworks": "anywhere", "expiresAt": "never", "revokedAt": "never"}


class ChangeInWords(NamedTuple):
    """A field that changed. What is created has nothing ``before``."""

    label: str
    before: Shown | None
    after: Shown


def action_in_words(action: str) -> str:
    """Return what was done to a key."""
    return _ACTIONS.get(action, action.capitalize())


def changes_in_words(event: KeyEvent) -> Sequence[ChangeInWords]:
    """Return the changes of an event of the history of a key."""
    is_new = event.action == "created"
    return [
        ChangeInWords(
            LABELS.get(name, name),
            None if is_new else _shown(name, change.before),
            _shown(name, change.after),
        )
        for name, change in event.changes.items()
    ]


def _shown(name: str, value: Any) -> Shown:
    if value in (None, []):
        return _NONE.get(name, "none")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    return datetime.fromisoformat(value) if name in _MOMENTS else str(value)
