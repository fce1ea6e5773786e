"""Hypothesis strategies: bodies, pets, tokens, and pauses between requests."""

import re
from typing import Any

from hypothesis import strategies as st

from petstore.clock import DAY, MINUTE, SECOND
from petstore.domain.fields import INT64_MAX, INT64_MIN, NOT_BLANK

int64s = st.integers(INT64_MIN, INT64_MAX)

texts = st.text(st.characters(exclude_categories=["Cs"]))
"""Text that UTF-8 can hold."""

pet_names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=255
).filter(re.compile(NOT_BLANK).search)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)

pet_like_values: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "name": pet_names | json_values,
        "categoryId": int64s | json_values,
        "status": st.sampled_from(["available", "pending", "sold"]) | json_values,
        "note": json_values,
    },
)
"""Objects with the members of a pet, some of them of any value whatever."""


pauses = st.one_of(
    st.integers(0, 2 * SECOND),
    st.integers(0, 2 * MINUTE),
    st.sampled_from([0, 1, MINUTE - 1, MINUTE, MINUTE + 1, DAY // 2, DAY]),
)
