"""The media type of a response, of those that the client takes."""

import pytest

from petstore.http.messages import Request
from petstore.interface.media_types import choose_media_type

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def choice(accepted: str | None) -> str:
    fields = {} if accepted is None else {b"accept": accepted.encode("latin-1")}
    request = Request("GET", "/", b"", "127.0.0.1", fields)
    return choose_media_type(request, "text/html", "text/markdown")


@pytest.mark.parametrize(
    "accepted",
    [
        *(None, "", "*/*", "text/*", BROWSER, "text/html", "image/png", "text/markdown;q=0"),
        *("text/html, text/markdown;q=0.9", "*/*, text/markdown;q=0.9"),
        *(
            "text/*;q=0.5, text/markdown;q=0.4",
            "text/markdown;q=2",
            "markdown",
            "text/mark\xefdown",
        ),
        *("text/markdown;", "text/markdown text/html", "application/json"),
    ],
)
def test_a_client_that_does_not_prefer_another_type_gets_the_default(accepted: str | None) -> None:
    assert choice(accepted) == "text/html"


@pytest.mark.parametrize(
    "accepted",
    [
        *("text/markdown", "Text/Markdown", "text/markdown, text/html, */*", "text/markdown,*/*"),
        *("text/html;q=0.9, text/markdown", "text/html;Q=0.1,text/markdown ; q=0.2"),
        *("text/markdown;variant=GFM;q=0.5, */*;q=0.4", "text/markdown; charset=utf-8"),
        *('text/markdown;v="a b"', "text/html;q=0, text/*;q=1, text/markdown;q=0.001"),
    ],
)
def test_a_client_gets_the_type_that_it_names_and_prefers(accepted: str) -> None:
    assert choice(accepted) == "text/markdown"
