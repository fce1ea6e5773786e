"""The page of what everybody did."""

import re

import httpx
import pytest

from petstore.clock import DAY, SECOND
from petstore.events.store import newest_position
from support.keys import change, unban
from support.passwords import add_with_password
from support.service import Service
from support.stores import do
from support.visitor import Visitor, signed_in_again, signed_in_person, words

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("dogs")]

BELLA = {"name": "Bella", "categoryId": "1", "status": "available"}


async def changed(visitor: Visitor, path: str, **fields: str) -> None:
    response = await visitor.post(path, **fields)
    assert response.status_code == 303, response.text


def told(page: httpx.Response) -> list[str]:
    """Return who did what on a page."""
    assert page.status_code == 200, page.text
    items = re.findall(r"<li data-resource=\"[^\"]+\"><span>(.*?)</span> <span", page.text)
    return [" ".join(re.sub("<[^>]*>", "", item).split()) for item in items]


def following(page: httpx.Response, link: str) -> str:
    """Return where the link to earlier activity leads."""
    found = re.search(rf'href="/console(/activity\?[^"]*)" rel="next">{link}<', page.text)
    assert found is not None, page.text
    return found[1].replace("&amp;", "&")


@pytest.mark.each_database
async def test_the_activity_tells_administrators_alone_who_did_what(
    service: Service, ada: Visitor
) -> None:
    grace = await signed_in_person(service, "clerk", "Grace")
    await changed(grace, "/pets", **BELLA)
    service.clock.advance(1)
    await changed(grace, "/pets/1", name="<i>Bello</i>")
    await changed(grace, "/pets/1/reserve")
    service.clock.advance(1)
    await changed(ada, "/categories", name="Cats", description="")
    service.clock.advance(1)
    await ada.post("/keys", name="Till", plan="free", scopes="pets:read")
    page = await ada.get("/activity")
    assert told(page)[:5] == [
        "Ada added the key Till",
        "Ada added Cats",
        "Grace reserved &lt;i&gt;Bello&lt;/i&gt; with order 1",
        "Grace renamed Bella to &lt;i&gt;Bello&lt;/i&gt;",
        "Grace added Bella",
    ]
    for link in ("/pets/1", "/orders/1", "/categories/2", "/keys/3"):
        assert f'<a href="/console{link}">' in page.text
    assert f'<a href="/console/activity?actor=person/{grace.key_id}"><bdi>Grace</bdi>' in page.text
    for other in (grace, await signed_in_person(service, "manager", "Max")):
        assert (await other.get("/activity")).status_code == 403
        assert "/console/activity" not in (await other.get("/pets")).text


async def test_an_order_and_its_pet_are_one_line(service: Service, ada: Visitor) -> None:
    for name in ("Bella", "Rex"):
        await changed(ada, "/pets", **BELLA | {"name": name})
    for path in ("/pets/1/reserve", "/orders/1/cancel", "/pets/2/reserve", "/orders/2/approve"):
        await changed(ada, path)
    await changed(ada, "/orders/2/deliver")
    await changed(ada, "/pets/1/reserve")
    service.clock.advance(DAY / SECOND)
    ada = await signed_in_again(service, ada.key_id)
    await ada.get("/pets/1")  # which settles the lapse
    assert [line for line in told(await ada.get("/activity")) if "person" not in line][:-2] == [
        "The service made Bella available again, because order 3 lapsed",
        "Ada reserved Bella with order 3",
        "Ada sold Rex with order 2",
        "Ada approved order 2",
        "Ada reserved Rex with order 2",
        "Ada cancelled order 1, so Bella is available again",
        "Ada reserved Bella with order 1",
    ]
    assert told(await ada.get("/activity", kind="order")) == [
        "The service cancelled order 3, because it was not approved in time",
        "Ada placed order 3 for Bella",
        "Ada delivered order 2",
        "Ada approved order 2",
        "Ada placed order 2 for Rex",
        "Ada cancelled order 1",
        "Ada placed order 1 for Bella",
    ]
    await changed(ada, "/pets/1/delete")
    assert told(await ada.get("/activity", kind="order"))[1] == "Ada placed order 3 for pet 1"


async def test_earlier_activity_is_on_further_pages_with_the_same_filters(ada: Visitor) -> None:
    for number in range(25):
        await changed(ada, "/pets", **BELLA | {"name": f"Bella {number}"})
    page = await ada.get("/activity", kind="pet")
    assert len(told(page)) == 20
    path = following(page, "Earlier")
    assert path.startswith("/activity?kind=pet&cursor=")
    rest = await ada.get(path)
    assert told(rest) == [f"Ada added Bella {number}" for number in range(4, -1, -1)]
    assert "Earlier" not in words(rest)


async def test_an_import_and_its_undo_are_a_line_each(ada: Visitor) -> None:
    content = b"name,categoryId,status\n" + b"Rex,1,\n" * 30
    sent = await ada.post("/import", files={"file": ("pets.csv", content, "text/csv")})
    path = sent.headers["location"].removeprefix("/console")
    await changed(ada, f"{path}/run")
    added = "Ada added Rex and 29 more changes"
    assert told(await ada.get("/activity", kind="pet")) == [added]
    await changed(ada, f"{path}/undo")
    assert told(await ada.get("/activity", kind="pet")) == [
        "Ada deleted Rex and 29 more changes",
        added,
    ]


async def test_no_change_hides_behind_another_kind_with_the_same_request_id(
    service: Service, ada: Visitor
) -> None:
    key = await service.issue(name="Website")
    headers = {"X-Request-Id": "same"}
    for name in ("Bella", "Rex"):
        await changed(ada, "/pets", **BELLA | {"name": name})
    for number in (1, 2):
        await service.request("DELETE", f"/v1/pets/{number}", key.token, headers=headers)
    body = {"name": "Max", "categoryId": 1}
    await service.request("POST", "/v1/pets", key.token, json=body, headers=headers)
    assert told(await ada.get("/activity"))[:2] == [
        "Website added Max",
        "Website deleted Rex and 1 more change",
    ]


async def test_what_a_person_did_long_ago_is_found_at_once(service: Service, ada: Visitor) -> None:
    await changed(ada, "/pets", **BELLA)
    first = (await newest_position(service.store)).sequence + 1
    numbers = "WITH RECURSIVE n (i) AS (SELECT ?2 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)"
    sql = f"INSERT INTO events {numbers} SELECT i, printf('evt_%024x', i), 'pet.updated', ?1"
    sql += ", 'pet/1', NULL, '{}', '{}', 'key/9', NULL FROM n"
    await service.store.write(do(sql, service.clock(), first))
    assert told(await ada.get("/activity", actor=f"person/{ada.key_id}"))[0] == "Ada added Bella"
    page = await ada.get("/activity", kind="category")
    assert "Nothing was found so far." in words(page)
    rest = await ada.get(following(page, "Search earlier"))
    assert "No earlier changes are on record." in words(rest)


async def test_each_change_of_keys_and_people_is_told(service: Service, ada: Visitor) -> None:
    key = await service.issue(name="Till")
    await change(service.store, service.clock, key.id, allowed_networks=("10.0.0.0/8",))
    await change(service.store, service.clock, key.id, per_minute=9)
    await change(service.store, service.clock, key.id, plan="pro", allowed_networks=())
    await unban(service.store, service.clock, key.id)
    person_id = await add_with_password(service)
    person = f"/people/{person_id}"
    await changed(ada, person, name="Hopper", role="viewer")
    await changed(ada, f"{person}/disable")
    await changed(ada, f"{person}/enable")
    await changed(ada, f"/keys/{key.id}/revoke")
    of, without = "of the key Till", "removed the allowed networks of the key Till"
    role = "changed the role of the person Hopper"
    assert told(await ada.get("/activity", kind="key"))[:11] == [
        "Ada revoked the key Till",
        "Ada changed the state of the person Hopper from disabled to active",
        "Ada changed the state of the person Hopper from active to disabled",
        f"Ada renamed Grace to the person Hopper and {role} from clerk to viewer",
        "The operator created a password link for the person Grace",
        "The operator added the person Grace",
        "The operator lifted the ban of the key Till",
        f"The operator changed the plan {of} from enterprise to pro and {without}",
        f"The operator set the limit a minute {of} to 9",
        "The operator set the allowed networks of the key Till to 10.0.0.0/8",
        "The operator added the key Till",
    ]
    history = told(await ada.get(f"/keys/{key.id}"))
    assert history[0] == "Ada revoked this key"
    assert history[-2:] == [
        "The operator set the allowed networks to 10.0.0.0/8",
        "The operator added this key",
    ]
