"""Only a whole comparison is saved."""

import pytest

from compare import parse_options


@pytest.mark.parametrize("part", [("go",), ("--works", "list"), ("--on", "sqlite"), ("--quick",)])
def test_a_partial_run_cannot_be_saved(
    part: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert parse_options(["--save"]).save
    with pytest.raises(SystemExit):
        parse_options([*part, "--save"])
    assert "--save is for a whole run" in capsys.readouterr().err
