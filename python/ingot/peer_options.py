# SPDX-License-Identifier: Apache-2.0
"""Options of Torch-TensorRT that have no counterpart here: accepted with a notice, or rejected with what to use instead.

Those that change results or where code runs are accepted only with the value that says "no": a model never runs otherwise than asked.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ingot.errors import UserError

_log = logging.getLogger("ingot")
_NO = (None, False, 0, "", (), [], {}, set(), frozenset())


@dataclass(frozen=True)
class PeerOption:
    """why: nothing has to be done. advice: what to use for a value that is not among `accepted` (None: any value is accepted)."""

    why: str
    accepted: tuple | None = None
    advice: str = ""


def _only(why: str, advice: str, *accepted: Any) -> PeerOption:
    return PeerOption(why, accepted or _NO, advice)


_MEMORY = PeerOption("weights are mapped from the file and shared, and builds need no copy on the device")
_F64 = PeerOption("f64 runs as f64, and i64 as i64")
_BATCH = PeerOption("ingot.Input gives the range of each size")
_DLA = PeerOption("there is no DLA")
_AUTOCAST = PeerOption("it tunes enable_autocast, which is enabled_precisions here")
_TILES = PeerOption("tiles are tactics, which optimization levels 4 and 5 time")

PEER_OPTIONS: dict[str, PeerOption] = {
    "version_compatible": PeerOption("the version of the file format decides which engines open"),
    "use_complex_decomposition": PeerOption("the importer decides"),
    "use_fast_partitioner": PeerOption("there is one partitioner"),
    "enable_experimental_decompositions": PeerOption("torch's tables decompose what has no converter"),
    "assume_dynamic_shape_support": PeerOption("every operator takes symbolic sizes"),
    "use_fp32_acc": PeerOption("products accumulate in fp32 or better"),
    "disable_tf32": PeerOption('f32 is not rounded to TF32, unless numerics is "fast"'),
    "truncate_double": _F64,
    "truncate_long_and_double": _F64,
    "refit": PeerOption("every engine can be refitted, unless immutable_weights is set"),
    "allow_shape_tensors": PeerOption("a tensor that holds sizes is an input like others"),
    "verbose_log": PeerOption('logging.getLogger("ingot").setLevel decides what is logged'),
    "max_workspace_size": _MEMORY,
    "explicit_batch_dimension": _BATCH,
    "dynamic_batch": _BATCH,
    "max_batch_size": _BATCH,
    "use_explicit_typing": PeerOption("the dtypes of the model decide, unless enabled_precisions allows others"),
    "make_refittable": PeerOption("every engine can be refitted, unless immutable_weights is set"),
    "use_python_runtime": PeerOption("the runtime is C++"),
    "pass_through_build_failures": PeerOption("a failure is an error, or a fallback with its reason in the report"),
    "fallback_data_dependent_ops": PeerOption("a GPU leaves operators whose sizes depend on data to torch, and a CPU runs them"),
    "debug": PeerOption('logging.getLogger("ingot").setLevel decides what is logged'),
    "lazy_engine_init": _MEMORY,
    "offload_module_to_cpu": _MEMORY,
    "enable_resource_partitioning": _MEMORY,
    "cpu_memory_budget": _MEMORY,
    "dynamically_allocate_resources": _MEMORY,
    "workspace_size": _MEMORY,
    "dla_sram_size": _DLA,
    "dla_local_dram_size": _DLA,
    "dla_global_dram_size": _DLA,
    "max_aux_streams": PeerOption("an engine runs on one stream"),
    "num_avg_timing_iters": PeerOption("tactics are timed until their order is clear"),
    "tiling_optimization_level": _TILES,
    "l2_limit_for_tiling": _TILES,
    "autocast_low_precision_type": _AUTOCAST,
    "autocast_max_output_threshold": _AUTOCAST,
    "autocast_max_depth_of_reduction": _AUTOCAST,
    "autocast_calibration_dataloader": _AUTOCAST,
    "enable_autocast": _only("f32 stays f32", "enabled_precisions={torch.float32, torch.float16} lets products be narrower"),
    "autocast_excluded_nodes": _only("nothing is excluded", "keep_precision names nodes, with * and ?"),
    "autocast_excluded_ops": _only("nothing is excluded", "keep_precision names nodes, with * and ?"),
    "min_acc_module_size": _only("its name is min_block_size", "min_block_size=1"),
    "lower_precision": _only("its name is enabled_precisions", "enabled_precisions={torch.float16}"),
    "attn_bias_is_causal": _only("a bias is added as it is", "pass is_causal=True in the model"),
    "sparse_weights": _only("weights are dense", "leave it out: there are no kernels for 2:4 sparsity"),
    "engine_capability": _only("there is one kind of engine", "leave it out: there are no engines for DLA or safety"),
    "hardware_compatible": _only("an engine is for one target", 'cpu="x86-64-v3" or device="cuda:sm_90a" names another'),
    "dryrun": _only("a build is not dry", "ingot.report(compiled) says what would run where"),
    "decompose_attention": _only("attention stays whole", 'disable_passes="recognize_compositions" keeps decomposed attention'),
    "disabled_constant_fold_exclusions": _only("nothing is excluded", "disable_passes names passes"),
    "torch_executed_modules": _only("no module is left to torch", "torch_executed_ops names operators"),
    "enable_weight_streaming": PeerOption("every engine can stream its weights: ingot.runtime.weight_streaming"),
    "use_distributed_mode_trace": PeerOption("collectives are traced like other operators"),
    "enable_cross_compile_for_windows": _only("target names another system", 'target="windows-x86-64" names Windows'),
}  # fmt: skip

_NONE_IS_NO_CHOICE = (
    "device",
    "enabled_precisions",
    "optimization_level",
    "torch_executed_ops",
)  # their default there


def without_peer_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The other options, without those of the same name that have Torch-TensorRT's default of None.

    One notice names those that have nothing to do; UserError INGOT-U030 for a value with no counterpart.
    """
    idle = [name for name in options if name in PEER_OPTIONS]
    for name in idle:
        known, value = PEER_OPTIONS[name], options[name]
        if known.accepted is not None and not _is_accepted(name, value, known.accepted):
            raise UserError(
                f'option "{name}" of Torch-TensorRT cannot be {value!r} here: {known.why}',
                code="INGOT-U030",
                advice=known.advice,
            )
    if idle:
        _log.warning("nothing to do for %s", "; ".join(f"{name}: {PEER_OPTIONS[name].why}" for name in idle))
    return {
        name: value
        for name, value in options.items()
        if name not in PEER_OPTIONS and (value is not None or name not in _NONE_IS_NO_CHOICE)
    }


def _is_accepted(name: str, value: Any, accepted: tuple) -> bool:
    if name == "engine_capability":
        return str(value).upper().endswith("STANDARD")
    return any(type(value) is type(each) and value == each for each in accepted)
