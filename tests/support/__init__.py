"""Real parts for the tests: a clock that is set, a service in process, a service as a process."""
