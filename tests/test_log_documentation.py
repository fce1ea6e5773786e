"""docs/logs.md has every member of a request line and every event, and no other."""

import re
from pathlib import Path
from typing import get_args

from petstore.logs import EventName, RequestLine

PAGE = (Path(__file__).parent.parent / "docs/logs.md").read_text()


def names_in_table_of(section: str) -> list[str]:
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE)


def test_the_page_lists_every_member_of_a_request_line_in_order() -> None:
    assert names_in_table_of("Requests") == list(RequestLine.__struct_fields__)


def test_the_page_lists_every_event_of_the_service() -> None:
    assert names_in_table_of("Events of the service") == list(get_args(EventName))
