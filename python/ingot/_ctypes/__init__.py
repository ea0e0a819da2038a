# SPDX-License-Identifier: Apache-2.0
"""The C API of the runtime library by ctypes, under the names of the extension `ingot._core`. `ingot.binding` chooses between them.

What needs the compiler is there too, and raises UserError INGOT-U038 when it is called.
"""

from ingot._ctypes.engine import Engine, metrics_text
from ingot._ctypes.files import FileWriter, TensorFile
from ingot._ctypes.group import Group, GroupListener, GroupWork, share_group
from ingot._ctypes.process import (
    CacheSession,
    cache_clear,
    cache_stats,
    cache_wait,
    explain,
    get_threads,
    inspect_file,
    set_spin,
    set_threads,
    verify_file,
    version,
)
from ingot._ctypes.runner import Runner, TorchTensors
from ingot._ctypes.without_compiler import fail_without_compiler

Builder = fail_without_compiler
DirectCall = fail_without_compiler
bisect_pt2 = fail_without_compiler
build_model = fail_without_compiler
build_onnx = fail_without_compiler
check_options = fail_without_compiler
export_engine = fail_without_compiler
export_file = fail_without_compiler
imports_onnx_operator = fail_without_compiler
imports_operator = fail_without_compiler
options = fail_without_compiler
report_page = fail_without_compiler

__all__ = [
    "Builder", "CacheSession", "DirectCall", "Engine", "FileWriter", "Group", "GroupListener", "GroupWork", "Runner", "TensorFile",
    "TorchTensors", "bisect_pt2", "build_model", "build_onnx", "cache_clear", "cache_stats", "cache_wait", "check_options",
    "explain", "export_engine", "export_file", "fail_without_compiler", "get_threads", "imports_onnx_operator",
    "imports_operator", "inspect_file", "metrics_text", "options", "report_page", "set_spin", "set_threads", "share_group", "verify_file",
    "version",
]  # fmt: skip
