"""The pages of webhooks."""

import re
from typing import Any

import httpx
import pytest

from petstore.clock import MINUTE
from petstore.databases.contract import Statement
from petstore.keys.model import SCOPES
from support.page_forms import conflict_of, form_of, form_to, press, succeed
from support.service import Service, running_service
from support.stores import do
from support.visitor import Visitor, signed_in, words
from support.webhooks import NOW, URL, add_deliveries, add_events

pytestmark = pytest.mark.anyio

SECRET = r'<code id="secret">whsec_[A-Za-z0-9+/]{43}=</code>'
HOOK = {"url": URL, "description": "Till", "types": ["order.placed", "pet.created"]}


async def create(visitor: Visitor, **wanted: Any) -> None:
    response = await visitor.post("/webhooks", **HOOK | wanted)
    assert response.status_code == 201, response.text


async def test_without_a_master_secret_webhooks_cannot_be_added(postgres_url: str) -> None:
    async with running_service(postgres_url, secret_file="") as service:
        page = await (await signed_in(service)).get("/webhooks")
        assert "its operator has not set them up" in words(page)
        assert "/webhooks/new" not in page.text


async def test_an_administrator_sees_failing_webhooks_of_others_first_and_disables_them(
    service: Service, staff: Visitor
) -> None:
    for _ in range(3):
        await create(staff)
    boss = await signed_in(service, scopes=frozenset(SCOPES))
    assert "need attention" not in words(await boss.get("/today"))
    await service.store.write(
        do("UPDATE webhooks SET failures = 3, failing_since = ?1 WHERE id = 3", NOW)
    )
    listed = await boss.get("/webhooks")
    assert re.findall(r'href="/console/webhooks/(\d)"', listed.text) == ["3", "1", "2"]
    assert "failing since" in words(listed)
    assert '<a href="/console/people/2"><bdi>test</bdi></a>' in listed.text
    assert "Webhooks need attention" in words(await boss.get("/today"))
    page = await boss.get("/webhooks/3")
    for text in ("Send a test", "Send missed events", "Deliveries, newest first", "Delete this"):
        assert text not in words(page)
    assert "Disabled. The owner is told." in words(await succeed(boss, page, "Disable"))
    assert (await boss.post("/webhooks/3/enable")).status_code == 403


async def test_a_change_can_be_undone_and_a_conflict_keeps_the_input(staff: Visitor) -> None:
    await create(staff)
    page = await staff.get("/webhooks/1")
    typed = {"url": f"{URL}/new", "description": ""}
    form = form_to(page, "/webhooks/1").fields
    changed = await staff.submit("/webhooks/1", **form | typed | {"types": []})
    assert "The webhook is changed." in words(changed)
    saved = form_of(changed, "Save").fields
    assert saved.items() >= typed.items()
    assert "types" not in saved
    undone = await succeed(staff, changed, "Undo")
    assert "The webhook is as it was before." in words(undone)
    assert form_of(undone, "Save").fields["url"] == URL
    for kind in HOOK["types"]:
        assert f'value="{kind}" checked' in undone.text
    await succeed(staff, undone, "Save", description="Other")
    late = await press(staff, undone, "Save", description="Mine")
    assert late.status_code == 412
    assert "Another user changed this webhook" in words(late)
    assert conflict_of(late, "What it is for") == ["Till", "Other", "Mine"]
    saved_anyway = await succeed(staff, late, "Save mine anyway")
    assert form_of(saved_anyway, "Save").fields["description"] == "Mine"


async def test_a_delivery_does_not_cause_a_conflict(service: Service, staff: Visitor) -> None:
    await create(staff)
    page = await staff.get("/webhooks/1")
    await service.store.write(do("UPDATE webhooks SET last_success_at = 1"))
    changed = await succeed(staff, page, "Save", description="Mine")
    assert "The webhook is changed." in words(changed)


async def test_a_webhook_is_tested_once_however_often_the_button_is_pressed_unless_disabled(
    service: Service, staff: Visitor
) -> None:
    await create(staff)
    for _ in range(2):
        sent = await staff.submit("/webhooks/1/test", once="abc")
        assert "A test is on its way." in words(sent)
    tests = Statement("SELECT count(*) FROM events WHERE type = 'webhook.test'")
    assert await service.store.read(tests) == [(1,)]
    disabled = await staff.submit("/webhooks/1/disable")
    assert "No events are sent." in words(disabled)
    assert "Enable it again" in words(disabled)
    assert "After you enable it, it gets the events from then on." in words(disabled)
    refused = await staff.post("/webhooks/1/test", once="a")
    assert refused.status_code == 409
    assert "disabled" in words(refused)
    assert "Events are sent again from now on." in words(await staff.submit("/webhooks/1/enable"))


async def test_missed_events_are_sent_since_a_time(service: Service, staff: Visitor) -> None:
    await create(staff)
    await add_events(service.store, [NOW, NOW + MINUTE, NOW + 2 * MINUTE])
    page = await staff.get("/webhooks/1")
    refused = await press(staff, page, "Send missed events", since="soon")
    assert refused.status_code == 400
    assert "Since: expected a date and time" in words(refused)
    sent = await succeed(staff, page, "Send missed events", since="2026-12-01T12:01")
    assert "Missed events are being sent." in words(sent)
    select = Statement("SELECT recovered_to FROM webhooks")
    assert await service.store.read(select) == [(2,)]  # behind that of the key and the first


async def test_a_form_sent_twice_shows_one_secret_and_only_once(
    service: Service, staff: Visitor
) -> None:
    for path, fields in (("/webhooks", HOOK), ("/webhooks/1/rotate", {"graceSeconds": "3600"})):
        opened = await staff.get("/webhooks/new" if path == "/webhooks" else "/webhooks/1")
        once = form_to(opened, path).fields["once"]
        sent = [await staff.post(path, **fields, once=once) for _ in range(2)]
        shown = [len(re.findall(SECRET, page.text)) for page in sent]
        assert shown == [1, 0]
        assert sent[1].status_code == 409
        assert "showed its secret; rotate it to get another" in words(sent[1])
    for listed in ("/webhooks", "/webhooks/1"):
        page = await staff.get(listed)
        assert "whsec_" not in page.text
        assert URL in page.text.replace("<wbr>", "")
    response = await service.request("GET", "/v1/webhooks", staff.token)
    assert len(response.json()) == 1
    for grace in ("soon", "9" * 5000):
        assert (await staff.post("/webhooks/1/rotate", graceSeconds=grace)).status_code == 400


async def test_the_newest_deliveries_come_first_and_links_lead_to_older_ones(
    service: Service, staff: Visitor
) -> None:
    await create(staff)
    await add_deliveries(service.store, 1, *26 * ["failed"])
    newest = await staff.get("/webhooks/1")
    assert numbers_of(newest) == [26, 25, 24]
    assert numbers_of(await follow(staff, newest, "Older")) == [*range(23, 3, -1)]
    failed = await follow(staff, await staff.get("/webhooks/1", state="failed"), "Older")
    assert numbers_of(failed) == [6, 5, 4, 3, 2, 1]
    assert ">Older<" not in failed.text
    assert numbers_of(await follow(staff, failed, "Newest"))[0] == 26


def numbers_of(page: httpx.Response) -> list[int]:
    return [int(number) for number in re.findall(r"/deliveries/(\d+)/retry", page.text)]


async def follow(visitor: Visitor, page: httpx.Response, text: str) -> httpx.Response:
    """Follow a link to other deliveries: it leads to the list, not to the top of the page."""
    link = re.search(rf'href="/console([^"]*)#deliveries-title"[^>]*>{text}</a>', page.text)
    assert link is not None
    return await visitor.get(link[1].replace("&amp;", "&"))
