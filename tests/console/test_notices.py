"""What a change tells the person on the next page: nobody else can read it, or make it up."""

import secrets
import zlib
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from petstore.console.notices import Notice, Undo, open_notice, seal_notice
from petstore.interface.sealing import seal
from support.page_forms import buttons_of
from support.service import Service
from support.visitor import Visitor, newcomer, signed_in, words

pytestmark = pytest.mark.anyio

BELLA = {"name": "Bella", "categoryId": "1", "status": "available"}


@pytest.mark.usefixtures("dogs")
async def test_a_change_and_its_notice_are_one_commit(
    service: Service, staff: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    write = service.store.write

    async def counted(unit: Any) -> Any:
        written.append(unit.__name__)
        return await write(unit)

    monkeypatch.setattr(service.store, "write", counted)
    assert "is in the store" in words(await staff.submit("/pets", **BELLA))
    # The limiter saves its counts every half second, whatever happens.
    assert [name for name in written if name != "_save"] == ["create_pet"]


@pytest.mark.usefixtures("dogs")
async def test_a_notice_shows_only_in_its_own_session(service: Service, staff: Visitor) -> None:
    told = (await staff.post("/pets", **BELLA)).headers["location"]
    assert "Bella" not in told
    assert "Bella is in the store" in words(await staff.client.get(told))
    other = await signed_in(service)
    assert "Bella is in the store" not in words(await other.client.get(told))


@pytest.mark.parametrize("made_up", ["x", "é", "AAAA", "A" * 100])
async def test_a_made_up_notice_does_not_show(staff: Visitor, made_up: str) -> None:
    page = await staff.get("/pets", notice=made_up)
    assert page.status_code == 200
    assert 'class="notice"' not in page.text


def sealed(text: bytes, secret: bytes) -> str:
    return urlsafe_b64encode(seal(text, secret, b"petstore console notice")).decode("ascii")


@pytest.mark.parametrize("path", ["/sign-in", "/link/x"])
async def test_without_a_session_no_notice_shows(service: Service, path: str) -> None:
    visitor = newcomer(service)
    told = sealed(zlib.compress(b'{"text":"Pay here","undo":{"path":"/pets/1/delete"}}'), b"")
    page = await visitor.get(path, notice=told)
    assert "Pay here" not in page.text


@pytest.mark.usefixtures("dogs")
async def test_a_notice_of_a_session_that_has_ended_does_not_show(staff: Visitor) -> None:
    told = (await staff.post("/pets", **BELLA)).headers["location"].partition("notice=")[2]
    cookies = dict(staff.client.cookies)
    await staff.submit("/sign-out")
    staff.client.cookies.update(cookies)
    assert "Bella" not in (await staff.get("/sign-in", notice=told)).text


@pytest.mark.parametrize(
    "text",
    [
        b"abc",
        zlib.compress(b"abc"),
        zlib.compress(b'{"text":5}'),
        zlib.compress(b'{"text":"\xff"}'),
        zlib.compress(b'{"text":"%s"}' % (b"'" * 1_000_000)),
    ],
    ids=["not compressed", "no JSON", "no text", "no UTF-8", "a million letters"],
)
async def test_a_notice_that_a_person_made_up_in_their_own_session_is_ignored(
    staff: Visitor, text: bytes
) -> None:
    (secret,) = staff.client.cookies.values()
    page = await staff.get("/pets", notice=sealed(text, secret.encode("ascii")))
    assert page.status_code == 200
    assert 'class="notice"' not in page.text


async def test_a_notice_with_a_large_undo_has_none() -> None:
    large = Notice("Changed.", Undo("/", {"a": "a" * 70_000}))
    assert open_notice(seal_notice(large, b"s"), b"s") == Notice("Changed.")


async def test_a_notice_that_is_too_long_for_a_header_has_no_undo(staff: Visitor) -> None:
    await staff.submit("/categories", name="Dogs")
    for length, buttons in ((10, ["Undo"]), (1000, [])):
        text = "".join(chr(0x4E00 + secrets.randbelow(20_000)) for _ in range(length))
        changed = await staff.post("/categories/1", name="Dogs", description=text)
        assert len(changed.headers["location"]) < 3500
        page = await staff.client.get(changed.headers["location"])
        assert "Dogs is changed." in words(page)
        assert [button for button in buttons_of(page) if button == "Undo"] == buttons
