# SPDX-License-Identifier: Apache-2.0
"""Names and arguments of Torch-TensorRT that have no counterpart here: what to use, or why nothing has to be done."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ingot.errors import UserError

_log = logging.getLogger("ingot")

_BUILD = "ingot.build returns an Engine, and engine.to_bytes() and engine.save(path) its bytes"
_INSPECT = "engine.inspect() describes an engine, ingot.profile times its steps"
_DTYPES = "dtypes are torch's"
_LOGGING = 'logging.getLogger("ingot").setLevel decides what is logged'
_RANGES = "one engine serves its whole range of sizes"
_GRAPHS = "ingot.runtime.enable_cudagraphs(module) is for one module; nothing is set for the whole process"

NAMES: dict[str, str] = {
    "ingot.convert_method_to_trt_engine": _BUILD,
    "ingot.dynamo.convert_exported_program_to_serialized_trt_engine": _BUILD,
    "ingot.ts.convert_method_to_trt_engine": "ingot.ts.compile(...).engine is one",
    "ingot.ts.embed_engine_in_new_module": "ingot.Engine.load(path) is callable as the model was",
    "ingot.ts.TensorRTCompileSpec": "ingot.ts.compile takes the options themselves",
    "ingot.ts.check_method_op_support": "ingot.report(compiled) lists what torch runs, with the reason",
    "ingot.MutableTorchTensorRTModule": "ingot.MutableModule",
    "ingot.Device": 'the option device takes a text: "cpu", "cuda", "cuda:sm_90a"',
    "ingot.DeviceType": 'the option device takes a text: "cpu", "cuda", "cuda:sm_90a"',
    "ingot.dtype": _DTYPES,
    "ingot.memory_format": "layouts are the compiler's choice",
    "ingot.EngineCapability": "there is one kind of engine",
    "ingot.Platform": 'the option target names a system: "windows-x86-64"',
    "ingot.logging": _LOGGING,
    "ingot.dynamo.conversion": "torch runs operators that Ingot lacks, between engines, also those of torch.library.custom_op",
    "ingot.dynamo.lowering": "the options disable_passes and stop_after are about passes",
    "ingot.dynamo.partitioning": "the options torch_executed_ops and min_block_size decide what torch runs",
    "ingot.dynamo.runtime": "ingot.runtime, and ingot.Engine",
    "ingot.dynamo.Debugger": "ingot.profile, and the options disable_passes and stop_after",
    "ingot.runtime.TorchTensorRTModule": "ingot.Engine.load(path) is callable as the model was",
    "ingot.runtime.optimization_profile": _RANGES,
    "ingot.runtime.set_cudagraphs_mode": _GRAPHS,
    "ingot.runtime.get_cudagraphs_mode": _GRAPHS,
    "ingot.runtime.get_whole_cudagraphs_mode": _GRAPHS,
    "ingot.runtime.enable_pre_allocated_outputs": "ingot.runtime.enable_cudagraphs(module, pre_allocated_outputs=True)",
    "ingot.runtime.enable_output_allocator": "outputs come from torch's or numpy's allocator",
    "ingot.runtime.set_multi_device_safe_mode": "an engine runs on the device that it was loaded for",
    "ingot.runtime.RuntimeSettings": "kernels take symbolic sizes, and none is compiled at a call",
    "ingot.runtime.RuntimeCache": "kernels take symbolic sizes, and none is compiled at a call",
}

_KNOWN_INPUTS = "a compiled module knows its inputs and ranges, and nothing is traced again"
SAVE = dict.fromkeys(
    ("inputs", "arg_inputs", "kwarg_inputs", "retrace", "use_legacy_exporter", "dynamic_shapes"),
    _KNOWN_INPUTS,
) | {"pickle_protocol": "nothing is pickled"}
REFIT = {
    "arg_inputs": "nothing is traced",
    "kwarg_inputs": "nothing is traced",
    "verify_output": "a refit runs the same preparation as the build",
    "use_weight_map_cache": "weights are known by name",
}


def missing(module: str, name: str) -> AttributeError:
    """For a name that a module does not have, with what to use if Torch-TensorRT has it there."""
    hint = NAMES.get(f"{module}.{name}", "")
    return AttributeError(f"module {module!r} has no attribute {name!r}" + (f": {hint}" if hint else ""))


def pass_over(function: str, given: Mapping[str, Any], known: Mapping[str, str]) -> None:
    """Says once why arguments of Torch-TensorRT have nothing to do; UserError for any other."""
    for name in given:
        if name not in known:
            raise UserError(
                f'{function} has no argument "{name}"',
                code="INGOT-U001",
                advice=f"help(ingot.{function}) lists all",
            )
    if given:
        reasons: dict[str, list[str]] = {}
        for name in given:
            reasons.setdefault(known[name], []).append(name)
        _log.warning(
            "nothing to do for %s", "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())
        )
