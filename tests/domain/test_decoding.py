"""JSON in, a typed struct or a plain refusal out."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.domain.decoding import RowMapping, convert, decode_json, moment_in
from petstore.domain.fields import INT64_MAX, INT64_MIN, Id, Int64, Moment
from petstore.errors import InvalidBody, InvalidParameter
from petstore.pets.model import NewPet
from support.exploration import explored
from support.strategies import json_values, pet_like_values

PET = b'{"name": "Bella", "categoryId": 1}'
NOT_JSON = "the body: expected a JSON object; "
REFUSED: dict[str, Sequence[bytes]] = {
    NOT_JSON: (
        *(b"{", b'{"name": "Bella", "categoryId": 1', b'{"name": "Bella", "categoryId": 1,}'),
        *(b'{"name": "Bella", "categoryId": %b}' % odd for odd in (b"01", b"+1", b"NaN")),
        *(b'{"name": "Bella", "categoryId": Infinity}', b'{"name": "Be\nlla", "categoryId": 1}'),
        *(b'{"name": "Be\0lla", "categoryId": 1}', b'{"name": "\\x41", "categoryId": 1}'),
        *(b"{'name': 'Bella', 'categoryId': 1}", b"name=Bella&categoryId=1", b"[1,"),
        *(PET + b"x", PET + b"\0", PET + PET, PET + b" // a comment", b"\xef\xbb\xbf" + PET),
        PET.decode().encode("utf-16"),
    ),
    f"{NOT_JSON}it is empty": (b"", b" \n"),
    f"{NOT_JSON}invalid character (byte 0)": (b"x",),
    f"{NOT_JSON}it is nested too deeply": (
        *(b"[" * 60_000, b'{"a":' * 10_000),
        b'{"name": "Bella", "categoryId": 1, "a": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    ),
    "the body: expected a JSON object": (
        *(b"null", b"true", b"7", b"7.5", b"1e400", b'"Bella"', b"[]", b"[" + PET + b"]"),
    ),
    "the body: expected JSON in UTF-8": (
        *(
            b'{"name": "%b", "categoryId": 1}' % odd
            for odd in (b"\xff", b"\xed\xa0\x80", b"\xc0\xaf")
        ),
        b'{"name": "Bella", "categoryId": 1, "ignored": "\xff"}',
        b'{"name": "Bella", "categoryId": 1, "\xff": "ignored"}',
    ),
    # A lone surrogate, wherever it is.
    "": (
        *(rb'{"name": "\ud83d", "categoryId": 1}', rb'{"name": "\udc36", "categoryId": 1}'),
        *(rb'{"name": "\udc36\ud83d", "categoryId": 1}', rb'{"name": "\ud83dx", "categoryId": 1}'),
        rb'{"name": "Bella", "categoryId": 1, "ignored": "\ud83d"}',
        rb'{"name": "Bella", "categoryId": 1, "\ud83d": "ignored"}',
    ),
    "name: expected": (b'{"name": "Bella", "categoryId": 1, "name": 5}',),
    # Not an integer of 64 bits.
    "categoryId: expected a whole number": [
        b'{"name": "Bella", "categoryId": %b}' % number
        for number in (
            *(b"true", b"5.5", b"5e-1", b"0.1", b"9007199254740993.5", b"4.9999999999999999999999"),
            *(b"9223372036854775808", b"9223372036854775808.0", b"-9223372036854775809.0"),
            *(b"1e19", b"1e999999999", b"1e-999999999", b"1e99999999999999999999", b"9" * 50_000),
            *(b"0." + b"9" * 50_000, b"1e" + b"9" * 50_000, b"1e-" + b"9" * 50_000),
        )
    ],
}


@pytest.mark.parametrize(
    ("message", "text"),
    [(message, text) for message, texts in REFUSED.items() for text in texts],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_no_pet_is_refused_with_the_reason(message: str, text: bytes) -> None:
    with pytest.raises(InvalidBody, match=f"^{re.escape(message)}"):
        decode_json(text, NewPet)


BELLA = NewPet("Bella", 1)
MAX_EXACT = 9007199254740993
TAKEN: dict[bytes, NewPet] = {
    rb'{"name": "\ud83d\udc36", "categoryId": 1}': NewPet("\N{DOG FACE}", 1),
    b'{"name": 5, "name": "Bella", "categoryId": "x", "categoryId": 1}': BELLA,
    b" \t\r\n" + PET + b" \t\r\n": BELLA,
    **{
        b'{"name": "Bella", "categoryId": 1, "other": %b}' % ignored: BELLA
        for ignored in (
            *(b"null", b"1e999", b"0." + b"9" * 50_000, b"9" * 50_000, b"1e" + b"9" * 50_000),
            *(b'"\\u0000"', b"[{}]", b"[1.5,{},[]]"),
        )
    },
    # A whole number is an integer however it is written.
    **{
        b'{"name": "Bella", "categoryId": %b}' % number: NewPet("Bella", meant)
        for number, meant in (
            *((b"5.0", 5), (b"-5e0", -5), (b"5E+0", 5), (b"50e-1", 5), (b"0.05e+2", 5)),
            *((b"5e2", 500), (b"0.0", 0), (b"-0e-999999999", 0), (b"-0", 0)),
            *((b"9007199254740993.0", MAX_EXACT), (b"9223372036854775807.0", INT64_MAX)),
            *((b"-922337203685477580.8e1", INT64_MIN), (b"1" + b"0" * 50_000 + b"e-50000", 1)),
            *((b"5." + b"0" * 50_000, 5), (b"0." + b"0" * 50_000 + b"5e50001", 5)),
            (b"5e" + b"0" * 50_000, 5),
        )
    },
}


@pytest.mark.parametrize(("text", "pet"), TAKEN.items(), ids=lambda value: repr(value)[:40])
def test_a_pet_is_taken_however_it_is_written(text: bytes, pet: NewPet) -> None:
    assert decode_json(text, NewPet) == pet


def damaged(value: Any, damage: list[tuple[int, int]]) -> bytes:
    text = bytearray(json.dumps(value, ensure_ascii=False).encode())
    for place, byte in damage:
        text[place % len(text)] = byte
    return bytes(text)


damages = st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=3)


@explored(100)
@given(st.binary(max_size=200) | st.builds(damaged, json_values | pet_like_values, damages))
def test_any_bytes_are_a_pet_or_an_invalid_body(text: bytes) -> None:
    field = ""
    try:
        pet = decode_json(text, NewPet)
    except InvalidBody as error:
        field = error.message.split(":")[0]
    if field:
        assert field in {"the body", "name", "categoryId", "status"}
        return
    assert 1 <= len(pet.name) <= 255
    assert not pet.name.isspace()
    assert "\0" not in pet.name
    assert type(pet.category_id) is int
    assert INT64_MIN <= pet.category_id <= INT64_MAX
    assert pet.status in {msgspec.UNSET, "available", "pending", "sold"}
    json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "2026-12-24", "2026-12-24T10:00:00", "2026-12-24T10:00Z", "2026-12-24T24:00:00Z"),
        *("20261224T100000Z", "2026-W52-4T10:00:00Z", " 2026-12-24T10:00:00Z", "\udcff"),
        "\uff12026-12-24T10:00:00Z",
    ],
)
def test_text_that_is_not_a_date_and_time_with_an_offset_is_no_moment(text: str) -> None:
    assert moment_in(text) is None
    for moment in ("2026-12-24T10:00:00Z", "2026-12-24T12:00:00+02:00"):
        assert moment_in(moment) == datetime(2026, 12, 24, 10, tzinfo=UTC)


# Lists


def test_a_list_is_decoded_item_by_item() -> None:
    text = b' [ %b , {"categoryId": 1.0, "name": 5, "name": "Rex"} ] ' % PET
    assert decode_json(text, list[NewPet]) == [NewPet("Bella", 1), NewPet("Rex", 1)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "; it is empty"),
        (b"[" + PET, "; it ends too early, or has half of a surrogate pair"),
        (b"[" + PET + b",]", "; trailing comma in array (byte 36)"),
        (b"[" + PET + b"]x", "; trailing characters (byte 37)"),
        (b"[" + 101 * b"0," + b"x]", "; invalid character (byte 203)"),
        (b"[{'a':1}]", "; expected '\"' (byte 2)"),
        (b"[" * 60_000, "; it is nested too deeply"),
        (b'[{"a":' + b"[" * 30_000 + b"]" * 30_000 + b"}]", "; it is nested too deeply"),
        *((text, "") for text in (b"null", PET, b"[]", b"[" + 100 * b"0," + b"0]")),
    ],
    ids=lambda text: repr(text[:12]),
)
def test_what_is_no_list_of_1_to_100_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(InvalidBody) as refused:
        decode_json(text, list[NewPet])
    assert refused.value.message == f"the body: expected a JSON array of 1 to 100 items{reason}"


def test_every_invalid_item_of_a_list_is_named_in_a_short_message() -> None:
    item = b'{"name": "Bella", "categoryId": 1e99}'
    with pytest.raises(InvalidBody) as refused:
        decode_json(b"[" + b",".join([item] * 100) + b"]", list[NewPet])
    message = refused.value.message
    assert [f"[{n}].categoryId" in message for n in range(100)] == [True] * 100
    assert len(message) < 2_000


def test_converted_values_are_refused_with_all_that_is_wrong() -> None:
    values = {"name": "", "categoryId": InvalidBody("categoryId: there is none"), "status": "lost"}
    with pytest.raises(InvalidBody) as refused:
        convert(values, NewPet, InvalidBody)
    messages = [refused.value.message, *refused.value.others]
    assert [message.partition(":")[0] for message in messages] == ["name", "categoryId", "status"]
    assert messages[1] == "categoryId: there is none"
    assert convert({"name": "Bella", "categoryId": 1}, NewPet, InvalidParameter) == BELLA
    with pytest.raises(InvalidParameter, match=r"^categoryId: required; expected a whole number "):
        convert({"name": "Bella"}, NewPet, InvalidParameter)


# Structs as rows of a database

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
LATER = NOON.astimezone(timezone(timedelta(hours=1))) + timedelta(microseconds=5)


class Visit(Struct):
    id: Id
    began_at: Moment
    ended_at: Moment | UnsetType = UNSET
    planned_at: Moment | UnsetType = UNSET
    guests: Int64 | UnsetType = UNSET
    was_late: Annotated[bool, Meta(title="")] = True


VISITS = RowMapping(Visit, texts=["planned_at"], computed={"guests": "1 + 1"})
STORED = ("id", "began_at", "ended_at", "planned_at")


@pytest.mark.parametrize(
    ("visit", "row"),
    [
        (Visit(1, NOON, guests=2), (1, 1_796_126_400_000, None, None)),
        (
            Visit(1, NOON, NOON, LATER, 2),
            (1, 1_796_126_400_000, 1_796_126_400_000, "2026-12-01T13:00:00.000005+01:00"),
        ),
    ],
)
def test_a_struct_is_read_as_it_was_stored(visit: Visit, row: tuple[object, ...]) -> None:
    assert tuple(VISITS.values(visit, STORED)) == row
    assert repr(VISITS.read((*row, 2, 1))) == repr(visit)
    assert VISITS.columns == "id, began_at, ended_at, planned_at, 1 + 1 AS guests, was_late"
