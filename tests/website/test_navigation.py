"""The lists of the home page, which are the navigation."""

from website.navigation import Entry, sections, with_entries

HOME = """# Petstore

- [Not a section](no.md): before any heading

## Reference

Every detail.

- [HTTP](http.md#top): addresses, bodies
  and headers
- [Errors](errors.md): codes

## Explanation

- [Limits](limits.md): why
"""
METRICS = Entry("Metrics", "metrics.md", "every metric")


def test_each_list_under_a_heading_is_a_section() -> None:
    found = sections(HOME)
    assert found["Reference"] == [
        Entry("HTTP", "http.md", "addresses, bodies and headers"),
        Entry("Errors", "errors.md", "codes"),
    ]
    assert found["Explanation"] == [Entry("Limits", "limits.md", "why")]


def test_entries_are_added_at_the_top_of_the_list_of_a_section() -> None:
    home = with_entries(HOME, "Reference", [METRICS])
    assert "Every detail.\n\n- [Metrics](metrics.md): every metric\n- [HTTP]" in home
    assert sections(home)["Reference"][0] == METRICS
    assert home.replace(f"{METRICS}\n", "") == HOME
