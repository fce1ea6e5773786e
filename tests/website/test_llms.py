"""The site for programs that read Markdown."""

from website import llms
from website.navigation import Entry

HTTP, LIST = Entry("HTTP", "http.md", "bodies"), Entry("List", "operations/listPets.md", "`GET`")


def test_the_index_lists_each_page_with_a_description() -> None:
    index = llms.index({"Reference": [HTTP]}, {"Reference": [LIST]})
    assert index.startswith("# Petstore\n\n> ")
    assert index.endswith(
        "\n## Reference\n\n- [HTTP](/docs/http.md): bodies\n"
        "- [List](/docs/operations/listPets.md): `GET`\n"
    )


def test_the_full_text_has_each_page_after_its_path() -> None:
    whole = llms.whole({"a.md": "# A\n", "b.md": "# B\n\n"})
    assert whole == "<!-- a.md -->\n\n# A\n\n<!-- b.md -->\n\n# B\n"


def test_the_full_text_has_neither_decisions_nor_benchmarks() -> None:
    left_out = ("decisions/0001-a.md", "performance.md", "repository/bench/results/soak.md")
    assert llms.whole(dict.fromkeys((*left_out, "a.md"), "# A")) == "<!-- a.md -->\n\n# A\n"
