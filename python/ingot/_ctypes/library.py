# SPDX-License-Identifier: Apache-2.0
"""The runtime library beside the package, with the signatures of ingot/ingot.h, and its statuses as exceptions."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes import POINTER, PYFUNCTYPE, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p, py_object
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingot import errors
from ingot._ctypes.structs import (
    OBSERVE,
    RELEASE,
    ContextOptions,
    GroupOptions,
    LoadOptions,
    Memory,
    Port,
    RefitOptions,
    SessionOptions,
    Tensor,
    WeightMemory,
)

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11

_ABI_VERSION = 2
_NAME = "ingot_runtime.dll" if sys.platform == "win32" else "libingot_runtime.so.0"
_FOLDER = Path(__file__).parents[1]
_KINDS = {
    1: errors.UserError,
    2: errors.UnsupportedError,
    3: errors.InternalError,
    4: errors.DeviceError,
}

# Statuses, texts and handles are addresses; None is NULL.
_STATUS = _HANDLE = _TEXT = c_void_p
_OUT = c_void_p
_SIGNATURES: dict[str, tuple[Any, ...]] = {  # result, arguments
    "abi_version": (c_uint32,),
    "version": (c_char_p,),
    "explain": (c_char_p, c_char_p),
    "status_kind": (c_int32, _STATUS),
    "status_code": (c_char_p, _STATUS),
    "status_text": (c_char_p, _STATUS),
    "status_node": (c_char_p, _STATUS),
    "status_source": (c_char_p, _STATUS),
    "status_advice": (c_char_p, _STATUS),
    "status_free": (None, _STATUS),
    "text_data": (c_void_p, _TEXT),
    "text_size": (c_size_t, _TEXT),
    "text_free": (None, _TEXT),
    "file_create": (_STATUS, c_char_p, _OUT),
    "file_write": (_STATUS, _HANDLE, c_void_p, c_size_t),
    "file_finish": (_STATUS, _HANDLE),
    "file_free": (None, _HANDLE),
    "engine_load": (_STATUS, c_char_p, POINTER(LoadOptions), _OUT),
    "engine_load_memory": (_STATUS, c_void_p, c_size_t, RELEASE, c_void_p, POINTER(LoadOptions), _OUT),
    "engine_save": (_STATUS, _HANDLE, c_char_p),
    "engine_save_memory": (_STATUS, _HANDLE, _OUT),
    "engine_free": (None, _HANDLE),
    "engine_copy": (_STATUS, _HANDLE, _OUT),
    "engine_copy_to": (_STATUS, _HANDLE, c_int32, _OUT),
    "engine_gpu": (c_int32, _HANDLE),
    "engine_inspect": (_STATUS, _HANDLE, _OUT),
    "engine_signature": (_STATUS, _HANDLE, _OUT),
    "engine_input_count": (c_size_t, _HANDLE),
    "engine_output_count": (c_size_t, _HANDLE),
    "engine_state_count": (c_size_t, _HANDLE),
    "engine_input": (_STATUS, _HANDLE, c_size_t, POINTER(Port)),
    "engine_output": (_STATUS, _HANDLE, c_size_t, POINTER(Port)),
    "engine_state": (_STATUS, _HANDLE, c_size_t, POINTER(Port)),
    "engine_metadata_count": (c_size_t, _HANDLE),
    "engine_metadata_key": (c_char_p, _HANDLE, c_size_t),
    "engine_metadata_value": (c_char_p, _HANDLE, c_char_p),
    "engine_state_input": (c_int32, _HANDLE, c_size_t),
    "engine_input_is_updated": (c_int32, _HANDLE, c_size_t),
    "engine_refit": (_STATUS, _HANDLE, c_size_t, POINTER(c_char_p), POINTER(Tensor), POINTER(RefitOptions)),
    "engine_take_weights": (_STATUS, _HANDLE, _HANDLE),
    "engine_weight_count": (c_size_t, _HANDLE),
    "engine_weight_name": (c_char_p, _HANDLE, c_size_t),
    "engine_knows_tensor": (c_int32, _HANDLE, c_char_p),
    "engine_weight_memory": (_STATUS, _HANDLE, POINTER(WeightMemory)),
    "engine_set_weight_budget": (_STATUS, _HANDLE, c_char_p),
    "verify_file": (_STATUS, c_char_p),
    "inspect_file": (_STATUS, c_char_p, _OUT),
    "open_tensors": (_STATUS, c_char_p, _OUT),
    "tensors_free": (None, _HANDLE),
    "tensors_count": (c_size_t, _HANDLE),
    "tensors_name": (c_char_p, _HANDLE, c_size_t),
    "tensors_value": (POINTER(Tensor), _HANDLE, c_size_t),
    "engine_group_name": (c_char_p, _HANDLE, c_size_t),
    "group_join": (_STATUS, POINTER(GroupOptions), _OUT),
    "group_listen": (_STATUS, c_char_p, _OUT),
    "group_listener_address": (c_char_p, _HANDLE),
    "group_listener_free": (None, _HANDLE),
    "group_begin_work": (_STATUS, _HANDLE, _OUT),
    "group_end_work": (None, _HANDLE),
    "group_free": (None, _HANDLE),
    "group_rank": (c_int32, _HANDLE),
    "group_size": (c_int32, _HANDLE),
    "group_is_usable": (c_int32, _HANDLE),
    "group_share": (_STATUS, c_char_p, _HANDLE),
    "context_create_with": (_STATUS, _HANDLE, POINTER(ContextOptions), _OUT),
    "context_free": (None, _HANDLE),
    "context_is_usable": (c_int32, _HANDLE),
    "context_threads": (c_int32, _HANDLE),
    "context_run_owned": (_STATUS, _HANDLE, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p),
    "tensor_free": (None, c_void_p),
    "context_reset_states": (_STATUS, _HANDLE),
    "context_copy_states": (_STATUS, _HANDLE, _HANDLE),
    "context_memory": (_STATUS, _HANDLE, POINTER(Memory)),
    "context_set_observer": (_STATUS, _HANDLE, OBSERVE, c_void_p),
    "context_set_profiling": (_STATUS, _HANDLE, c_int32),
    "context_profile": (_STATUS, _HANDLE, _OUT),
    "set_threads": (_STATUS, c_int32),
    "get_threads": (c_int32,),
    "set_spin": (_STATUS, c_int32),
    "session_create": (_STATUS, POINTER(SessionOptions), _OUT),
    "session_free": (None, _HANDLE),
    "metrics_text": (_STATUS, c_size_t, POINTER(c_void_p), POINTER(c_char_p), _OUT),
    "cache_stats": (_STATUS, _HANDLE, _OUT),
    "cache_clear": (_STATUS, _HANDLE),
    "cache_wait": (c_int32, c_int64),
}


class Library:
    """The functions of the C API, without the prefix `ingot_`. Each call lets other threads of Python run."""

    def __init__(self, path: Path) -> None:
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ImportError(
                f"this package has no extension ingot._core, and its runtime library cannot be opened: {error}. "
                "Install the wheel for this system again"
            ) from error
        for name, (result, *arguments) in _SIGNATURES.items():
            function = getattr(library, f"ingot_{name}", None)
            if function is None:
                raise ImportError(f"{path} is older than this package: it has no ingot_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        if self.abi_version() != _ABI_VERSION:
            raise ImportError(f"{path} has version {self.abi_version()} of the C API, not {_ABI_VERSION}")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"the C API has no ingot_{name} here")


lib = Library(_FOLDER / _NAME)


def check(status: int | None) -> None:
    """Raises what a status says, and frees it."""
    if status is None:
        return
    try:
        raise _KINDS.get(lib.status_kind(status), errors.InternalError)(
            lib.status_text(status).decode(errors="backslashreplace"),
            code=lib.status_code(status).decode(),
            node=lib.status_node(status).decode(),
            source=lib.status_source(status).decode(),
            advice=lib.status_advice(status).decode(),
        )
    finally:
        lib.status_free(status)


# A prototype of our own: those of ctypes.pythonapi belong to every module.
_method_of = PYFUNCTYPE(py_object, py_object)(("PyInstanceMethod_New", ctypes.pythonapi))


class Handle(c_void_p):
    """Owns an object of the C API. It is freed by the library's function as it is: a `__del__` in Python would swallow a Ctrl-C that
    arrives there."""

    def __init_subclass__(cls, free: str) -> None:
        cls.__del__ = _method_of(getattr(lib, free))

    @classmethod
    def made(cls, make: Callable[..., Any], *arguments: Any) -> Self:
        """What a function of the C API writes to its last argument."""
        handle = cls()
        check(make(*arguments, ctypes.byref(handle)))
        return handle


class Text(Handle, free="text_free"):
    pass


def text_of(get: Callable[..., Any], *arguments: Any) -> bytes:
    """The text that a function of the C API writes to its last argument."""
    text = Text.made(get, *arguments)
    return ctypes.string_at(lib.text_data(text), lib.text_size(text))
