"""People as values: logins, who may give which role, and whom a browser knows."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from petstore.clock import DAY, HOUR, MINUTE
from petstore.domain.decoding import decode_json
from petstore.errors import BeyondOwnRights, InvalidBody
from petstore.keys.model import ROLES, SCOPES, Caller, Role
from petstore.people.model import PersonCreate, PersonPatch, check_role, expiry, known_browser
from support.cases import case

ADMIN = Caller(
    "admin", "pro", scopes=frozenset(SCOPES), id=1, environment="production", created_at=0
)
GRACE = {"name": "Grace", "login": "grace", "role": "clerk"}
WITHOUT_LIMITS = "a role that creates keys without limits, as it has limits"


def person(role: Role) -> Caller:
    return replace(ADMIN, plan="enterprise", scopes=ROLES[role], id=2, role=role)


def test_an_invalid_value_is_refused_naming_the_field() -> None:
    for login in ("abc", "grace@shop.example", "a" * 64, "Grüße-7", "грейс", "\N{DOG FACE}" * 3):
        assert decode_json(json.dumps(GRACE | {"login": login}).encode(), PersonCreate)
    logins = (
        *("", "ab", "a" * 65, "two words", " grace", "grace\n", "gra\tce", "gra\x00ce", "gr\x7fce"),
        *("gra\N{NO-BREAK SPACE}ce", "gra\N{ZERO WIDTH SPACE}ce", "gra\N{SOFT HYPHEN}ce"),
        *("gra\N{ZERO WIDTH JOINER}ce", "\N{RIGHT-TO-LEFT OVERRIDE}grace", "grace\N{WORD JOINER}"),
        *("\N{HANGUL FILLER}" * 3, "grace\N{VARIATION SELECTOR-16}", "grace\N{IDEOGRAPHIC SPACE}"),
        *(7, None),
    )
    refused: dict[str, tuple[Any, ...]] = {
        "name": ("   ", "n" * 101, "two\nlines", "\u202e", 7, None),
        "login": logins,
        "role": ("owner", "Clerk", "keys:admin", 1, None),
        "state": ("invited", "Disabled", True, None),
    }
    for field, values in refused.items():
        kinds: list[Any] = [PersonPatch, PersonCreate] if field in GRACE else [PersonPatch]
        for value in values:
            body = json.dumps(GRACE | {field: value}).encode()
            for kind in kinds:
                expected = pytest.raises(InvalidBody, match=f"^{field}: expected ")
                with case(field, value, kind), expected:
                    decode_json(body, kind)
    for field in GRACE:
        body = json.dumps({name: text for name, text in GRACE.items() if name != field}).encode()
        with pytest.raises(InvalidBody, match=f"^{field}: required"):
            decode_json(body, PersonCreate)


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
