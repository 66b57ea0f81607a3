"""Helpers for tests of patterns."""

from hypothesis import strategies as st

LABELS = "abc"


def joined(left, right, sign):
    return (f"({left[0]}) {sign} ({right[0]})", f"(?:{left[1]}){sign}(?:{right[1]})")


def repeated(part, sign):
    return (f"({part[0]}){sign}", f"(?:{part[1]}){sign}")


SINGLE = st.one_of(
    st.sampled_from([(label, label) for label in LABELS]),
    st.sampled_from([(".", "[abc]"), ("[^a]", "[bc]"), ("[^ b c ]", "a"), ("[a c]", "[ac]"), ("()", "")]),
)

PATTERNS = st.recursive(
    SINGLE,
    lambda inner: st.one_of(
        st.builds(joined, inner, inner, st.sampled_from(["", "|"])),
        st.builds(repeated, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "{,1}"])),
    ),
    max_leaves=6,
)
