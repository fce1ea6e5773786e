"""The page of each operation says what the table says."""

from petstore.interface.openapi.document import document
from petstore.interface.openapi.errors import possible_errors
from petstore.interface.operation import BASE
from petstore.interface.operations import OPERATIONS
from website.operations import pages, path, tags
from website.samples import curl, python

PAGES = pages(document("http://127.0.0.1:8000", OPERATIONS))


def test_the_page_of_an_operation_has_its_parameters_and_responses() -> None:
    for operation in OPERATIONS:
        page = PAGES[path(operation)]
        assert page.startswith(f"# {operation.summary}\n\n```http\n{operation.method} {BASE}")
        assert f"`{operation.id}` needs" in page
        assert operation.description in page
        if operation.scope is not None:
            assert f"the scope `{operation.scope}`" in page
        for error in possible_errors(operation):
            assert f"[`{error.code}`](../errors.md#{error.code})" in page
        for line in (*curl(operation).splitlines(), *python(operation).splitlines()):
            assert line in page
        assert ("## Body" in page) == (operation.body is not None)
        assert ('!!! warning "Deprecated"' in page) == (operation.deprecation is not None)


def test_the_page_of_a_list_has_the_constraints_of_its_parameters() -> None:
    page = PAGES["operations/listPets.md"]
    assert "| `limit` | query | integer, 1 to 100 | Maximum number of animals returned." in page
    assert "one of `available`, `pending`, `sold`" in page
    assert "| `Link` | " in page


def test_a_page_says_where_the_samples_get_the_url_and_the_key() -> None:
    page = PAGES["operations/placeOrder.md"]
    assert "`PETSTORE_URL` and `PETSTORE_KEY` are [environment variables](index.md)" in page


def test_an_error_is_explained_in_markdown_for_clients() -> None:
    page = PAGES["operations/placeOrder.md"]
    assert "| 415 | The body is not `application/json` or" in page
    assert "| 429 | A limit of the key or of the address is reached. |" in page


def test_a_deprecated_operation_shows_its_dates_and_its_replacement() -> None:
    page = PAGES["operations/getPet.md"]
    assert "It ends on 5 December 2030" in page
    assert "Use GET /v1/pets" in page


def test_an_operation_that_is_not_rate_limited_says_so() -> None:
    assert "It costs nothing of its [limits]" in PAGES["operations/getUsage.md"]


def test_the_index_lists_every_operation_by_its_tag() -> None:
    index = PAGES["operations/index.md"]
    for operation in OPERATIONS:
        request = f"`{operation.method} {BASE}{operation.path}`"
        assert f"| [{operation.summary}]({operation.id}.md) | {request}" in index
    assert "`GET /v1/pets/{petId}`, deprecated |" in index
    assert [line[3:] for line in index.splitlines() if line.startswith("## ")] == [*tags()]
