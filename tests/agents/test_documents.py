"""The documentation as resources, where it is not built."""

from pathlib import Path

import pytest

from petstore.agents.documents import Documents
from petstore.errors import NotFound


def test_without_a_built_site_there_are_no_resources(tmp_path: Path) -> None:
    documents = Documents(tmp_path)
    assert documents.resources() == []
    with pytest.raises(NotFound, match="is not built; read it at "):
        documents.read("petstore://docs/index")
