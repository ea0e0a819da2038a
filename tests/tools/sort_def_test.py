# SPDX-License-Identifier: Apache-2.0
from sort_def import sorted_text


def test_entries_are_sorted_within_their_run():
    assert sorted_text("// head\nOP(b)\nOP(a)\nOP(b)\n\nOP(z)\nOP(c)  // why\n") == (
        "// head\nOP(a)\nOP(b)\n\nOP(c)  // why\nOP(z)\n"
    )


def test_sorted_text_stays():
    text = "// SPDX-License-Identifier: Apache-2.0\nOP(a)\nOP(b)\n"
    assert sorted_text(text) == text
