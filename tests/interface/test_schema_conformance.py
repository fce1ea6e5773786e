"""The running service against its OpenAPI document, by requests that the document suggests."""

import os
import subprocess
import sysconfig
from pathlib import Path

from support.process import ServerProcess

HERE = Path(__file__).parent
SCHEMATHESIS = Path(sysconfig.get_path("scripts")) / "schemathesis"


def test_the_service_does_what_its_document_says(tmp_path: Path) -> None:
    # Measuring what Schemathesis itself runs would take most of the time.
    uncovered = {name: os.environ[name] for name in os.environ if not name.startswith("COVERAGE_")}
    # Requests without a key are many here, and all from one address.
    server = ServerProcess(tmp_path, "--anonymous-per-minute", "1000000000")
    try:
        server.wait_until_ready()
        run = subprocess.run(
            [
                *(SCHEMATHESIS, "--config-file", HERE / "schemathesis.toml", "run"),
                *("--header", f"Authorization: Bearer {server.issue()}"),
                f"{server.url}/v1/openapi.json",
            ],
            cwd=tmp_path,
            env=uncovered,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
    finally:
        server.stop()
    assert run.returncode == 0, run.stdout + run.stderr
