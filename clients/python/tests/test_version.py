import petstore
import petstore_client


def test_the_client_has_the_version_of_the_service() -> None:
    assert petstore_client.__version__ == petstore.__version__
