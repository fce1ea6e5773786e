"""The pages of animals."""

import pytest

from support.visitor import Visitor

pytestmark = pytest.mark.anyio

BELLA = {"name": "Bella", "categoryId": "1", "status": "available"}


async def test_an_added_animal_is_in_the_list(staff: Visitor) -> None:
    added = await staff.submit("/pets", **BELLA)
    assert "Bella is in the store (#1)." in added.text
    assert "Bella" in (await staff.get("/pets", name="bel")).text


async def test_what_was_typed_stays_in_a_refused_form(staff: Visitor) -> None:
    refused = await staff.post("/pets", name="Rex", categoryId="dogs", status="sold")
    assert refused.status_code == 400
    assert 'value="Rex"' in refused.text
    assert 'value="dogs"' in refused.text
    assert "expected an integer" in refused.text


async def test_an_undone_change_leaves_the_animal_as_it_was(staff: Visitor) -> None:
    await staff.submit("/pets", **BELLA)
    changed = await staff.submit("/pets/1", **BELLA | {"status": "sold"})
    assert "Bella is changed." in changed.text
    assert "Undo" in changed.text


async def test_a_form_sent_twice_adds_one_animal(staff: Visitor) -> None:
    for _ in range(2):
        assert (
            "Bella is in the store (#1)." in (await staff.submit("/pets", once="a", **BELLA)).text
        )
    assert "#2" in (await staff.submit("/pets", once="a", **BELLA | {"name": "Rex"})).text
