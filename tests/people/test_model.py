"""People as values: logins, who may give which role, and whom a browser knows."""

from itertools import product
from typing import Any

import pytest
from msgspec.json import encode
from msgspec.structs import replace

from petstore.clock import DAY, HOUR, MINUTE, utc_second
from petstore.domain.decoding import decode_json
from petstore.errors import BeyondOwnRights, InvalidBody
from petstore.keys.model import ROLES, SCOPES, Caller, Role
from petstore.people.model import (
    Account,
    Browser,
    Device,
    Person,
    PersonCreate,
    PersonPatch,
    check_role,
    expiry,
    known_browser,
    login_digest,
)
from support.cases import case

ADMIN = Caller(
    "admin", "pro", scopes=frozenset(SCOPES), id=1, environment="production", created_at=0
)
GRACE = {"name": "Grace", "login": "grace", "role": "clerk"}
WITHOUT_LIMITS = "a role that creates keys without limits, as it has limits"


def person(role: Role) -> Caller:
    return replace(ADMIN, name="Grace", plan="enterprise", scopes=ROLES[role], id=2, role=role)


def test_a_login_has_3_to_64_visible_characters() -> None:
    for login in ("abc", "grace@shop.example", "a" * 64, "Grüße-7", "грейс", "\N{DOG FACE}" * 3):
        assert decode_json(encode(GRACE | {"login": login}), PersonCreate).login == login


@pytest.mark.parametrize(
    ("field", "expected", "values"),
    [
        ("name", "1 to 100 printable", ["   ", "n" * 101, "two\nlines", "\u202e", 7, None]),
        (
            *("login", "3 to 64 visible characters, "),
            [
                *("", "ab", "a" * 65, "two words", " grace", "grace\n", "gra\tce", "gra\x00ce", 7),
                *("gra\N{NO-BREAK SPACE}ce", "gra\N{ZERO WIDTH SPACE}ce", "gr\x7fce", None),
                *("gra\N{ZERO WIDTH JOINER}ce", "\N{RIGHT-TO-LEFT OVERRIDE}grace"),
                *("grace\N{WORD JOINER}", "\N{HANGUL FILLER}" * 3, "grace\N{IDEOGRAPHIC SPACE}"),
                *("grace\N{VARIATION SELECTOR-16}", "gra\N{SOFT HYPHEN}ce"),
            ],
        ),
        ("role", "one of 'viewer', 'clerk', ", ["owner", "Clerk", "keys:admin", 1, None]),
        ("state", "one of 'active', 'disabled'", ["invited", "Disabled", True, None]),
    ],
)
def test_an_invalid_value_is_refused_naming_the_field(
    field: str, expected: str, values: list[Any]
) -> None:
    others = {name: text for name, text in GRACE.items() if name != field}
    kinds: list[type[Any]] = [PersonPatch, PersonCreate] if field in GRACE else [PersonPatch]
    for kind, value in product(kinds, values):
        with case(value), pytest.raises(InvalidBody, match=f"^{field}: expected {expected}"):
            decode_json(encode(others | {field: value}), kind)
    if field in GRACE:
        with pytest.raises(InvalidBody, match=f"^{field}: required; expected {expected}"):
            decode_json(encode(others), PersonCreate)


def test_a_person_is_active_from_the_first_password_until_disabled() -> None:
    invited = Account(person("administrator"), "grace")
    active = Account(invited.caller, "grace", "hash", 1_500)
    disabled = active.changed({"state": "disabled"}, 7).changed({"name": "Ada"}, 8)
    clerk = disabled.changed({"state": "active", "role": "clerk", "login": "ada"}, 9)
    shown = Person(2, "Grace", "grace", "administrator", "invited", utc_second(0), None)
    seen = {"state": "active", "last_seen_at": utc_second(1_500)}
    assert [(each.administers, each.shown) for each in (invited, active, disabled, clerk)] == [
        *((False, shown), (True, replace(shown, **seen))),
        (False, replace(shown, **(seen | {"name": "Ada", "state": "disabled"}))),
        (False, replace(shown, **seen, name="Ada", login="ada", role="clerk")),
    ]
    assert (disabled.caller.revoked_at, clerk.caller.scopes) == (7, ROLES["clerk"])
    assert invited.credential != active.credential


def test_an_administrator_and_a_key_with_every_scope_give_every_role() -> None:
    for role in ROLES:
        check_role(replace(ADMIN, plan="enterprise"), person(role))
        check_role(person("administrator"), person(role))
        if role != "administrator":  # limits are for keys
            check_role(ADMIN, person(role))


@pytest.mark.parametrize(
    ("giver", "role", "refusal"),
    [
        *(
            ({"plan": "enterprise", of: 5}, "administrator", WITHOUT_LIMITS)
            for of in ("per_minute", "per_day")
        ),
        (
            {"scopes": ROLES["viewer"]},
            "clerk",
            "orders:write, pets:write, because it does not have it",
        ),
        ({"expires_at": 1}, "viewer", "a longer life than its own"),
        (
            {"allowed_networks": ("10.0.0.0/8",)},
            "viewer",
            "anywhere, which is outside its own networks",
        ),
    ],
)
def test_a_role_beyond_the_rights_of_a_key_is_refused(
    giver: dict[str, Any], role: Role, refusal: str
) -> None:
    with pytest.raises(BeyondOwnRights) as refused:
        check_role(replace(ADMIN, **giver), person(role))
    assert refused.value.message == f"role: your key cannot give {refusal}"


def test_a_browser_remembers_the_last_eight_who_signed_in_with_it() -> None:
    browser = known_browser("")
    credentials = [bytes([n]) * 32 for n in range(9)]
    for credential in credentials:
        browser = browser.with_mark(credential).with_mark(credential)
    again = known_browser(browser.cookie)
    assert [again.knows(each) for each in credentials] == [False] + [True] * 8
    assert len(browser.cookie) == 22 + 8 * 25
    for forged in ("x", "A" * 22, f"{'A' * 22}.{'0' * 24}", browser.cookie + "\n"):
        assert not known_browser(forged).knows(credentials[1])


@pytest.mark.parametrize(
    ("stays", "idle", "longest"), [(False, MINUTE * 30, HOUR * 12), (True, DAY * 30, DAY * 180)]
)
def test_a_use_extends_a_session_up_to_its_longest_life(
    *, stays: bool, idle: int, longest: int
) -> None:
    assert expiry(7, 7, stays=stays) == 7 + idle
    assert expiry(7, 7 + longest - idle, stays=stays) == 7 + longest
    assert expiry(7, 8 + longest - idle, stays=stays) == 7 + longest


def test_a_session_has_a_number_that_javascript_takes_and_lasts_only_if_asked_to() -> None:
    assert Device(b"\xff" * 32, "Firefox", 0, 0, 0, stays=False).id == 2**53 - 1
    assert Browser() == ("", False, "")


def test_a_login_is_counted_by_32_digits_in_any_case_even_if_it_is_no_text() -> None:
    assert login_digest("GRACE") == login_digest("grace") != login_digest("\udcff")
    assert len(login_digest("x" * 9_000)) == 32
