"""The operations on people, used with an admin key."""

import re
from typing import Any

import httpx
import pytest

from petstore.clock import rfc3339
from petstore.keys.model import SCOPES
from petstore.people.model import INVITATION_LIFE
from support.cases import case
from support.error_body import assert_error
from support.history import told_of
from support.service import SERVICE_URL, Service

pytestmark = pytest.mark.anyio

GRACE = {"name": "Grace Hopper", "login": "grace@shop.example", "role": "clerk"}
NOON = "2026-12-01T12:00:00Z"
LINK = re.compile(rf"{SERVICE_URL}/console/invitation/[\w-]{{43}}")
BAD_VALUES: dict[str, list[Any]] = {
    "name": ["", "   ", "n" * 101, "two\nlines", "\u202e", 7, None],
    "login": ["", "ab", "a" * 65, "two words", "grace\n", "\u200bgrace", 7, None],
    "role": ["owner", "", "Clerk", "keys:admin", 1, None],
    "state": ["invited", "Disabled", "", True, None],
}


class Admin:
    """Manages the people of a service with key 1, which may do all."""

    def __init__(self, service: Service, token: str) -> None:
        self.service = service
        self.token = token

    async def ask(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """Send one request to ``/v1/people`` and what is behind it."""
        if body is not None:
            options["json"] = body
        return await self.service.request(method, f"/v1/people{path}", self.token, **options)

    async def create(self, **wanted: Any) -> dict[str, Any]:
        response = await self.ask("POST", "", GRACE | wanted)
        assert response.status_code == 201, response.text
        created: dict[str, Any] = response.json()
        return created


@pytest.fixture
async def admin(service: Service) -> Admin:
    return Admin(service, (await service.issue(scopes=frozenset(SCOPES))).token)


@pytest.mark.parametrize(("field", "values"), BAD_VALUES.items(), ids=BAD_VALUES)
async def test_an_invalid_value_is_refused_naming_the_field(
    admin: Admin, field: str, values: list[Any]
) -> None:
    await admin.create()
    known = {name: value for name, value in (GRACE | {"login": "other"}).items() if name != field}
    for method, path in (("POST", ""), ("PATCH", "/2")) if field in GRACE else (("PATCH", "/2"),):
        for value in values:
            with case(method, value):
                response = await admin.ask(method, path, known | {field: value})
                message = assert_error(response, 400, "invalid_body")
                assert message.startswith(f"{field}: expected ")
    if field in GRACE:
        message = assert_error(await admin.ask("POST", "", known), 400, "invalid_body")
        assert message.startswith(f"{field}: required")


@pytest.mark.each_database
async def test_a_new_person_is_shown_with_an_invitation_once(admin: Admin) -> None:
    response = await admin.ask("POST", "", GRACE)
    assert response.status_code == 201
    assert response.headers["Location"] == f"{SERVICE_URL}/v1/people/2"
    assert response.headers["Cache-Control"] == "no-store"
    created = response.json()
    invitation = created.pop("invitation")
    assert created == GRACE | {"id": 2, "state": "invited", "createdAt": NOON, "lastSeenAt": None}
    assert LINK.fullmatch(invitation["url"])
    ends_at = rfc3339(admin.service.clock() + INVITATION_LIFE)
    assert invitation["expiresAt"] == ends_at
    for path in ("/2", ""):
        shown = await admin.ask("GET", path)
        assert shown.status_code == 200
        assert "invitation/" not in shown.text
    assert (await admin.ask("GET", "/2")).json() == created
    log = admin.service.log.getvalue().decode()
    assert invitation["url"].rpartition("/")[2] not in log


@pytest.mark.each_database
async def test_a_person_can_be_changed(admin: Admin) -> None:
    await admin.create()
    expected = (await admin.ask("GET", "/2")).json()
    for body in (
        {},
        {"name": "Grace"},
        {"login": "hopper"},
        {"role": "administrator"},
        {"state": "disabled"},
        {"role": "viewer", "id": 7, "colour": "red"},
        {"state": "active"},
    ):
        with case(body):
            known = {name: value for name, value in body.items() if name in expected}
            expected |= known | {"id": 2}
            if body == {"state": "active"}:
                expected["state"] = "invited"  # as long as there is no password
            response = await admin.ask("PATCH", "/2", body)
            assert (response.status_code, response.json()) == (200, expected)
            assert (await admin.ask("GET", "/2")).json() == expected


async def test_an_invitation_is_made_only_for_the_version_that_it_names(admin: Admin) -> None:
    await admin.create()
    tag = (await admin.ask("GET", "/2")).headers["ETag"]
    for status in (200, 412):
        invited = await admin.ask("POST", "/2/invite", headers={"If-Match": tag})
        assert invited.status_code == status
        await admin.ask("PATCH", "/2", {"name": "Grace"})


@pytest.mark.each_database
async def test_each_change_is_an_event_with_the_person_and_the_request(admin: Admin) -> None:
    created = await admin.create()
    for number, change in enumerate(({"role": "viewer", "login": "hopper"}, {"state": "disabled"})):
        await admin.ask("PATCH", "/2", change, headers={"X-Request-Id": f"r-{number}"})
    events = await told_of(admin.service.store, "person/2")
    person = {name: value for name, value in created.items() if name != "invitation"}
    after = person | {"role": "viewer", "login": "hopper"}
    assert [(event["type"], event["data"], event.get("previous")) for event in events] == [
        ("person.created", person, None),
        ("person.invited", person, {}),
        ("person.updated", after, {"role": "clerk", "login": "grace@shop.example"}),
        ("person.updated", after | {"state": "disabled"}, {"state": "invited"}),
    ]
    assert {event["actor"]["id"] for event in events} == {1}
    assert [event["requestId"] for event in events[2:]] == ["r-0", "r-1"]
