# SPDX-License-Identifier: Apache-2.0
"""Tensors of Python as the C API takes and returns them: inputs in place, outputs in memory of the library."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Iterable
from ctypes import c_int64, c_ubyte
from typing import Any, NoReturn

import numpy as np

from ingot._ctypes import dlpack
from ingot._ctypes.library import Handle
from ingot._ctypes.structs import Tensor
from ingot.errors import UserError, first_line
from ingot.written import check_writable

_MAX_RANK = 64

# ingot_dtype, code and bits of DLPack, name in torch, and whether numpy has the name too.
_ROWS = (
    (1, 6, 8, "bool", True), (2, 1, 8, "uint8", True), (3, 0, 8, "int8", True), (4, 0, 16, "int16", True),
    (5, 0, 32, "int32", True), (6, 0, 64, "int64", True), (7, 2, 16, "float16", True), (8, 4, 16, "bfloat16", False),
    (9, 2, 32, "float32", True), (10, 2, 64, "float64", True), (11, 1, 16, "uint16", True), (12, 1, 32, "uint32", True),
    (13, 1, 64, "uint64", True), (14, 10, 8, "float8_e4m3fn", False), (15, 12, 8, "float8_e5m2", False),
    (18, 5, 64, "complex64", True), (19, 5, 128, "complex128", True),
)  # fmt: skip
_OF_DLPACK = {(code, bits): dtype for dtype, code, bits, _, _ in _ROWS}
_NAMES = {dtype: name for dtype, _, _, name, _ in _ROWS}
_NUMPY = {dtype: np.dtype(name) for dtype, _, _, name, in_numpy in _ROWS if in_numpy}
_BYTES = {dtype: bits // 8 for dtype, _, bits, _, _ in _ROWS}
_OF_NUMPY = {kind: dtype for dtype, kind in _NUMPY.items()}


def refuse(what: str, problem: str, code: str = "INGOT-U309", advice: str = "") -> NoReturn:
    raise UserError(f"{what}: {problem}", code=code, advice=advice)


def view(value: Any, tensor: Tensor, what: str) -> Any:
    """Describes an array in `tensor`, which is all zeros, and returns what has to be kept as long. UserError if it is not a dense
    tensor in host memory."""
    api = dlpack.exchange_of(type(value))
    if api is not None:
        return _view_tensor(api, value, tensor, what)
    return _view_array(value, tensor, what)


def view_updated(value: Any, tensor: Tensor, what: str) -> Any:
    """The same for an argument that the call writes; UserError if it is known to be read-only."""
    kept = view(value, tensor, what)
    check_writable(value, what)
    api = dlpack.exchange_of(type(value))
    if api.is_read_only(value) if api is not None else not kept[0].flags.writeable:
        refuse(
            what,
            "the model updates it in place, but its memory is read-only",
            "INGOT-U315",
            "pass a writable copy, such as numpy.array(x)",
        )
    return kept


def resolved(value: Any) -> Any:
    """The tensor, or one whose memory holds its values in place of the negated or conjugated ones: DLPack does not expose torch's
    neg and conj bits."""
    if dlpack.exchange_of(type(value)) is None:
        return value
    if getattr(value, "is_conj", bool)():
        value = value.resolve_conj()
    return value.resolve_neg() if getattr(value, "is_neg", bool)() else value


def refuse_lazy(value: Any, what: str) -> None:
    """UserError if an argument that the call writes is such a tensor."""
    if resolved(value) is not value:
        refuse(
            what,
            "the model updates it in place, but it is a lazy negation or conjugate; call .resolve_neg() or .resolve_conj() first",
        )


def bump_version(value: Any) -> None:
    """Tells autograd that a torch tensor was written, as torch's own in-place operators do."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        torch._C._increment_version((value,))


def _view_tensor(api: dlpack.ExchangeApi, value: Any, tensor: Tensor, what: str) -> Any:
    header = dlpack.TensorHeader()
    try:
        if not api.view_object or api.view_object(value, header) != 0:
            refuse(what, "expected a dense tensor in host memory: its type does not share it")
    except UserError:
        raise
    except Exception as error:  # torch's reason: sparse, nested, quantized ...
        refuse(what, f"expected a dense tensor in host memory: {first_line(error)}")
    if header.data is None and 0 not in (c_int64 * header.ndim).from_address(header.shape or 0):
        refuse(what, "expected a dense tensor in host memory: it has no values, as fake and masked tensors")
    if header.device_type == dlpack.CUDA:
        refuse(what, "the tensor is on a GPU, and this package takes host memory; call .cpu() first")
    if header.device_type not in (dlpack.CPU, dlpack.PINNED_HOST):
        refuse(what, "the tensor is neither in host memory nor on a GPU; call .cpu() first")
    dtype = _OF_DLPACK.get((header.code, header.bits), 0) if header.lanes == 1 else 0
    if dtype == 0:
        _refuse_dtype(value, "without a name", what)
    tensor.data, tensor.dtype, tensor.rank = header.data, dtype, header.ndim
    tensor.shape, tensor.strides, tensor.byte_offset = header.shape, header.strides, header.byte_offset
    return value  # shape and strides are its own


def _refuse_dtype(value: Any, form: str, what: str) -> NoReturn:
    """Names the dtype as the object itself does, with its byte order: ">f4"; or by the format of its buffer."""
    name = str(getattr(value, "dtype", form))
    is_swapped = name.startswith((">", "!"))
    advice = (
        "its bytes are in big-endian order; pass array.astype(array.dtype.newbyteorder('='))"
        if is_swapped
        else ""
    )
    refuse(what, f"the dtype {name} is not supported", advice=advice)


def _view_array(value: Any, tensor: Tensor, what: str) -> tuple:
    """Of numpy, or of whatever has Python's buffer protocol."""
    array = value if isinstance(value, np.ndarray) else np.asarray(_buffer_of(value, what))
    dtype = _OF_NUMPY.get(array.dtype, 0)
    if dtype == 0:
        _refuse_dtype(value, _buffer_of(value, what).format, what)
    rank = array.ndim
    sizes = (c_int64 * rank)(*array.shape)
    tensor.dtype, tensor.rank, tensor.shape = dtype, rank, ctypes.addressof(sizes)
    try:  # the fast way, for what is row-major, writable and not empty
        memory = c_ubyte.from_buffer(array)
    except (TypeError, ValueError, BufferError):
        return array, sizes, _place(array, tensor, what)
    tensor.data = ctypes.addressof(memory)
    return array, sizes, memory


def _place(array: np.ndarray, tensor: Tensor, what: str) -> Any:
    """Fills in address and strides, and returns the strides."""
    interface = array.__array_interface__
    tensor.data = interface["data"][0]
    if interface["strides"] is None:  # row-major
        return None
    size = array.itemsize
    if any(stride % size for stride in interface["strides"]):
        refuse(what, "its strides are not multiples of the element size")
    strides = (c_int64 * array.ndim)(*(stride // size for stride in interface["strides"]))
    tensor.strides = ctypes.addressof(strides)
    return strides


def _buffer_of(value: Any, what: str) -> memoryview:
    try:
        return memoryview(value)
    except (TypeError, ValueError, BufferError):  # no buffer, or numpy's reason for not sharing it
        refuse(what, f"expected a tensor or an array, got {type(value).__name__}")


def is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def has_torch() -> bool:
    return sys.modules.get("torch") is not None


class Output(Handle, free="tensor_free"):
    """One output, which the library puts here. Its memory is freed with the last array that uses it."""

    def array(self, as_torch: bool) -> Any:
        """As an array, without a copy."""
        tensor = Tensor.from_address(self.value)
        shape = shape_of(tensor)
        size = math.prod(shape) * _BYTES[tensor.dtype]
        if size == 0:
            return empty(tensor.dtype, shape, as_torch)
        memory = (c_ubyte * size).from_address(tensor.data)
        memory.owner = self
        return _array_on(memory, tensor.dtype, shape, as_torch)


def _array_on(memory: ctypes.Array, dtype: int, shape: tuple[int, ...], as_torch: bool) -> Any:
    if not as_torch:
        return np.ndarray(shape, _numpy_dtype(dtype), memory)
    torch = sys.modules["torch"]
    if dtype in _NUMPY:
        return torch.from_numpy(np.ndarray(shape, _NUMPY[dtype], memory))
    integers = np.ndarray(shape, f"i{_BYTES[dtype]}", memory)
    return torch.from_numpy(integers).view(getattr(torch, _NAMES[dtype]))


def refuse_unless_in_numpy(dtypes: Iterable[int]) -> None:
    for dtype in dtypes:
        _numpy_dtype(dtype)


def _numpy_dtype(dtype: int) -> np.dtype:
    if dtype not in _NUMPY:
        refuse("output", "numpy has no such dtype; pass torch tensors")
    return _NUMPY[dtype]


def empty(dtype: int, shape: tuple[int, ...], as_torch: bool) -> Any:
    if not as_torch:
        return np.empty(shape, _numpy_dtype(dtype))
    torch = sys.modules["torch"]
    return torch.empty(shape, dtype=getattr(torch, _NAMES[dtype]))


def copy_of(tensor: Tensor, as_torch: bool) -> Any:
    """A new array with the values of a dense row-major tensor."""
    shape = shape_of(tensor)
    array = empty(tensor.dtype, shape, as_torch)
    size = math.prod(shape) * _BYTES[tensor.dtype]
    address = array.data_ptr() if as_torch else array.ctypes.data
    ctypes.memmove(address, tensor.data, size)
    return array


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    return tuple((c_int64 * tensor.rank).from_address(tensor.shape)) if tensor.rank > 0 else ()
