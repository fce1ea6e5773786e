"""Scopes in the words of the console."""

from collections.abc import Collection, Mapping, Sequence

from petstore.keys.model import Scope

SCOPE_WORDS: Mapping[Scope, str] = {
    "pets:read": "See animals and categories",
    "pets:write": "Add, change and delete animals and categories",
    "orders:read": "See orders and the inventory",
    "orders:write": "Place, approve, deliver and cancel orders",
    "webhooks:write": "Manage webhooks, which send events to programs",
    "keys:admin": "Manage all keys and people",
}


def scopes_in_words(scopes: Collection[str]) -> Sequence[str]:
    return [words for scope, words in SCOPE_WORDS.items() if scope in scopes]
