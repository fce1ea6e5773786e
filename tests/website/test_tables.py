"""Pages that list what the code declares."""

from dataclasses import fields

from petstore.domain.events import EVENT_TYPES
from petstore.observability.metrics import REQUESTS
from petstore.settings import Settings
from website.tables import event_types, metric_table, settings


def test_every_setting_is_listed_with_its_variable_and_default() -> None:
    page = settings()
    for field in fields(Settings):
        assert f"| `--{field.name.replace('_', '-')}` | `PETSTORE_{field.name.upper()}` |" in page
    assert "| `8000` | 1 to 65535 | The port to listen on. |" in page
    assert "| off |" in page
    assert "| none |" in page


def test_every_metric_is_listed_with_its_labels() -> None:
    row = f"| `{REQUESTS.name}` | counter | `operation`, `method`, `status` | {REQUESTS.help} |"
    assert row in metric_table()


def test_every_type_of_event_is_listed_with_an_example() -> None:
    page = event_types()
    for kind in EVENT_TYPES:
        assert f'## {kind}\n\n```json\n{{\n  "id": ' in page
