import petstore
import petstore_client


def test_the_client_is_released_with_the_service() -> None:
    assert petstore_client.__version__ == petstore.__version__
