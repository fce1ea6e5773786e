"""The page of calls that will end, for administrators."""

import pytest

from support.visitor import Visitor

pytestmark = pytest.mark.anyio


async def test_the_page_says_if_no_key_calls_deprecated_operations(staff: Visitor) -> None:
    assert "No key calls anything that is deprecated." in (await staff.get("/deprecations")).text
