"""The page of what everybody did."""

import re

import httpx
import pytest
from msgspec.structs import replace

from petstore.clock import DAY, SECOND
from petstore.keys.activity import ON_A_PAGE
from petstore.keys.history import insert_changes, insert_event
from support.keys import change, stored_key
from support.service import Service
from support.staff import signed_in_person
from support.stores import do
from support.visitor import Visitor, signed_in, words

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("dogs")]

BELLA = {"name": "Bella", "categoryId": "1", "status": "available"}


@pytest.fixture
async def ada(service: Service) -> Visitor:
    """An administrator."""
    return await signed_in_person(service, "administrator", "Ada")


async def changed(visitor: Visitor, path: str, **fields: str) -> None:
    response = await visitor.post(path, **fields)
    assert response.status_code == 303, response.text


def told(page: httpx.Response) -> list[str]:
    """Return who did what on a page."""
    assert page.status_code == 200, page.text
    items = re.findall(r"<li data-resource=\"[^\"]+\"><span>(.*?)</span> <span", page.text)
    return [" ".join(re.sub("<[^>]*>", "", item).split()) for item in items]


async def test_only_administrators_see_the_activity(service: Service) -> None:
    for role in ("viewer", "clerk", "manager"):
        visitor = await signed_in_person(service, role)
        assert (await visitor.get("/activity")).status_code == 403
        assert "/console/activity" not in (await visitor.get("/pets")).text


@pytest.mark.each_database
async def test_the_activity_tells_who_did_what_with_the_newest_first(
    service: Service, ada: Visitor
) -> None:
    grace = await signed_in_person(service, "clerk", "Grace")
    await changed(grace, "/pets", **BELLA)
    service.clock.advance(1)
    await changed(grace, "/pets/1", name="Bello")
    await changed(grace, "/pets/1/reserve")
    service.clock.advance(1)
    await changed(ada, "/categories", name="Cats", description="")
    service.clock.advance(1)
    await ada.post("/keys", name="Till", plan="free", scopes="pets:read")
    page = await ada.get("/activity")
    found = told(page)
    while "Ada added Cats" not in found or len(found) < 5:  # until PostgreSQL has published them
        page = await ada.get("/activity")
        found = told(page)
    assert found == [
        "Ada added the key Till",
        "Ada added Cats",
        "Grace reserved Bello with order 1",
        "Grace renamed Bella to Bello",
        "Grace added Bella",
    ]
    for link in ("/pets/1", "/orders/1", "/categories/2", "/keys/3"):
        assert f'<a href="/console{link}">' in page.text
    assert f'<a href="/console/activity?by=person/{grace.key_id}"><bdi>Grace</bdi>' in page.text


async def test_an_order_and_its_animal_are_one_line(service: Service, ada: Visitor) -> None:
    for name in ("Bella", "Rex"):
        await changed(ada, "/pets", **BELLA | {"name": name})
    for path in ("/pets/1/reserve", "/orders/1/cancel", "/pets/2/reserve", "/orders/2/approve"):
        await changed(ada, path)
    await changed(ada, "/orders/2/deliver")
    await changed(ada, "/pets/1/reserve")
    service.clock.advance(DAY / SECOND)
    ada = await signed_in_person(service, "administrator", "Ada")
    await ada.get("/pets/1")  # which settles the lapse
    assert told(await ada.get("/activity"))[:-2] == [
        "The service made Bella available again, because order 3 lapsed",
        "Ada reserved Bella with order 3",
        "Ada sold Rex with order 2",
        "Ada approved order 2",
        "Ada reserved Rex with order 2",
        "Ada cancelled order 1, so Bella is available again",
        "Ada reserved Bella with order 1",
    ]
    assert told(await ada.get("/activity", kind="order")) == [
        "The service cancelled order 3, because nobody approved it in time",
        "Ada placed order 3 for Bella",
        "Ada delivered order 2",
        "Ada approved order 2",
        "Ada placed order 2 for Rex",
        "Ada cancelled order 1",
        "Ada placed order 1 for Bella",
    ]
    await changed(ada, "/pets/1/delete")
    found = told(await ada.get("/activity", kind="order"))
    assert found[1] == "Ada placed order 3 for animal 1"


async def test_the_activity_is_filtered_by_person_kind_and_day(
    service: Service, ada: Visitor
) -> None:
    grace = await signed_in_person(service, "clerk", "Grace")
    await changed(grace, "/pets", **BELLA)
    await changed(ada, "/pets", **BELLA | {"name": "Rex"})
    await changed(ada, "/categories", name="Cats", description="")
    service.clock.advance(DAY / SECOND)
    ada = await signed_in_person(service, "administrator", "Ada again")
    await changed(ada, "/pets", **BELLA | {"name": "Max"})
    assert told(await ada.get("/activity", by=f"person/{grace.key_id}")) == ["Grace added Bella"]
    assert told(await ada.get("/activity", kind="category")) == ["Ada added Cats"]
    assert told(await ada.get("/activity", kind="key")) == []
    assert told(await ada.get("/activity", day="2026-12-02")) == ["Ada again added Max"]
    both = await ada.get("/activity", kind="pet", day="2026-12-01")
    assert told(both) == ["Ada added Rex", "Grace added Bella"]
    assert '<option value="pet" selected>' in both.text
    assert 'value="2026-12-01"' in both.text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"by": "grace"}, "Who: expected a key or a person, such as key/3 or person/2"),
        ({"by": "person/0"}, "Who: expected a key or a person"),
        ({"by": "person/9223372036854775808"}, "Who: expected a key or a person"),
        ({"by": "person/1\n"}, ""),
        ({"kind": "dragon"}, "Kind: expected one of pet, order, category, key"),
        ({"day": "yesterday"}, "Day: expected a date such as 2026-12-31"),
        ({"day": "2026-13-01"}, "Day: expected a date such as 2026-12-31"),
        ({"day": "20261201"}, "Day: expected a date such as 2026-12-31"),
    ],
)
async def test_an_invalid_filter_is_refused_and_kept(
    ada: Visitor, query: dict[str, str], said: str
) -> None:
    page = await ada.get("/activity", **query)
    assert page.status_code == (400 if said else 200)
    assert said in words(page)


@pytest.mark.parametrize(
    "query",
    [
        {"before": "x", "changes": "1"},
        {"before": "1"},
        {"before": "9" * 19, "changes": "9" * 19},
    ],
)
async def test_an_invalid_place_shows_the_newest(ada: Visitor, query: dict[str, str]) -> None:
    await changed(ada, "/pets", **BELLA)
    assert told(await ada.get("/activity", **query)) == ["Ada added Bella"]


async def test_a_place_before_everything_is_the_end(ada: Visitor) -> None:
    await changed(ada, "/pets", **BELLA)
    page = await ada.get("/activity", before="-1", changes="-1")
    assert told(page) == []
    assert "Nothing else is kept." in words(page)
    assert "Latest" in words(page)


async def test_a_search_that_finds_nothing_says_so(service: Service, ada: Visitor) -> None:
    found = words(await ada.get("/activity", kind="category"))
    assert "Nothing found. Choose another person, kind or day, or" in found
    await service.store.write(do("DELETE FROM api_key_events"))
    assert "No changes are kept." in words(await ada.get("/activity"))


async def test_earlier_activity_is_on_further_pages_with_the_same_filters(ada: Visitor) -> None:
    for number in range(ON_A_PAGE + 5):
        await changed(ada, "/pets", **BELLA | {"name": f"Bella {number}"})
    page = await ada.get("/activity", kind="pet")
    assert len(told(page)) == ON_A_PAGE
    link = re.search(r'href="/console(/activity\?[^"]*)" rel="next">Earlier<', page.text)
    assert link is not None
    assert link[1].startswith("/activity?kind=pet&amp;before=6&amp;changes=0")
    rest = await ada.get(link[1].replace("&amp;", "&"))
    assert told(rest) == [f"Ada added Bella {number}" for number in range(4, -1, -1)]
    assert "Earlier" not in words(rest)


@pytest.mark.parametrize(("animals", "rest"), [(2, "1 more change"), (30, "29 more changes")])
async def test_an_import_is_one_line(ada: Visitor, animals: int, rest: str) -> None:
    content = b"name,categoryId,status\n" + b"Rex,1,\n" * animals
    sent = await ada.post("/import", files={"file": ("animals.csv", content, "text/csv")})
    await changed(ada, sent.headers["location"].removeprefix("/console") + "/run")
    assert told(await ada.get("/activity", kind="pet")) == [f"Ada added Rex and {rest}"]


async def test_no_change_hides_behind_another_with_the_same_request_id(
    service: Service, ada: Visitor
) -> None:
    key = await service.issue(name="Website")
    headers = {"X-Request-Id": "same"}
    for name in ("Bella", "Rex"):
        body = {"name": name, "categoryId": 1}
        await service.request("POST", "/v1/pets", key.token, json=body)
    for number in (1, 2):
        path = f"/v1/pets/{number}"
        await service.request("DELETE", path, key.token, headers=headers)
    assert told(await ada.get("/activity"))[:2] == [
        "Website deleted Rex",
        "Website deleted Bella",
    ]


async def test_each_act_on_a_person_is_a_line_of_its_own(service: Service, ada: Visitor) -> None:
    grace = await signed_in_person(service, "clerk", "Grace")
    for path in ("disable", "enable", "disable"):
        await changed(ada, f"/people/{grace.key_id}/{path}")
    assert told(await ada.get("/activity")) == [
        "Ada disabled the person Grace",
        "Ada enabled the person Grace",
        "Ada disabled the person Grace",
    ]


async def test_a_long_search_without_a_result_offers_to_go_on(
    service: Service, ada: Visitor
) -> None:
    await changed(ada, "/pets", **BELLA)
    numbers = "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 21000)"
    sql = f"INSERT INTO events {numbers} SELECT i, 'evt', 'pet.updated', ?1, 'pet/1', NULL, '{{}}'"
    await service.store.write(do(f"{sql}, '{{}}', 'key/9', NULL FROM n", service.clock()))
    page = await ada.get("/activity", by=f"person/{ada.key_id}")
    assert "Nothing was found so far." in words(page)
    link = re.search(r'href="/console(/activity\?[^"]*)" rel="next">Search earlier<', page.text)
    assert link is not None
    assert told(await ada.get(link[1].replace("&amp;", "&"))) == ["Ada added Bella"]


async def test_each_change_of_a_key_or_a_person_is_told_in_words(
    service: Service, ada: Visitor
) -> None:
    key = await service.issue(name="Till")
    await change(service.store, service.clock, key.id, allowed_networks=("10.0.0.0/8",))
    caller = await stored_key(service.store, key.id)
    grace = await signed_in_person(service, "clerk", "Grace")
    person = await stored_key(service.store, grace.key_id)
    now = service.clock()

    renamed = replace(person, name="Hopper")
    other, sent = f"person {ada.key_id}", f"person {grace.key_id}"

    def recorded() -> object:
        yield insert_event("key 77", "rotated", caller, caller, now)
        yield insert_event("link", "link_used", caller, caller, now)
        yield insert_event("link", "link_used", person, person, now)
        yield insert_event("link", "password_set", person, person, now)
        yield insert_event(sent, "password_set", person, person, now)
        yield insert_event(other, "password_set", person, person, now)
        yield insert_event(sent, "changed", person, renamed, now)
        yield insert_changes(
            *(other, "changed", grace.key_id),
            *({"name": "G", "role": "clerk"}, {"name": "H", "role": "viewer"}, now),
        )
        yield insert_changes(
            *(other, "enabled", grace.key_id),
            *({"state": "disabled", "role": "viewer"}, {"state": "active", "role": "clerk"}, now),
        )
        yield insert_event(sent, "device_ended", person, person, now)
        yield insert_event(other, "changed", person, person, now)

    await service.store.write(recorded())  # type: ignore[arg-type]
    assert told(await ada.get("/activity", kind="key")) == [
        "Ada changed the person Grace",
        "Grace signed the person Grace out on a device",
        "Ada enabled the person Grace and changed the role from Viewer to Clerk",
        "Ada changed the name of the person Grace from G to H and the role from Clerk to Viewer",
        "Grace renamed the person Grace to Hopper",
        "Ada set the password of the person Grace",
        "Grace set a new password",
        "Grace set a password with a link",
        "Grace signed in by a link",
        "Somebody signed in by a link as the key Till",
        "key 77 gave the key Till a new token",
        "the operator changed the networks of the key Till from anywhere to 10.0.0.0/8",
        "the operator added the key Till",
    ]
    history = await ada.get(f"/keys/{key.id}/history")
    assert told(history)[1:3] == [
        "key 77 gave this key a new token",
        "the operator changed the networks from anywhere to 10.0.0.0/8",
    ]


async def test_a_key_without_the_scope_for_animals_sees_changes_of_keys_alone(
    service: Service, ada: Visitor
) -> None:
    await changed(ada, "/pets", **BELLA)
    keeper = await signed_in(service, name="Keeper", scopes=frozenset({"keys:admin"}))
    assert told(await keeper.get("/activity")) == ["the operator added the key Keeper"]


async def test_the_page_of_a_key_leads_to_its_activity(service: Service, ada: Visitor) -> None:
    key = await service.issue(name="Till")
    assert f'href="/console/activity?by=key/{key.id}"' in (await ada.get(f"/keys/{key.id}")).text
    page = await ada.get("/activity", by=f"key/{key.id}")
    assert f'<option value="key/{key.id}" selected>Till (key {key.id})</option>' in page.text
    unknown = await ada.get("/activity", by="key/77")
    assert '<option value="key/77" selected>key 77</option>' in unknown.text


async def test_names_in_the_activity_are_escaped(service: Service) -> None:
    ada = await signed_in_person(service, "administrator", "<b>Ada</b>")
    await changed(ada, "/pets", **BELLA | {"name": "<i>Bella</i>"})
    page = (await ada.get("/activity")).text
    assert "<bdi>&lt;b&gt;Ada&lt;/b&gt;</bdi>" in page
    assert "<bdi>&lt;i&gt;Bella&lt;/i&gt;</bdi>" in page
    assert "<i>" not in page
