"""The pages of keys, for administrators."""

import asyncio
import html
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from petstore.clock import DAY, MINUTE
from petstore.store.key_status import get_key
from support.keys import change, issue
from support.service import Service
from support.visitor import Visitor, signed_in, words

pytestmark = pytest.mark.anyio

TILL = {
    "name": "Till 2",
    "plan": "pro",
    "scopes": ["orders:read", "pets:read"],
    "allowedNetworks": "203.0.113.0/24\r\n2001:db8::1",
}
TOKEN = re.compile(r"ps_live_[0-9A-Za-z]{38}")


def form_of(page: httpx.Response, action: str) -> dict[str, Any]:
    """Return the fields of a form of a page, as a browser would send it untouched."""
    (form,) = re.findall(rf'<form method="post" action="{action}".*?</form>', page.text, re.DOTALL)
    return dict(_fields(form))


def _fields(form: str) -> Iterator[tuple[str, Any]]:
    boxes: dict[str, list[str]] = {}
    for tag in re.findall(r"<input[^>]*>", form):
        name, value = (_attribute(tag, each) for each in ("name", "value"))
        if 'type="checkbox"' not in tag:
            yield name, value
        elif " checked" in tag:
            boxes.setdefault(name, []).append(value)
    yield from boxes.items()
    for name, options in re.findall(
        r'<select id="\w+" name="(\w+)".*?>(.*?)</select>', form, re.DOTALL
    ):
        chosen = re.findall(r'<option value="(\w*)" selected', options)
        yield name, chosen[0] if chosen else re.findall(r'<option value="(\w*)"', options)[0]
    for name, text in re.findall(
        r'<textarea id="\w+" name="(\w+)"[^>]*>(.*?)</textarea>', form, re.DOTALL
    ):
        yield name, html.unescape(text.removeprefix("\n"))


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf'{name}="([^"]*)"', tag)
    return html.unescape(found[1]) if found else ""


async def change_form(visitor: Visitor, key_id: int) -> dict[str, Any]:
    return form_of(await visitor.get(f"/keys/{key_id}"), f"/console/keys/{key_id}")


async def undo(visitor: Visitor, page: httpx.Response, path: str) -> httpx.Response:
    notice = re.search(r'<div class="notice".*?</div>', page.text, re.DOTALL)
    assert notice is not None
    fields: dict[str, Any] = {}
    for tag in re.findall(r"<input[^>]*>", notice[0]):
        fields[_attribute(tag, "name")] = _attribute(tag, "value")
    return await visitor.submit(path, **fields)


class TestWithoutTheScope:
    PAGES = (
        *("/keys", "/keys/new", "/keys/1", "/keys/1/history", "/deprecations"),
        *("/keys/1/rotate", "/keys/1/revoke", "/keys/1/unban", "/keys/1/rehearse", "/keys/1/link"),
    )

    async def test_a_person_sees_nothing_of_keys_and_gets_403(self, service: Service) -> None:
        clerk = await signed_in(service, scopes=frozenset({"pets:read", "pets:write"}))
        assert "/console/keys" not in (await clerk.get("/pets")).text
        for path in self.PAGES[:5]:
            assert (await clerk.get(path)).status_code == 403, path
        for path in ("/keys", "/keys/1", *self.PAGES[5:]):
            assert (await clerk.post(path)).status_code == 403, path


class TestCreating:
    async def test_the_token_of_a_new_key_is_shown_once_and_works(
        self, staff: Visitor, service: Service
    ) -> None:
        created = await staff.post("/keys", **TILL)
        assert created.status_code == 201
        (token,) = TOKEN.findall(created.text)
        assert "You will not see this token again." in created.text
        key = await get_key(service.store, staff.key_id + 1, None, service.clock)
        assert (key.name, key.plan, key.scopes) == ("Till 2", "pro", ["orders:read", "pets:read"])
        assert key.allowedNetworks == ["203.0.113.0/24", "2001:db8::1/128"]
        for page in ("/keys", f"/keys/{key.id}", f"/keys/{key.id}/history"):
            assert token not in (await staff.get(page)).text
        assert token not in service.log.getvalue().decode()

    async def test_a_form_that_is_sent_twice_creates_one_key_and_shows_its_token_again(
        self, staff: Visitor
    ) -> None:
        form = form_of(await staff.get("/keys/new"), "/console/keys") | TILL
        first, again = [await staff.post("/keys", **form) for _ in range(2)]
        assert TOKEN.findall(first.text) == TOKEN.findall(again.text) != []
        listed = await staff.get("/keys")
        assert listed.text.count("Till 2") == 1

    async def test_another_session_cannot_read_the_token_that_was_shown(
        self, staff: Visitor
    ) -> None:
        form = form_of(await staff.get("/keys/new"), "/console/keys") | TILL
        await staff.post("/keys", **form)
        await staff.post("/sign-in", key=staff.token)
        refused = await staff.post("/keys", **form)
        assert refused.status_code == 409
        assert "cannot be shown" in refused.text
        assert not TOKEN.search(refused.text)

    async def test_what_was_typed_stays_in_a_refused_form(self, staff: Visitor) -> None:
        typed = TILL | {"perMinute": "many", "expiresAt": "2027-01-31", "rehearseSunset": "true"}
        refused = await staff.post("/keys", **typed)
        assert refused.status_code == 400
        assert "expected an integer from 1 to 2147483646</p>" in refused.text
        again = form_of(refused, "/console/keys")
        assert again.pop("once")
        again["scopes"].sort()
        assert again == typed | {
            "perDay": "",
            "allowedNetworks": "2001:db8::1\n203.0.113.0/24",
            "rehearseSunset": ["true"],
        }

    async def test_limits_of_its_own_are_for_enterprise(
        self, staff: Visitor, service: Service
    ) -> None:
        limits = {"perMinute": "7", "perDay": "70"}
        refused = await staff.post("/keys", **TILL | limits)
        assert refused.status_code == 400
        assert "only a key of the plan enterprise has its own limits" in refused.text
        await staff.post("/keys", **TILL | limits | {"plan": "enterprise"})
        key = await get_key(service.store, staff.key_id + 1, None, service.clock)
        assert (key.perMinute, key.perDay) == (7, 70)
        assert (
            form_of(await staff.get(f"/keys/{key.id}"), f"/console/keys/{key.id}").items()
            >= limits.items()
        )

    async def test_only_what_the_own_key_may_give_is_offered(self, service: Service) -> None:
        scopes = frozenset({"keys:admin", "pets:read"})
        networks = ("10.0.0.0/8", "127.0.0.1/32")
        admin = await signed_in(
            service, plan="pro", scopes=scopes, expires_in=2 * DAY / 1000, allowed_networks=networks
        )
        page = await admin.get("/keys/new")
        form = form_of(page, "/console/keys")
        assert re.findall(r'name="scopes" value="(.*?)"', page.text) == ["pets:read", "keys:admin"]
        assert re.findall(r'<option value="(.*?)"', page.text) == ["free", "pro", "enterprise"]
        assert "up to 300." in page.text
        assert "pro: 300 a minute, 10,000 a day" in page.text
        assert form["scopes"] == ["pets:read"]
        assert form["allowedNetworks"] == "10.0.0.0/8\n127.0.0.1/32"
        created = await admin.post("/keys", **form | {"name": "as offered"})
        assert created.status_code == 201, created.text

    @pytest.mark.parametrize(
        ("wanted", "words"),
        [
            ({"scopes": ["pets:write"]}, "your key cannot give pets:write"),
            ({"plan": "business"}, "your key cannot give a higher perMinute than its own, 300"),
            ({"allowedNetworks": ""}, "your key cannot give anywhere"),
            ({"expiresAt": ""}, "your key cannot give a longer life than its own"),
        ],
    )
    async def test_more_than_the_own_key_has_is_refused_in_words(
        self, service: Service, wanted: dict[str, Any], words: str
    ) -> None:
        admin = await signed_in(
            service,
            plan="pro",
            scopes=frozenset({"keys:admin", "pets:read"}),
            expires_in=DAY / 1000,
            allowed_networks=("127.0.0.1/32",),
        )
        form = form_of(await admin.get("/keys/new"), "/console/keys") | {"name": "greedy"}
        refused = await admin.post("/keys", **form | wanted)
        assert refused.status_code == 403
        assert words in refused.text
        assert 'value="greedy"' in refused.text


class TestChanging:
    async def test_only_what_was_typed_is_changed_and_undo_takes_it_back(
        self, staff: Visitor, service: Service
    ) -> None:
        ends_at = service.clock() + 30 * DAY + 5 * MINUTE
        issued = await issue(service.store, service.clock, expires_at=ends_at)
        key_id = issued.key.id
        form = await change_form(staff, key_id)
        wanted = {"plan": "pro", "scopes": ["pets:read"], "expiresAt": "2030-01-31"}
        changed = await staff.submit(f"/keys/{key_id}", **form | wanted)
        assert "test is changed." in words(changed)
        key = await get_key(service.store, key_id, None, service.clock)
        assert (key.name, key.plan, key.scopes) == ("test", "pro", ["pets:read"])
        assert f"{key.expiresAt}" == "2030-01-31 23:59:59+00:00"
        undone = await undo(staff, changed, f"/keys/{key_id}")
        assert "test is as it was before." in words(undone)
        assert await get_key(service.store, key_id, None, service.clock) == issued.key

    async def test_a_use_of_the_key_is_no_conflict(self, staff: Visitor, service: Service) -> None:
        issued = await service.issue("free")
        path = f"/keys/{issued.key.id}"
        form = await change_form(staff, issued.key.id)
        await service.request("GET", "/v1/pets", issued.token)
        await service.limiter.save()
        assert "is changed." in (await staff.submit(path, **form | {"name": "used"})).text

    async def test_what_another_administrator_changed_is_told_and_nothing_typed_is_lost(
        self, staff: Visitor, service: Service
    ) -> None:
        other = await signed_in(service)
        key_id = (await service.issue("free", name="Till")).key.id
        path = f"/keys/{key_id}"
        mine, theirs = [await change_form(each, key_id) for each in (staff, other)]
        await other.submit(path, **theirs | {"plan": "business", "name": "Till 3"})
        conflict = await staff.post(path, **mine | {"plan": "pro", "perDay": ""})
        assert conflict.status_code == 412
        assert "Somebody else changed this key while you were looking at it." in conflict.text
        assert "Name: Till → Till 3 Plan: free → business, and you want pro" in words(conflict)
        saved = await staff.submit(path, **form_of(conflict, f"/console{path}"))
        assert "Till 3 is changed." in words(saved)
        assert (await get_key(service.store, key_id, None, service.clock)).plan == "pro"

    async def test_a_key_that_another_administrator_revoked_meanwhile_is_not_changed(
        self, staff: Visitor, service: Service
    ) -> None:
        key_id = (await service.issue("free", name="Till")).key.id
        form = await change_form(staff, key_id)
        await (await signed_in(service)).submit(f"/keys/{key_id}/revoke")
        refused = await staff.post(f"/keys/{key_id}", **form | {"name": "Till 3"})
        assert refused.status_code == 412
        assert "Somebody else revoked this key while you were editing." in refused.text

    async def test_a_refused_change_keeps_what_was_typed(self, service: Service) -> None:
        admin = await signed_in(service, plan="free", scopes=frozenset({"keys:admin"}))
        key_id = (await service.issue("free", scopes=frozenset({"pets:read"}))).key.id
        form = await change_form(admin, key_id)
        assert form["scopes"] == ["pets:read"]  # offered, as the key has it already
        refused = await admin.post(f"/keys/{key_id}", **form | {"plan": "pro", "name": "mine"})
        assert refused.status_code == 403
        assert "your key cannot give a higher perMinute than its own, 60" in refused.text
        assert 'value="mine"' in refused.text

    async def test_the_last_key_of_administrators_is_told_why_it_must_stay(
        self, staff: Visitor
    ) -> None:
        path = f"/keys/{staff.key_id}"
        form = await change_form(staff, staff.key_id)
        refused = await staff.post(path, **form | {"scopes": ["pets:read"]})
        assert refused.status_code == 409
        assert "is the last one that can administer keys" in refused.text
        assert "the last one" in (await staff.post(f"{path}/revoke")).text

    async def test_an_administrator_who_gives_up_the_scope_leaves_these_pages(
        self, staff: Visitor, service: Service
    ) -> None:
        await signed_in(service)
        form = await change_form(staff, staff.key_id)
        left = await staff.post(f"/keys/{staff.key_id}", **form | {"scopes": ["pets:read"]})
        assert (left.status_code, left.headers["location"]) == (303, "/console")

    async def test_the_history_says_what_was_changed_by_whom(
        self, staff: Visitor, service: Service
    ) -> None:
        key_id = (await service.issue("free", name="Till")).key.id
        path = f"/keys/{key_id}"
        form = await change_form(staff, key_id)
        wanted = {"plan": "pro", "rehearseSunset": "true", "allowedNetworks": "10.0.0.0/8"}
        await staff.submit(path, **form | wanted)
        await staff.submit(path, **await change_form(staff, key_id) | {"expiresAt": "2030-01-31"})
        history = (await staff.get(f"{path}/history")).text
        text = html.unescape(re.sub(r"<[^>]*>|\s+", " ", history))
        text = re.sub(r" +", " ", text)
        assert "Created Name: Till Plan: free" in text
        assert "the operator" in text
        assert (
            "Plan: free → pro Networks: anywhere → 10.0.0.0/8 Rehearses the sunset: no → yes"
            in text
        )
        assert "Expires: never → 31 Jan 2030, 23:59 UTC" in text
        assert f'<a href="/console/keys/{staff.key_id}">key {staff.key_id}</a>' in history


class TestEnding:
    async def test_a_rotated_key_shows_its_new_token_and_the_own_session_goes_on(
        self, staff: Visitor
    ) -> None:
        rotated = await staff.post(f"/keys/{staff.key_id}/rotate", graceSeconds="0")
        assert rotated.status_code == 200
        (token,) = TOKEN.findall(rotated.text)
        assert token != staff.token
        assert (await staff.get("/keys")).status_code == 200

    async def test_the_old_token_of_a_rotated_key_goes_on_as_long_as_wanted(
        self, staff: Visitor, service: Service
    ) -> None:
        issued = await service.issue(name="Till")
        path = f"/keys/{issued.key.id}/rotate"
        (token,) = TOKEN.findall((await staff.post(path, graceSeconds="3600")).text)
        for each in (token, issued.token):
            assert (await service.request("GET", "/v1/pets", each)).status_code == 200
        refused = await staff.post(path, graceSeconds="soon")
        assert refused.status_code == 400
        assert "expected an integer" in refused.text

    async def test_a_key_that_has_ended_cannot_be_rotated_or_signed_in_with(
        self, staff: Visitor, service: Service
    ) -> None:
        key_id = (await service.issue("free", expires_in=60)).key.id
        service.clock.advance(60)
        for action in ("rotate", "link"):
            refused = await staff.post(f"/keys/{key_id}/{action}", graceSeconds="0")
            assert refused.status_code == 409
            assert f"key {key_id} is expired" in refused.text
        assert "With a later day it works again." in (await staff.get(f"/keys/{key_id}")).text

    async def test_a_revoked_key_stops_and_has_only_its_past(
        self, staff: Visitor, service: Service
    ) -> None:
        issued = await service.issue("free", name="Till")
        path = f"/keys/{issued.key.id}"
        assert "This cannot be undone." in (await staff.get(path)).text
        revoked = await staff.submit(f"{path}/revoke")
        assert "Till is revoked." in words(revoked)
        assert (await service.request("GET", "/v1/pets", issued.token)).status_code == 401
        page = await staff.get(path)
        assert 'class="status revoked"' in page.text
        assert '<form method="post" action="/console/keys' not in page.text

    async def test_an_unknown_key_is_not_found(self, staff: Visitor) -> None:
        assert (await staff.get("/keys/99")).status_code == 404
        assert (await staff.post("/keys/99/link")).status_code == 404


class TestSignInLinks:
    async def test_a_link_signs_another_person_in_once(
        self, staff: Visitor, service: Service, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", "petstore")
        issued = await service.issue("free", name="Till", scopes=frozenset({"pets:read"}))
        page = await staff.post(f"/keys/{issued.key.id}/link")
        (secret,) = re.findall(r"http://petstore\.test/console/link/([\w-]+)<", page.text)
        assert page.status_code == 200
        clerk = await signed_in(service, name="Clerk")
        await clerk.submit(f"/link/{secret}")
        assert "Till" in (await clerk.get("/pets")).text
        assert (await clerk.post(f"/link/{secret}")).status_code == 401
        # Not those of the client, which are in the log if another test let them in.
        own = [each.getMessage() for each in caplog.records if each.name.startswith("petstore")]
        assert own == ["key 1 made a link to sign in with key 2"]
        assert secret not in service.log.getvalue().decode()

    async def test_a_link_gives_no_more_than_the_own_key_has(self, service: Service) -> None:
        admin = await signed_in(service, scopes=frozenset({"keys:admin"}))
        key_id = (await service.issue()).key.id
        refused = await admin.post(f"/keys/{key_id}/link")
        assert refused.status_code == 403
        assert "your key cannot give" in refused.text


class TestTheList:
    async def test_keys_come_in_pages(self, staff: Visitor, service: Service) -> None:
        await asyncio.gather(*(service.issue("free", name=f"Till {n}") for n in range(50)))
        first = await staff.get("/keys")
        assert first.text.count("status active") == 50
        (more,) = re.findall(r'<a href="/console/keys\?cursor=(.*?)" rel="next"', first.text)
        rest = await staff.get("/keys", cursor=more)
        assert rest.text.count("status active") == 1
        assert (await staff.get("/keys", cursor="broken")).status_code == 400

    async def test_a_key_near_a_limit_and_one_about_to_expire_need_a_look(
        self, staff: Visitor, service: Service
    ) -> None:
        assert "Nothing." in (await staff.get("/keys")).text
        near = await service.issue("enterprise", name="Near", per_minute=5)
        await service.issue("free", name="Ending", expires_in=DAY / 1000)
        for _ in range(4):
            await service.request("GET", "/v1/pets", near.token)
        await service.limiter.save()
        text = re.sub(r"<[^>]*>|\s+", " ", (await staff.get("/keys")).text)
        assert re.search(r"Near +Used +4 +of +5 +this minute\.", text)
        assert re.search(r"Ending +Expires", text)
        page = (await staff.get(f"/keys/{near.key.id}")).text
        assert re.search(r"Used this minute: <strong>.*4</data></strong> of .*5</data>", page)

    async def test_a_banned_key_needs_a_look_until_it_is_unbanned(
        self, staff: Visitor, service: Service
    ) -> None:
        banned = await service.issue("enterprise", name="Loud", per_minute=1)
        for _ in range(30):
            await service.request("GET", "/v1/pets", banned.token)
            service.clock.advance(0.2)
        await service.limiter.save()
        path = f"/keys/{banned.key.id}"
        assert "Banned until" in (await staff.get("/keys")).text.partition('aria-label="Keys"')[0]
        assert 'class="status banned"' in (await staff.get(path)).text
        unbanned = await staff.submit(f"{path}/unban")
        assert "The ban is lifted." in unbanned.text
        assert 'class="status active"' in unbanned.text
        assert "for sending on" not in (await staff.get("/keys")).text

    async def test_names_are_text_and_not_markup(self, staff: Visitor, service: Service) -> None:
        name = "<script>alert(1)</script>"
        key = await issue(service.store, service.clock, name=name)
        await change(service.store, service.clock, key.key.id, name=name + "2")
        for path in ("/keys", f"/keys/{key.key.id}", f"/keys/{key.key.id}/history"):
            page = await staff.get(path)
            assert name not in page.text
            assert html.escape(name) in page.text
