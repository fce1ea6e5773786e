"""How much memory the worker of a service holds."""

from pathlib import Path

from support.process import ServerProcess


def resident_megabytes(server: ServerProcess) -> float:
    """Return the resident memory of the process that serves."""
    status = Path(f"/proc/{server.worker}/status").read_text()
    (kilobytes,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(kilobytes) / 1024
