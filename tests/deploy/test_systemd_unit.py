"""``deploy/petstore.service`` and ``.socket``: under systemd, with no more rights than needed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from petstore.settings import Settings, sqlite_path
from support.deploy_files import DEPLOY, settings_of
from support.process import free_port, petstore
from support.programs import needs

_VERIFIER = shutil.which("systemd-analyze")
LINES = [
    line.partition("=")
    for line in (DEPLOY / "petstore.service").read_text().splitlines()
    if "=" in line and not line.startswith("#")
]


def values(name: str) -> list[str]:
    return [value for found, _, value in LINES if found == name]


def value(name: str) -> str:
    (only,) = values(name)
    return only


def its_settings() -> Settings:
    """Return the settings that it gives the service."""
    pairs = [variable.partition("=") for variable in values("Environment")]
    return settings_of({name: value for name, _, value in pairs if name.startswith("PETSTORE_")})


def test_the_settings_are_valid_and_the_limits_of_the_unit_leave_room_for_them() -> None:
    settings = its_settings()
    state = Path("/var/lib") / value("StateDirectory")
    assert sqlite_path(settings.database).parent == state
    assert value("WorkingDirectory") == str(state)
    assert settings.shutdown_timeout < int(value("TimeoutStopSec"))
    assert int(value("LimitNOFILE")) > settings.max_connections
    assert value("LogRateLimitIntervalSec") == "0"  # for a line of each request


def test_it_starts_and_stops_with_its_socket_and_tells_of_its_start_however_long_it_takes() -> None:
    assert value("Requires") == value("Also") == "petstore.socket"
    assert "petstore.socket" in value("After").split()
    default = its_settings()
    lines = (DEPLOY / "petstore.socket").read_text().splitlines()
    assert f"ListenStream={default.host}:{default.port}" in lines
    assert value("ExecStart").endswith("/bin/petstore serve")
    assert value("Type") == "notify"
    assert value("TimeoutStartSec") == "infinity"
    assert value("KillMode") == "mixed"


@pytest.mark.skipif(_VERIFIER is None, reason=needs("systemd-analyze"))
def test_systemd_finds_nothing_wrong_with_them(tmp_path: Path) -> None:
    for unit in ("petstore.service", "petstore.socket"):
        text = (DEPLOY / unit).read_text()
        # Neither the program nor its user need be here.
        (tmp_path / unit).write_text(text.replace("/opt/petstore/bin/petstore", "/bin/true"))
    verified = subprocess.run(
        [str(_VERIFIER), "verify", "--man=no", *tmp_path.iterdir()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line for line in verified.stderr.splitlines() if "petstore." in line] == []


def test_the_service_restarts_unless_its_configuration_is_invalid(tmp_path: Path) -> None:
    assert value("Restart") == "on-failure"
    assert value("StartLimitIntervalSec") == "0"
    of_no_use = int(value("RestartPreventExitStatus"))
    assert petstore("serve", "--workers", "2", cwd=tmp_path).returncode == of_no_use
    gone = f"postgresql://petstore@127.0.0.1:{free_port()}/petstore"
    assert petstore("serve", "--database", gone, cwd=tmp_path).returncode not in {0, of_no_use}


def test_the_unit_has_minimal_privileges() -> None:
    assert value("User") not in {"", "root"}
    assert value("ProtectSystem") == "strict"
    assert value("CapabilityBoundingSet") == ""
    for name in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome"):
        assert value(name) == "yes"
    assert values("ReadWritePaths") == []
    assert "TMPDIR=/var/tmp" in values("Environment")  # private, and on a disk
