# SPDX-License-Identifier: Apache-2.0
"""Private names of torch that Ingot uses are where it expects them."""

from __future__ import annotations

import pytest
from ingot import compat, composites
from ingot.capture import is_imported


@pytest.mark.parametrize("name", compat.PRIVATE_NAMES)
def test_private_name_is_present(name: str) -> None:
    assert compat.find(name) is not None


def test_missing_names_are_none() -> None:
    assert compat.find("torch.there_is_no.such_name") is None


def test_composites_are_kept_only_inside() -> None:
    import torch.distributed.tensor  # whose tensors take another way

    operator = torch.ops.aten.linear.default
    before = dict(operator.py_kernels)
    for _ in range(2):  # the second time from the first one's record
        with composites.keep_composites(is_imported):
            inside = dict(operator.py_kernels)
            with composites.keep_composites(is_imported):
                assert operator.py_kernels == inside
            assert operator.py_kernels == inside
        assert len(inside) > len(before)
        assert operator.py_kernels == before
