# SPDX-License-Identifier: Apache-2.0
"""Tensors of frameworks that offer DLPack's C exchange API (torch), following its published layout: version 1.3."""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
)
from functools import lru_cache

CPU, CUDA, PINNED_HOST = 1, 2, 3
_READ_ONLY = 1  # among the flags of a ManagedTensor


class TensorHeader(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("byte_offset", c_uint64),
    )


class ManagedTensor(Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", CFUNCTYPE(None, c_void_p)),
        ("flags", c_uint64),
        ("tensor", TensorHeader),
    )


class ExchangeApi(Structure):
    """A framework's functions. Those called here hold the GIL, and the exceptions that they set are raised."""

    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("previous", c_void_p),
        ("allocate", c_void_p),
        ("managed_from_object", PYFUNCTYPE(c_int, py_object, POINTER(POINTER(ManagedTensor)))),
        ("managed_to_object", c_void_p),
        ("view_object", PYFUNCTYPE(c_int, py_object, POINTER(TensorHeader))),
        ("current_stream", c_void_p),
    )

    def is_read_only(self, value: object) -> bool:
        """Whether the owner declares it read-only; views have no flags."""
        managed = POINTER(ManagedTensor)()
        try:
            if self.managed_from_object(value, ctypes.byref(managed)) != 0:
                return False
        except Exception:  # whatever the framework raises: it does not say
            return False
        answer = bool(managed.contents.flags & _READ_ONLY)
        if managed.contents.deleter:
            managed.contents.deleter(ctypes.cast(managed, c_void_p))
        return answer


# A prototype of our own: those of ctypes.pythonapi belong to every module.
_capsule_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


@lru_cache(maxsize=64)
def exchange_of(kind: type) -> ExchangeApi | None:
    """The exchange API of a type of tensors."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    try:
        address = None if capsule is None else _capsule_pointer(capsule, b"dlpack_exchange_api")
    except ValueError:
        return None
    while address:
        api = ExchangeApi.from_address(address)
        if api.major == 1:
            return api
        address = api.previous
    return None
