# SPDX-License-Identifier: Apache-2.0
"""docs/coming-from-torch-tensorrt.md is true: names that it lists exist, and those that it calls missing do not."""

import re
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from ingot.peer_options import PEER_OPTIONS
from ingot.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-torch-tensorrt.md"


def rows(section: str) -> list[tuple[list[str], str]]:
    """(peer's names, Ingot's cell) of each row of a section's table."""
    text = PAGE.read_text().split(f"## {section}")[1].split("\n## ")[0]
    lines = [re.split(r"(?<!\\)\|", line)[1:4] for line in text.splitlines() if line.startswith("| `")]
    return [(re.findall(r"`([\w.]+)", peer), ingot_cell.strip()) for peer, ingot_cell, _ in lines]


def exists(path: str) -> bool:
    target = ingot
    for name in path.split(".")[1:]:
        target = getattr(target, name, None)
    return target is not None


VALUES = {
    "min_block_size": 1, "require_full_compilation": True, "optimization_level": 3, "cpu": "x86-64-v3", "progress": print,
    "device": "cpu", "cache_built_engines": True, "reuse_cached_engines": True, "engine_cache_dir": "off", "engine_cache_size": 1,
    "immutable_weights": True, "strip_engine_weights": True, "refit_identical_engine_weights": True, "timing_cache_path": "x",
    "custom_engine_cache": None,
}  # fmt: skip
SECTIONS = ("Functions", "Arguments", "Runtime", "Debugging, caches and the rest", "Settings")

# Each name of the peer's that callers write.
NAMES = (PAGE.parents[1] / "tests/data/torch_tensorrt_names.txt").read_text().split("\n", 1)[1].split()


def test_tables_are_read() -> None:
    assert len(rows("Functions")) > 15
    assert len(rows("Settings")) > 20
    assert all(rows(section) for section in SECTIONS)


def test_each_name_is_told() -> None:
    text = PAGE.read_text()
    assert [name for name in NAMES if not re.search(rf"\b{re.escape(name)}\b", text)] == []


def test_each_row_says_what_or_why() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:4]] for line in lines]
    assert [peer for peer, cell, why in cells if not why and cell in ("not yet", "none")] == []


@pytest.mark.parametrize(
    ("peer", "cell", "is_argument"),
    [(*row, section == "Arguments") for section in SECTIONS[:-1] for row in rows(section)],
)
def test_functions(peer: list[str], cell: str, is_argument: bool) -> None:
    if cell.startswith("`ingot."):
        assert all(exists(name) for name in re.findall(r"`([\w.]+)`", cell))
    elif cell.startswith("`torch.compile"):
        assert "ingot" in torch._dynamo.list_backends()
    elif cell.startswith("`"):
        Settings.parse({cell.strip("`"): VALUES.get(cell.strip("`"), [])})
    else:
        assert cell in ("not yet", "none")
        paths = [name.removeprefix("torch_tensorrt.") for name in peer if not is_argument]
        assert not any(exists(f"ingot.{path}") for path in paths)


@pytest.mark.parametrize(("peer", "cell"), rows("Settings"))
def test_settings(peer: list[str], cell: str) -> None:
    if cell.startswith("`"):
        name, _, value = cell.strip("`").partition("=")
        names = [name]
        Settings.parse({name: value.strip('"') or VALUES.get(name, [])})
    else:
        assert cell in ("not yet", "none")
        names = []
    assert set(peer) - set(names) <= set(PEER_OPTIONS)


def test_options_of_the_peer_are_listed() -> None:
    text = PAGE.read_text().split("## Settings")[1].split("\n| ")[0]
    accepted, rejected = text.split("These are accepted with the value")
    listed = [set(re.findall(r"`([a-z_0-9]+)`", part)) for part in (accepted, rejected)]
    idle = {name for name, option in PEER_OPTIONS.items() if option.accepted is None}
    assert listed == [idle, set(PEER_OPTIONS) - idle]


@pytest.mark.parametrize("name", PEER_OPTIONS)
def test_options_of_the_peer(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Each way in accepts them with one notice, or rejects what it cannot do."""
    option = PEER_OPTIONS[name]
    model, x = torch.nn.ReLU(), torch.ones(2)
    value = (
        "anything"
        if option.accepted is None
        else "STANDARD"
        if name == "engine_capability"
        else option.accepted[0]
    )
    for ways in ({"ir": "dynamo"}, {"ir": "torch_compile"}):
        caplog.clear()
        assert torch.equal(ingot.compile(model, inputs=[x], **ways, **{name: value})(x), x)
        notices = [record.getMessage() for record in caplog.records if record.name == "ingot"]
        assert [name in notice for notice in notices] == [True]
    if option.accepted is not None:
        for parse in (
            Settings.parse,
            lambda options: torch.compile(model, backend="ingot", options=options)(x),
        ):
            torch._dynamo.reset()
            with pytest.raises(ingot.UserError, match=f'"{name}" of Torch-TensorRT cannot be') as error:
                parse({name: "something"})
            assert error.value.code == "INGOT-U030"
            assert error.value.advice


# The default of each setting there, and None where its functions have that.
DEFAULTS: dict[str, Any] = {
    "workspace_size": 0, "min_block_size": 5, "torch_executed_ops": set(), "pass_through_build_failures": False,
    "max_aux_streams": None, "version_compatible": False, "optimization_level": None, "truncate_double": False,
    "use_fast_partitioner": True, "enable_experimental_decompositions": False, "device": None, "require_full_compilation": False,
    "disable_tf32": False, "assume_dynamic_shape_support": False, "sparse_weights": False, "engine_capability": "STANDARD",
    "num_avg_timing_iters": 1, "dla_sram_size": 1 << 20, "dla_local_dram_size": 1 << 30, "dla_global_dram_size": 1 << 29,
    "dryrun": False, "hardware_compatible": False, "lazy_engine_init": False, "cache_built_engines": False,
    "reuse_cached_engines": False, "use_fp32_acc": False, "refit_identical_engine_weights": False, "strip_engine_weights": False,
    "immutable_weights": True, "enable_weight_streaming": False, "enable_cross_compile_for_windows": False,
    "tiling_optimization_level": "none", "l2_limit_for_tiling": -1, "use_distributed_mode_trace": False,
    "offload_module_to_cpu": False, "enable_autocast": False, "autocast_low_precision_type": None,
    "autocast_excluded_nodes": set(), "autocast_excluded_ops": set(), "autocast_max_output_threshold": 512,
    "autocast_max_depth_of_reduction": None, "autocast_calibration_dataloader": None, "enable_resource_partitioning": False,
    "cpu_memory_budget": None, "dynamically_allocate_resources": False, "decompose_attention": False,
    "disabled_constant_fold_exclusions": set(), "attn_bias_is_causal": False, "fallback_data_dependent_ops": False,
    "engine_cache_size": 5368709120, "custom_engine_cache": None, "torch_executed_modules": set(), "use_python_runtime": False,
    "enabled_precisions": None, "use_complex_decomposition": True,
}  # fmt: skip


@pytest.mark.parametrize("ir", ["dynamo", "torch_compile"])
def test_defaults_of_the_peer_change_nothing(ir: str) -> None:
    settings = NAMES[NAMES.index("workspace_size") : NAMES.index("use_python_runtime")]
    assert set(settings) - set(DEFAULTS) == {
        "timing_cache_path",
        "engine_cache_dir",
    }  # in temporary folders there
    model, x = torch.nn.ReLU(), torch.ones(2)
    torch._dynamo.reset()
    compiled = ingot.compile(model, inputs=[x], ir=ir, **DEFAULTS | {"min_block_size": 1})
    assert torch.equal(compiled(x), x)
    assert {segment.backend for segment in ingot.report(compiled).segments} == {"cpu"}
