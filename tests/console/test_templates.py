"""What templates do with names, whatever direction and characters these have."""

import pytest

from petstore.console.forms import isolated
from support.visitor import Visitor

HOSTILE = "\N{RIGHT-TO-LEFT OVERRIDE}gnp.evil"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Bella", "Bella"),
        (HOSTILE, HOSTILE),  # it ends with its isolate
        ("a\N{POP DIRECTIONAL ISOLATE}b", "ab"),
        ("a\N{RIGHT-TO-LEFT ISOLATE}b\N{LEFT-TO-RIGHT ISOLATE}c\N{FIRST STRONG ISOLATE}", "abc"),
        ("a\n\r\x1c\x1d\x1e\x85\N{PARAGRAPH SEPARATOR}b", "a       b"),
    ],
)
def test_direction_characters_in_a_name_cannot_leave_its_isolate(name: str, shown: str) -> None:
    assert isolated(name) == f"\u2068{shown}\u2069"


@pytest.mark.usefixtures("dogs")
@pytest.mark.anyio
async def test_a_name_cannot_reverse_the_direction_of_a_notice_or_title(staff: Visitor) -> None:
    page = await staff.submit("/pets", name=HOSTILE, categoryId="1", status="available", again="1")
    assert f"<p>Added \u2068{HOSTILE}\u2069 (#1).</p>" in page.text
    assert f"<title>\u2068{HOSTILE}\u2069 \N{EN DASH} Petstore</title>" in page.text
    page = await staff.submit("/pets/1/sell")
    assert f"<p>Sold \u2068{HOSTILE}\u2069 (order 1).</p>" in page.text
