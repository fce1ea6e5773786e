"""The operations on people, used with an admin key."""

import re
from typing import Any

import pytest

from petstore.clock import HOUR, rfc3339
from petstore.keys.model import SCOPES
from support.cases import case
from support.history import told_of
from support.sending import Send, sender
from support.service import SERVICE_URL, Service

pytestmark = pytest.mark.anyio

GRACE = {"name": "Grace Hopper", "login": "grace@shop.example", "role": "clerk"}
LINK = re.compile(rf"{SERVICE_URL}/console/invitation/[\w-]{{43}}")


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with key 1, which may do all; Grace is person 2."""
    return await sender(service, scopes=frozenset(SCOPES))


@pytest.mark.each_database
async def test_a_new_person_is_shown_with_an_invitation_once(service: Service, send: Send) -> None:
    response = await send("POST", "/people", json=GRACE)
    assert response.status_code == 201
    assert response.headers["Location"] == f"{SERVICE_URL}/v1/people/2"
    assert response.headers["Cache-Control"] == "no-store"
    created = response.json()
    invitation = created.pop("invitation")
    assert created == GRACE | {
        "id": 2,
        "state": "invited",
        "createdAt": "2026-12-01T12:00:00Z",
        "lastSeenAt": None,
    }
    assert LINK.fullmatch(invitation["url"])
    assert invitation["expiresAt"] == rfc3339(service.clock() + 72 * HOUR)
    assert (await send("GET", "/people/2")).json() == created
    assert (await send("GET", "/people")).json() == [created]
    assert invitation["url"].rpartition("/")[2] not in service.log.getvalue().decode()


@pytest.mark.each_database
async def test_a_person_can_be_changed_and_each_change_is_an_event(
    service: Service, send: Send
) -> None:
    created = (await send("POST", "/people", json=GRACE)).json()
    expected = {name: value for name, value in created.items() if name != "invitation"}
    told: list[Any] = [("person.created", expected, None), ("person.invited", expected, {})]
    bodies: list[dict[str, Any]] = [
        *({}, {"name": "Grace"}, {"login": "hopper"}, {"role": "administrator"}),
        *({"state": "disabled"}, {"role": "viewer", "id": 7, "colour": "red"}),
        {"state": "active"},
    ]
    for number, body in enumerate(bodies):
        with case(body):
            before = expected
            expected = before | {name: body[name] for name in body.keys() & {*GRACE, "state"}}
            if body == {"state": "active"}:
                expected["state"] = "invited"  # as long as there is no password
            headers = {"X-Request-Id": f"r-{number}"}
            response = await send("PATCH", "/people/2", json=body, headers=headers)
            assert (response.status_code, response.json()) == (200, expected)
            assert (await send("GET", "/people/2")).json() == expected
            was = {name: text for name, text in before.items() if text != expected[name]}
            told += [("person.updated", expected, was)] if body else []
    events = await told_of(service.store, "person/2")
    seen = [(event["type"], event["data"], event.get("previous")) for event in events]
    assert seen == told
    assert {event["actor"]["id"] for event in events} == {1}
    assert [event["requestId"] for event in events[2:]] == [f"r-{n}" for n in range(1, 7)]


async def test_an_invitation_is_made_only_for_the_version_that_it_names(send: Send) -> None:
    await send("POST", "/people", json=GRACE)
    tag = (await send("GET", "/people/2")).headers["ETag"]
    for status in (200, 412):
        invited = await send("POST", "/people/2/invite", headers={"If-Match": tag})
        assert invited.status_code == status
        await send("PATCH", "/people/2", json={"name": "Grace"})
