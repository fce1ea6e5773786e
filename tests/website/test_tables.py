"""Pages that list what the code declares."""

from petstore.events.model import EVENT_TYPES
from petstore.observability.metrics import REQUESTS
from website.tables import event_types, metric_table


def test_every_metric_is_listed_with_its_labels() -> None:
    row = f"| `{REQUESTS.name}` | counter | `operation`, `method`, `status` | {REQUESTS.help} |"
    assert row in metric_table()


def test_every_type_of_event_is_listed_with_an_example() -> None:
    page = event_types()
    for kind in EVENT_TYPES:
        assert f'## {kind}\n\n```json\n{{\n  "id": ' in page
