"""Whatever is sent, it is never the service that fails."""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import given
from hypothesis import strategies as st

from support.exploration import explored
from support.service import Fields, bare_app, fields
from support.strategies import json_values, pet_like_values

# The service in the other thread may draw from ``random`` while Hypothesis makes an example.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")

Ask: TypeAlias = Callable[[str, bytes, Fields, bytes], int]

METHODS = st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
PATHS = st.one_of(
    st.sampled_from([b"/v1/pets", b"/v1/usage", b"/v1/openapi.json", b"/healthz", b"/v1"]),
    st.builds(lambda text: b"/v1/pets/" + text, st.binary(max_size=30)),
    st.builds(lambda text: b"/" + text, st.binary(max_size=30)),
)
PARAMETER = st.tuples(
    st.sampled_from([b"limit", b"status", b"categoryId", b"id", b"cursor", b"x"]),
    st.one_of(
        st.binary(max_size=20),
        st.integers().map(lambda n: str(n).encode()),
        st.sampled_from([b"sold", b"%00", b"%F0%9F", b"%EF%BC%95", b"%ED%A0%80", b"AAAAAAAAAAA"]),
    ),
)
QUERIES = st.one_of(
    st.binary(max_size=60),
    st.lists(PARAMETER, max_size=6).map(lambda pairs: b"&".join(b"=".join(p) for p in pairs)),
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *(b"host", b"authorization", b"content-type", b"content-length", b"origin"),
                *(b"content-encoding", b"x-request-id", b"x-forwarded-for", b"access-control"),
                *(b"access-control-request-method", b"expect", b"x"),
            ]
        ),
        st.one_of(
            st.binary(max_size=30),
            st.sampled_from([b"application/json", b"::1%x", b"10.0.0.1, 1.1.1.1", b"Bearer "]),
        ),
    ),
    max_size=5,
)


@pytest.fixture(scope="module")
def statuses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Makes a request to a service in process and returns the status, once it has checked it."""
    bare = bare_app(tmp_path_factory.mktemp("arbitrary") / "petstore.db")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(bare.app.lifespan()):
        authorization = (b"authorization", b"Bearer " + portal.call(bare.issue).token.encode())

        def ask(method: str, target: bytes, headers: Fields, body: bytes) -> int:
            headers = [(b"host", b"petstore"), authorization, *headers]
            response = portal.call(bare.call, method, target, headers, body)
            for name, value in fields(response):
                assert not set(b"\r\n\0") & set(name + value)
            assert b"Traceback" not in response.body
            return response.status

        yield ask


@given(METHODS, PATHS, QUERIES, HEADERS, st.binary(max_size=200))
@explored(75)
def test_no_request_makes_the_service_fail(
    statuses: Ask, method: str, path: bytes, query: bytes, headers: Fields, body: bytes
) -> None:
    assert statuses(method, path + b"?" + query, headers, body) < 500


@given(QUERIES)
@explored(75)
def test_no_query_makes_the_list_fail(statuses: Ask, query: bytes) -> None:
    assert statuses("GET", b"/v1/pets?" + query, [], b"") in {200, 400}


@given(
    st.one_of(pet_like_values, json_values).map(lambda value: json.dumps(value).encode())
    | st.binary()
)
@explored(75)
def test_no_body_makes_the_service_fail(statuses: Ask, body: bytes) -> None:
    assert statuses("POST", b"/v1/pets", [], body) in {201, 400}


@given(pet_like_values.filter(lambda pet: {"name", "categoryId"} <= pet.keys()))
@explored(75)
def test_an_added_pet_can_be_listed(statuses: Ask, pet: dict[str, Any]) -> None:
    statuses("POST", b"/v1/pets", [], json.dumps(pet).encode())
    assert statuses("GET", b"/v1/pets?limit=100", [], b"") == 200
