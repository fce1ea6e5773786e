"""How much memory the worker of a service holds."""

from pathlib import Path

from support.process import ServerProcess


def resident_megabytes(server: ServerProcess) -> float:
    """Return the resident memory of the process that serves, the largest of the children."""
    tasks = Path(f"/proc/{server.process.pid}/task")
    children = [pid for task in tasks.iterdir() for pid in (task / "children").read_text().split()]
    return max(map(_resident_megabytes, children))


def _resident_megabytes(pid: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0
