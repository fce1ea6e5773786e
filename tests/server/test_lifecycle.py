"""What a service tells of itself, and to whom."""

import os

import pytest

from petstore.server.lifecycle import Lifecycle
from petstore.server.pid_file import PidFile
from petstore.server.service_manager import ServiceManager


def test_a_pid_file_that_cannot_be_written_is_warned_of_and_no_reason_to_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    full = os.open("/dev/full", os.O_RDWR)
    Lifecycle(1, ServiceManager(""), PidFile(full)).starting()
    os.close(full)
    (warning,) = caplog.messages
    assert warning.startswith("the pid file cannot be written: ")
