"""Names without regard to case."""

import pytest

from petstore.domain.names import name_key


@pytest.mark.parametrize(
    ("one", "other", "are_equal"),
    [
        *(("GROẞTIERE", "großtiere", True), ("\u212bl", "åL", True), ("ΣΊΣΥΦΟΣ", "σίσυφος", True)),
        *(("STRASSE", "Straße", True), ("\ufb01lou", "FILOU", True), ("a b", "a\u3000b", True)),
        ("\u03bf\u03b4\u03bf\u03c3", "\u039f\u0394\u039f\u03c2", True),  # the final sigma
        *(
            ("\uff48und", "HUND", True),
            ("\uff76\uff9e", "ガ", True),
            ("école", "E\u0301COLE", True),
        ),
        *(("\u1fb3", "\u0391\u0399", True), ("q\u0323\u0307", "Q\u0307\u0323", True)),
        *(("Vögel", "Vogel", False), ("İ", "i", False), ("\u0131", "i", False)),
        *(("Dogs", "Dogs ", False), ("Å", "A", False)),
    ],
)
def test_names_that_differ_only_in_case_or_normalization_are_equal(
    one: str, other: str, *, are_equal: bool
) -> None:
    assert (name_key(one) == name_key(other)) is are_equal


def test_a_text_too_long_for_a_name_is_its_own_key() -> None:
    longest = "A\N{COMBINING ACUTE ACCENT}" * 510
    assert name_key(longest) == "\u00e1" * 510
    assert name_key(f"{longest}A") == f"{longest}A"
