"""``deploy/petstore.service``: the service under systemd, with no more rights than it needs."""

import shutil
import subprocess
from pathlib import Path

import pytest

from petstore.settings import Settings, sqlite_path
from support.deploy_files import DEPLOY, settings_of
from support.process import free_port, petstore

_VERIFIER = shutil.which("systemd-analyze")
LINES = [
    line.partition("=")
    for line in (DEPLOY / "petstore.service").read_text().splitlines()
    if "=" in line and not line.startswith("#")
]


def values(name: str) -> list[str]:
    """Return every value that is given for a name."""
    return [value for found, _, value in LINES if found == name]


def value(name: str) -> str:
    """Return the only value that is given for a name."""
    (only,) = values(name)
    return only


def its_settings() -> Settings:
    """Return the settings that it gives the service."""
    pairs = [variable.partition("=") for variable in values("Environment")]
    return settings_of({name: value for name, _, value in pairs if name.startswith("PETSTORE_")})


def test_its_settings_are_valid_and_its_database_where_it_may_write() -> None:
    settings = its_settings()
    state = Path("/var/lib") / value("StateDirectory")
    assert sqlite_path(settings.database).parent == state
    assert value("WorkingDirectory") == str(state)


def test_its_temporary_files_are_on_a_disk_and_its_own() -> None:
    assert "TMPDIR=/var/tmp" in values("Environment")
    assert value("PrivateTmp") == "yes"


def test_a_stop_is_over_before_it_is_cut_short() -> None:
    settings = its_settings()
    assert settings.shutdown_timeout < int(value("TimeoutStopSec"))
    assert value("KillMode") == "mixed"


def test_it_tells_of_its_start_and_of_its_reloads_which_take_as_long_as_they_take() -> None:
    assert value("ExecStart").endswith("/bin/petstore serve")
    assert value("Type") == "notify-reload"
    assert values("ExecReload") == []
    assert value("TimeoutStartSec") == "infinity"


@pytest.mark.skipif(_VERIFIER is None, reason="systemd is not installed")
def test_systemd_finds_nothing_wrong_with_it(tmp_path: Path) -> None:
    unit = (DEPLOY / "petstore.service").read_text()
    copy = tmp_path / "petstore.service"
    # Neither the program nor its user need be here.
    copy.write_text(unit.replace("/opt/petstore/bin/petstore", "/bin/true"))
    verified = subprocess.run(
        [str(_VERIFIER), "verify", "--man=no", copy], capture_output=True, text=True, check=False
    )
    too_new = "Failed to parse service type, ignoring: notify-reload"  # systemd before 253
    complaints = [
        line
        for line in verified.stderr.splitlines()
        if "petstore.service" in line and too_new not in line
    ]
    assert complaints == []


def test_it_is_started_again_unless_that_is_of_no_use(tmp_path: Path) -> None:
    assert value("Restart") == "on-failure"
    assert value("StartLimitIntervalSec") == "0"
    of_no_use = int(value("RestartPreventExitStatus"))
    assert petstore("serve", "--workers", "2", cwd=tmp_path).returncode == of_no_use
    gone = f"postgresql://petstore@127.0.0.1:{free_port()}/petstore"
    assert petstore("serve", "--database", gone, cwd=tmp_path).returncode not in {0, of_no_use}


def test_there_are_files_for_all_its_connections() -> None:
    assert int(value("LimitNOFILE")) > settings_of({}).connections


def test_it_has_no_more_rights_than_it_needs() -> None:
    assert value("User") not in {"", "root"}
    assert value("ProtectSystem") == "strict"
    assert value("CapabilityBoundingSet") == ""
    for name in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome"):
        assert value(name) == "yes"
    assert values("ReadWritePaths") == []


def test_the_journal_drops_no_request_lines() -> None:
    assert value("LogRateLimitIntervalSec") == "0"
