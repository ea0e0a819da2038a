# SPDX-License-Identifier: Apache-2.0
"""Private names of torch that Ingot uses are where it expects them."""

from __future__ import annotations

import pytest
from ingot import compat


@pytest.mark.parametrize("name", compat.PRIVATE_NAMES)
def test_private_name_is_present(name: str) -> None:
    assert compat.find(name) is not None


def test_missing_names_are_none() -> None:
    assert compat.find("torch.there_is_no.such_name") is None
