# SPDX-License-Identifier: Apache-2.0
"""The structs of ingot/ingot.h that are passed to the library, field by field."""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char_p,
    c_int32,
    c_int64,
    c_size_t,
    c_uint64,
    c_void_p,
)
from typing import Any


class Tensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("dtype", c_int32),
        ("rank", c_int32),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("byte_offset", c_uint64),
    )


RELEASE = CFUNCTYPE(None, c_void_p)
OBSERVE = CFUNCTYPE(None, c_void_p, c_size_t, c_char_p, POINTER(Tensor))


class Sized(Structure):
    """A struct that begins with its size."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


class LoadOptions(Sized):
    _fields_ = (
        ("struct_size", c_size_t),
        ("verify", c_int32),
        ("trust", c_int32),
        ("memory", c_int32),
        ("trusted_keys", c_char_p),
        ("without_weights", c_int32),
        ("weight_budget", c_char_p),
        ("gpu", c_int32),
        ("rank", c_char_p),
        ("cpu", c_char_p),
    )


class Port(Sized):
    _fields_ = (
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("dtype", c_int32),
        ("rank", c_int32),
        ("dims", POINTER(c_char_p)),
        ("min", POINTER(c_int64)),
        ("max", POINTER(c_int64)),
    )


class RefitOptions(Sized):
    _fields_ = (
        ("struct_size", c_size_t),
        ("partial", c_int32),
        ("release", RELEASE),
        ("owner", c_void_p),
        ("rank", c_char_p),
    )


class GroupOptions(Sized):
    _fields_ = (
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("address", c_char_p),
        ("rank", c_int32),
        ("size", c_int32),
        ("deadline_ms", c_int64),
        ("listener", c_void_p),
    )


class GroupBinding(Structure):
    _fields_ = (("name", c_char_p), ("group", c_void_p))


class ContextOptions(Sized):
    _fields_ = (
        ("struct_size", c_size_t),
        ("threads", c_int32),
        ("allocator", c_void_p),
        ("groups", POINTER(GroupBinding)),
        ("group_count", c_size_t),
        ("check_indices", c_int32),
        ("without_cuda_graphs", c_int32),
    )


class Memory(Sized):
    _fields_ = (
        ("struct_size", c_size_t),
        ("arena", c_size_t),
        ("states", c_size_t),
        ("scratch", c_size_t),
        ("weights", c_size_t),
        ("cached_plans", c_size_t),
    )


class WeightMemory(Sized):
    _fields_ = (
        ("struct_size", c_size_t),
        ("total", c_size_t),
        ("minimum", c_size_t),
        ("budget", c_size_t),
        ("resident", c_size_t),
        ("ring", c_size_t),
        ("available", c_size_t),
    )


class SessionOptions(Sized):
    _fields_ = (("struct_size", c_size_t), ("cache_bytes", c_uint64))
