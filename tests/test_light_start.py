"""Optional modules are imported only when needed, so the start is quick."""

import subprocess
import sys
from pathlib import Path

import pytest

POSTGRES, REDIS = "postgresql://petstore@127.0.0.1:9/petstore", "redis://127.0.0.1:9"
# redis looks whether cryptography is there, and loads nothing of it.
OF_SOME = {
    *("asyncpg", "cryptography.hazmat", "redis", "petstore_client"),
    "petstore.observability.tracing",
}
CODE = """
import sys
from petstore.app import serve_settings
from petstore.settings import Settings
serve_settings(Settings({}))
print(*sys.modules)
"""


@pytest.mark.parametrize(
    ("settings", "loaded"),
    [("", set()), (f"database={POSTGRES!r}, redis={REDIS!r}", {"asyncpg", "redis"})],
    ids=["SQLite", "PostgreSQL and Redis"],
)
def test_a_service_loads_only_what_its_settings_need(
    tmp_path: Path, settings: str, loaded: set[str]
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CODE.format(settings)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(ran.stdout.split()) & OF_SOME == loaded
