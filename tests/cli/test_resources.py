"""The address of the service and the key come from options and the environment."""

import pytest

from support.odd_service import OddService, odd_service, response
from support.process import ServerProcess, free_port
from support.shop import Shop

NO_KEY = "no key: put your API key into the environment variable PETSTORE_KEY"
BAD_KEY = "PETSTORE_KEY: expected an API key, which has no spaces and no special characters"


@pytest.fixture
def nowhere() -> Shop:
    """The commands, where no service is."""
    return Shop(f"http://127.0.0.1:{free_port()}", "a-key")


def asked_through(service: OddService, url: str, key: str = "a-key") -> tuple[str, str]:
    """Return the path and the key with which a list of pets is asked for."""
    Shop(url, key).succeed("pets", "list")
    (asked,) = service.asked
    return asked.target.partition("?")[0], asked.fields["authorization"]


@pytest.mark.parametrize("key", ["", "\n"])
def test_without_a_key_no_request_is_sent(nowhere: Shop, key: str) -> None:
    assert nowhere.fail("pets", "list", PETSTORE_KEY=key, status=5) == NO_KEY


@pytest.mark.parametrize("key", ["a key", "a\r\nX-Evil: 1", "schlüssel", "\x1b[2J"])
def test_an_invalid_key_is_refused_and_not_shown(nowhere: Shop, key: str) -> None:
    assert nowhere.fail("pets", "list", PETSTORE_KEY=key, status=5) == BAD_KEY


def test_a_key_cannot_be_given_on_the_command_line(nowhere: Shop) -> None:
    words = nowhere.fail("pets", "list", "--key", "a-key", status=2)
    assert words.startswith("No such option '--key'")


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:8000", "http://localhost/v1?x=1", "http://localhost\n"),
        *("http://u:s3cret@localhost", "u:s3cret@localhost", "http://localhost/\udce9"),
    ],
)
def test_an_invalid_address_is_refused(nowhere: Shop, url: str) -> None:
    words = nowhere.fail("pets", "list", "--url", url, status=2)
    assert words.startswith("Invalid value for '--url'")
    assert "expected an address such as https://shop.example, without user name" in words
    assert "s3cret" not in words


def test_https_to_a_service_without_tls_is_reported(server: ServerProcess, token: str) -> None:
    url = server.url.replace("http", "https")
    words = Shop(url, token).fail("pets", "list", status=6)
    assert words.startswith(f"cannot reach {url}/v1: [SSL")


@pytest.mark.parametrize(
    ("ending", "path"),
    [*((end, "/v1/pets") for end in ("", "/", "/v1", "/v1/")), ("/shop/api", "/shop/api/v1/pets")],
)
def test_the_service_url_can_include_the_version_or_a_path(ending: str, path: str) -> None:
    with odd_service(response(200, [])) as service:
        assert asked_through(service, f"{service.url}{ending}", "a-key\n") == (path, "Bearer a-key")


def test_an_option_overrides_the_environment(nowhere: Shop) -> None:
    with odd_service(response(200, [])) as service:
        assert nowhere.succeed("pets", "list", "--url", service.url) == ""
        assert len(service.asked) == 1
