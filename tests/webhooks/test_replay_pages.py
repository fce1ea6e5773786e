"""The pages that show a delivery, and send events again: that of one delivery, or many."""

from collections.abc import Mapping
from typing import Any

import pytest

from petstore.clock import DAY, MINUTE
from petstore.databases.contract import Statement
from petstore.webhooks.model import MAX_REPLAY
from petstore.webhooks.pages import EVENT_WORDS
from support.history import forget_keys
from support.manual_clock import ManualClock
from support.page_forms import buttons_of, press, succeed
from support.service import Service
from support.stores import do
from support.visitor import Visitor, signed_in, words
from support.webhooks import NOW, URL, add_deliveries, add_events

pytestmark = pytest.mark.anyio

SELECTED = {"send": "yes", "once": "a"}
DELIVERY = "/webhooks/1/deliveries/1"


@pytest.fixture
async def shop(service: Service, staff: Visitor) -> Visitor:
    """Staff with a webhook that gets every event."""
    await forget_keys(service.store)
    created = await staff.post("/webhooks", url=URL, description="", types=[])
    assert created.status_code == 201
    return staff


async def sent(service: Service, columns: str = "sequence") -> list[Any]:
    """Return some columns of the pending deliveries."""
    sql = f"SELECT {columns} FROM webhook_deliveries WHERE state = 'pending' ORDER BY id"  # noqa: S608
    return await service.store.read(Statement(sql))


# One delivery


async def test_a_delivery_shows_what_was_sent_and_what_came_back(
    service: Service, shop: Visitor
) -> None:
    await add_events(service.store, [NOW])
    await service.store.write(do("""UPDATE events SET data = '{"name":"<b>Rex</b>"}'"""))
    await add_deliveries(service.store, 1, "failed")
    body = "<script>alert(1)</script>\u202e"
    await service.store.write(do("UPDATE webhook_deliveries SET response_body = ?1", body))
    listed = await shop.get("/webhooks/1")
    assert f'href="/console{DELIVERY}"' in listed.text
    page = await shop.get(DELIVERY)
    assert "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;\u202e</bdi>" in page.text
    assert "&#34;name&#34;: &#34;&lt;b&gt;Rex&lt;/b&gt;&#34;" in page.text
    for said in (
        "The receiver refused it: 500 Internal Server Error. Status500",
        f"Webhook-Idevt_{1:024x}",
        "Webhook-Signaturemade of the secret at each attempt, and not shown",
    ):
        assert said in words(page)
    assert "whsec_" not in page.text


async def test_a_pending_delivery_is_sent_now_from_its_page_or_the_list(
    service: Service, shop: Visitor
) -> None:
    await add_events(service.store, [NOW, NOW])
    await add_deliveries(service.store, 1, "pending", "pending")
    await service.store.write(do("UPDATE webhook_deliveries SET resource = 'pet/' || id"))
    for path, due in ((DELIVERY, [(1,), (0,)]), ("/webhooks/1", [(1,), (1,)])):
        page = await succeed(shop, await shop.get(path), "Send now")
        assert "The event is sent now. This cannot be undone." in words(page)
        assert await sent(service, f"CAST(due_at <= {NOW} AS INTEGER)") == due
        assert "Send now" not in buttons_of(await shop.get(path))


async def test_the_page_of_a_pending_delivery_says_what_it_waits_for(
    service: Service, shop: Visitor
) -> None:
    await add_events(service.store, [NOW, NOW])
    await add_deliveries(service.store, 1, "pending", "pending", created_at=NOW)
    second = "/webhooks/1/deliveries/2"
    page = await shop.get(second)
    assert "Waitsfor delivery 1, an earlier one of pet/7" in words(page)
    assert "Send now" not in buttons_of(page)
    await service.store.write(do("UPDATE webhooks SET paused_until = ?1", NOW + MINUTE))
    assert "Waitsuntil 1 Dec 2026, 12:01 UTC, as the receiver asked" in words(
        await shop.get(DELIVERY)
    )
    refused = await shop.post(f"{second}/retry", once="a")
    assert refused.status_code == 409
    assert "Delivery 2 waits for delivery 1, an earlier one of its resource" in words(refused)


async def test_a_pending_delivery_cannot_be_sent_again(service: Service, shop: Visitor) -> None:
    await add_events(service.store, [NOW])
    await add_deliveries(service.store, 1, "pending")
    await service.store.write(
        do("UPDATE webhook_deliveries SET response_status = NULL, error = NULL")
    )
    page = await shop.get(DELIVERY)
    assert "Send again" not in buttons_of(page)
    assert "None yet." in words(page)
    assert 'data-refresh="3"' in page.text
    assert "Send again" not in buttons_of(await shop.get("/webhooks/1"))


async def test_an_event_that_is_no_longer_kept_is_said_to_be_gone(
    service: Service, shop: Visitor
) -> None:
    await add_deliveries(service.store, 1, "failed")
    page = await shop.get(DELIVERY)
    assert "The event is no longer kept, so it can neither be shown nor sent again." in words(page)
    assert "Send again" not in buttons_of(page)
    refused = await shop.post(f"{DELIVERY}/retry", once="a")
    assert refused.status_code == 409
    assert "The event of delivery 1 is no longer kept" in words(refused)


async def test_a_response_without_a_body_says_so(service: Service, shop: Visitor) -> None:
    await add_deliveries(service.store, 1, "succeeded")
    await service.store.write(do("UPDATE webhook_deliveries SET response_body = '', error = NULL"))
    assert "Status500 It had no body." in words(await shop.get(DELIVERY))


async def test_the_delivery_of_another_key_or_webhook_is_not_found(
    service: Service, shop: Visitor
) -> None:
    await shop.post("/webhooks", url=URL, description="", types=[])
    await add_events(service.store, [NOW])
    await add_deliveries(service.store, 1, "failed")
    other = await signed_in(service)
    for visitor, path in (
        *(
            (other, DELIVERY),
            (shop, "/webhooks/2/deliveries/1"),
            (shop, "/webhooks/1/deliveries/9"),
        ),
        (shop, "/webhooks/1/deliveries/x"),
    ):
        assert (await visitor.get(path)).status_code == 404
        assert (await visitor.post(f"{path}/retry", once="a")).status_code == 404
    assert await sent(service) == []


async def test_the_payload_is_shown_to_those_who_may_read_the_event(service: Service) -> None:
    visitor = await signed_in(service, scopes=frozenset({"webhooks:write"}))
    await visitor.post("/webhooks", url=URL, description="", types=[])
    await add_events(service.store, [NOW])
    await add_deliveries(service.store, 1, "failed")
    page = await visitor.get(DELIVERY)
    assert "You may not read events of this type." in words(page)
    assert "sequence" not in page.text
    assert "Send again" not in buttons_of(page)
    assert (await visitor.post(f"{DELIVERY}/retry", once="a")).status_code == 403


async def test_one_delivery_is_sent_again_from_its_page(service: Service, shop: Visitor) -> None:
    await add_events(service.store, [NOW])
    await add_deliveries(service.store, 1, "failed")
    page = await succeed(shop, await shop.get(DELIVERY), "Send again")
    assert "The event is sent again. This cannot be undone." in words(page)
    assert "Delivery 2" in words(page)
    shown = words(await shop.get(DELIVERY))
    assert "Sent again1 Dec 2026, 12:00 UTC, by another delivery" in shown


async def test_one_delivery_is_sent_again_from_the_list(service: Service, shop: Visitor) -> None:
    await add_events(service.store, [NOW])
    await add_deliveries(service.store, 1, "succeeded")
    page = await succeed(shop, await shop.get("/webhooks/1"), "Send again")
    assert "The event is sent again. This cannot be undone." in words(page)
    assert "Deliveries, newest first" in words(page)
    assert await sent(service) == [(1,)]
    again = await shop.post(f"{DELIVERY}/retry", once="other", back="list")
    assert again.status_code == 409
    assert "The event of delivery 1 is pending: delivery 2 sends it" in words(again)


async def test_a_second_click_sends_an_event_once(service: Service, shop: Visitor) -> None:
    await add_events(service.store, [NOW])
    await add_deliveries(service.store, 1, "failed")
    for _ in range(2):
        page = await shop.submit(f"{DELIVERY}/retry", once="a")
        assert "The event is sent again." in words(page)
    assert await sent(service) == [(1,)]


async def test_a_disabled_webhook_offers_nothing_to_send(service: Service, shop: Visitor) -> None:
    await add_events(service.store, [NOW])
    await add_deliveries(service.store, 1, "failed", "pending")
    await shop.submit("/webhooks/1/disable")
    for path in ("/webhooks/1", DELIVERY, "/webhooks/1/replay"):
        assert not {"Send again", "Send it again"} & {*buttons_of(await shop.get(path))}
    assert "The webhook is disabled, so nothing can be sent again." in words(
        await shop.get(DELIVERY)
    )
    assert "The webhook is disabled. Enable it first." in words(
        await shop.get("/webhooks/1/replay")
    )
    assert "when the webhook is enabled" in words(await shop.get("/webhooks/1/deliveries/2"))
    assert (await shop.post("/webhooks/1/replay", **SELECTED)).status_code == 409


# Many


async def test_the_failed_ones_are_counted_before_they_are_sent(
    service: Service, shop: Visitor
) -> None:
    await add_events(service.store, [NOW - 1, NOW, NOW, NOW])
    await add_deliveries(service.store, 1, "failed", "succeeded", "failed", "failed")
    page = await shop.get("/webhooks/1/replay")
    assert "2 failed deliveries since 1 Dec 2026, 12:00 UTC They will be sent again." in words(page)
    assert await sent(service) == []
    done = await succeed(shop, page, "Send them again", send="yes")
    assert "2 events are sent again. This cannot be undone." in words(done)
    assert await sent(service) == [(3,), (4,)]
    assert "failedsent again" in words(done)
    page = await shop.get("/webhooks/1/replay")
    assert "0 failed deliveries since 1 Dec 2026, 12:00 UTC Nothing has to be sent again." in words(
        page
    )
    assert buttons_of(page) == ["Count them"]


async def test_one_failed_delivery_is_one(service: Service, shop: Visitor) -> None:
    await add_events(service.store, [NOW])
    await add_deliveries(service.store, 1, "failed")
    page = await shop.get("/webhooks/1/replay")
    assert "1 failed delivery since 1 Dec 2026, 12:00 UTC It will be sent again." in words(page)
    done = await succeed(shop, page, "Send it again", send="yes")
    assert "1 event is sent again. This cannot be undone." in words(done)


@pytest.mark.parametrize(("window", "count"), [("hour", 1), ("day", 2), ("week", 3)])
async def test_the_events_of_a_period_can_be_sent_again(
    service: Service, shop: Visitor, clock: ManualClock, window: str, count: int
) -> None:
    now = clock()
    await add_events(service.store, [now - 2 * DAY, now - DAY // 2, now - 30 * MINUTE])
    page = await shop.post("/webhooks/1/replay", window=window, state="")
    assert f"{count} event" in words(page)
    button = "Send it again" if count == 1 else "Send them again"
    done = await succeed(shop, page, button, send="yes")
    assert f"{count} event" in words(done)
    assert len(await sent(service)) == count


async def test_a_selection_can_have_a_start_an_end_and_types(
    service: Service, shop: Visitor, clock: ManualClock
) -> None:
    await add_events(service.store, [clock() - DAY, clock()])
    await add_events(service.store, [clock() - DAY], "order.placed")
    times = {"window": "own", "since": "2026-11-30T00:00", "until": "2026-12-01 12:00", "state": ""}
    page = await shop.post("/webhooks/1/replay", **times)
    expected = "2 events since 30 Nov 2026, 00:00 UTC and before 1 Dec 2026, 12:00 UTC They"
    assert expected in words(page)
    typed = await shop.post("/webhooks/1/replay", **times, type=["order.placed"])
    assert 'value="order.placed" checked' in typed.text
    await succeed(shop, typed, "Send it again", send="yes")
    assert await sent(service) == [(3,)]
    none = times | {"since": "2026-11-01", "until": "2026-11-02"}
    assert "0 events" in words(await shop.post("/webhooks/1/replay", **none))
    elsewhere = times | {"until": "2026-11-30T02:00+02:00", "since": "2026-11-29"}
    assert "0 events" in words(await shop.post("/webhooks/1/replay", **elsewhere))
    open_end = {"window": "own", "since": "2026-12-01T11:00", "state": ""}
    assert "1 event since" in words(await shop.post("/webhooks/1/replay", **open_end))


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"since": "yesterday"}, "expected a date and time, such as"),
        ({"since": ""}, "expected a date and time, such as"),
        ({"since": "0001-01-01T00:00+23:59"}, "expected a date and time, such as"),
        ({"since": "2026-11-21T10:00", "until": "x"}, "expected a date and time, such as"),
        ({"since": "2026-11-21T10:00", "until": "2026-11-20"}, "expected a date and time after"),
    ],
)
async def test_a_selection_without_a_time_is_refused_and_keeps_the_input(
    shop: Visitor, times: dict[str, str], said: str
) -> None:
    refused = await shop.post("/webhooks/1/replay", window="own", **times)
    assert refused.status_code == 400
    assert said in words(refused)
    assert 'value="own" selected' in refused.text
    assert f'value="{times["since"]}"' in refused.text


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "lost"},
        {"type": "pet.eaten"},
        {"type": '"><script>'},
        {"cursor": "x"},
        {"since": "x"},
        {"since": "2026-12-01"},
    ],
)
async def test_a_forged_selection_is_refused(
    service: Service, shop: Visitor, fields: Mapping[str, str]
) -> None:
    await add_events(service.store, [NOW])
    refused = await shop.post("/webhooks/1/replay", **SELECTED, **fields)
    assert refused.status_code == 400
    assert "<script>" not in refused.text.partition("<main")[2]
    assert await sent(service) == []


async def test_many_events_are_sent_part_by_part(service: Service, shop: Visitor) -> None:
    await add_events(service.store, [NOW] * (MAX_REPLAY + 1))
    await add_deliveries(service.store, 1, *["failed"] * (MAX_REPLAY + 1))
    page = await press(shop, await shop.get("/webhooks/1/replay"), "Send them again", send="yes")
    for _ in range(2):  # nothing has arrived in between
        assert "2 000 events are sent again so far" in words(page)
        assert "2 000 deliveries are pending, the most at once." in words(page)
        assert "data-continue" not in page.text
        page = await press(shop, page, "Go on", send="yes")
    arrived = "UPDATE webhook_deliveries SET state = 'succeeded' WHERE state = 'pending'"
    await service.store.write(do(arrived))
    done = await succeed(shop, page, "Go on", send="yes")
    assert "2,001 events are sent again. This cannot be undone." in words(done)
    assert await sent(service) == [(MAX_REPLAY + 1,)]


async def test_a_webhook_with_many_pending_deliveries_refuses_more(
    service: Service, shop: Visitor
) -> None:
    await add_events(service.store, [NOW])
    await add_deliveries(service.store, 1, *["pending"] * MAX_REPLAY)
    refused = await shop.post("/webhooks/1/replay", **SELECTED, state="failed")
    assert refused.status_code == 409
    assert "2000 deliveries or more are pending; wait until there are fewer" in words(refused)
    assert buttons_of(refused) == ["Count them"]


async def test_only_types_that_the_webhook_gets_can_be_chosen(staff: Visitor) -> None:
    for types in (["order.placed"], ["order.placed", "pet.created"], []):
        await staff.post("/webhooks", url=URL, description="", types=types)
    shown = [(await staff.get(f"/webhooks/{number}/replay")).text for number in (1, 2, 3)]
    assert [page.count('type="checkbox" name="type"') for page in shown] == [0, 2, len(EVENT_WORDS)]


async def test_a_long_search_goes_on_by_itself(service: Service, shop: Visitor) -> None:
    await add_events(service.store, [NOW] * 50_000)
    await add_events(service.store, [NOW], "order.placed")
    page = await shop.post("/webhooks/1/replay", window="ever", state="", type="order.placed")
    assert "At least 0 events" in words(page)
    part = await press(shop, page, "Send them again", send="yes")
    assert "0 events are sent again so far" in words(part)
    assert 'action="/console/webhooks/1/replay" data-continue' in part.text
    done = await succeed(shop, part, "Go on", send="yes")
    assert "1 event is sent again." in words(done)
    assert await sent(service) == [(50_001,)]
