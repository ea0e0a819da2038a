# SPDX-License-Identifier: Apache-2.0
"""Arrays whose elements engines do not have: rejected by the name of the dtype, or the format of the buffer."""

from __future__ import annotations

import ctypes
import re

import ingot
import numpy as np
import pytest
import torch
from ingot import _core, _ctypes


@pytest.fixture(scope="module")
def relu() -> bytes:
    return ingot.compile(torch.nn.ReLU(), inputs=[torch.zeros(3, 8)]).engine.to_bytes()


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "c8"])
def test_big_endian_arrays_are_named(relu: bytes, dtype: str) -> None:
    array = np.zeros((3, 8), ">" + dtype)
    for engine in (_core.Engine.load_memory(relu), _ctypes.Engine.load_memory(relu)):
        with pytest.raises(ingot.UserError, match=f"the dtype >{dtype} is not supported") as caught:
            ingot.Engine(engine)(array)
        assert "newbyteorder" in str(caught.value)


class _Buffer(ctypes.Structure):
    """Py_buffer, as CPython declares it."""

    _fields_ = (
        ("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    )  # fmt: skip


def formatted(layout: bytes, keep: list) -> memoryview:
    """3 x 8 elements of 8 bytes with any format, as an extension may offer them."""
    memory, shape, strides = (
        (ctypes.c_double * 24)(),
        (ctypes.c_ssize_t * 2)(3, 8),
        (ctypes.c_ssize_t * 2)(64, 8),
    )
    places = [ctypes.addressof(each) for each in (memory, shape, strides)]
    buffer = _Buffer(places[0], None, 192, 8, 0, 2, layout, places[1], places[2])
    keep.append((memory, shape, strides, buffer))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Buffer))(
        ("PyMemoryView_FromBuffer", ctypes.pythonapi)
    )
    return make(buffer)


@pytest.mark.parametrize("layout", [b"ff", b"2f", b"(2)f", b"", b"Zff", b"fd", b"T{f:a:f:b:}", b">d"])
def test_formats_of_several_elements_are_rejected(layout: bytes) -> None:
    keep: list = []
    double = ingot.compile(torch.nn.ReLU(), inputs=[torch.zeros(3, 8).double()]).engine
    assert double(formatted(b"d", keep)).shape == (3, 8)
    with pytest.raises(
        ingot.UserError, match=rf"the dtype {re.escape(layout.decode())} is not supported"
    ) as caught:
        double(formatted(layout, keep))
    assert caught.value.code == "INGOT-U309"
