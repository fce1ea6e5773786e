"""People as values: what a login may be, and who may give which role."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from petstore.errors import BeyondOwnRights
from petstore.keys.model import ROLES, SCOPES, Caller, Role
from petstore.people.model import PersonCreate, PersonPatch, check_role

ADMIN = Caller(
    "admin", "pro", scopes=frozenset(SCOPES), id=1, environment="production", created_at=0
)
GRACE = {"name": "Grace", "login": "grace", "role": "clerk"}


def person(role: Role) -> Caller:
    return Caller(
        *("Grace", "enterprise"),
        scopes=ROLES[role],
        id=2,
        environment="production",
        created_at=0,
        role=role,
    )


@pytest.mark.parametrize(
    "login",
    [
        *("", "ab", "a" * 65, "two words", " grace", "grace\n", "gra\tce", "gra\x00ce", "gr\x7fce"),
        *("gra\N{NO-BREAK SPACE}ce", "gra\N{ZERO WIDTH SPACE}ce", "gra\N{SOFT HYPHEN}ce"),
        *("gra\N{ZERO WIDTH JOINER}ce", "\N{RIGHT-TO-LEFT OVERRIDE}grace", "grace\N{WORD JOINER}"),
        *("\N{HANGUL FILLER}" * 3, "grace\N{VARIATION SELECTOR-16}", "grace\N{IDEOGRAPHIC SPACE}"),
    ],
)
def test_a_login_of_other_than_3_to_64_visible_characters_is_refused(login: str) -> None:
    for kind in (PersonCreate, PersonPatch):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(GRACE | {"login": login}, kind)


@pytest.mark.parametrize(
    "login", ["abc", "grace@shop.example", "a" * 64, "Grüße-7", "грейс", "\N{DOG FACE}" * 3]
)
def test_a_login_may_have_any_visible_characters(login: str) -> None:
    assert msgspec.convert(GRACE | {"login": login}, PersonCreate).login == login


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", " "), ("name", "n" * 101), ("name", "a\nb"), ("role", "owner"), ("role", None)],
)
def test_a_name_that_is_not_printable_and_an_unknown_role_are_refused(
    field: str, value: Any
) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(GRACE | {field: value}, PersonCreate)


def test_nobody_can_be_invited_by_a_change_of_state() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"state": "invited"}, PersonPatch)


def refusal(giver: Caller, role: Role) -> str:
    with pytest.raises(BeyondOwnRights) as refused:
        check_role(giver, person(role))
    return refused.value.message


@pytest.mark.parametrize("role", ROLES)
def test_a_key_with_every_scope_gives_every_role_whatever_its_limits(role: Role) -> None:
    check_role(ADMIN, person(role))
    check_role(person("administrator"), person(role))


def test_a_role_with_a_scope_that_the_giver_lacks_is_refused() -> None:
    giver = replace(ADMIN, scopes=frozenset(SCOPES) - {"pets:write"})
    check_role(giver, person("viewer"))
    assert refusal(giver, "clerk") == (
        "role: your key cannot give pets:write, because it does not have it"
    )


def test_a_key_that_expires_gives_no_role() -> None:
    assert refusal(replace(ADMIN, expires_at=1), "viewer") == (
        "role: your key cannot give a longer life than its own"
    )


def test_a_key_with_networks_gives_no_role() -> None:
    giver = replace(ADMIN, allowed_networks=("10.0.0.0/8",))
    assert refusal(giver, "viewer") == (
        "role: your key cannot give anywhere, which is outside its own networks"
    )
