# SPDX-License-Identifier: Apache-2.0
"""check_layers must find everything that the layer table forbids, and nothing else."""

import itertools
from pathlib import Path

import check_layers
import pytest
from source_files import ROOT


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("file", "include"),
    [
        ("src/types/dtype.h", '"support/error.h"'),
        ("src/plan/plan.cpp", '"support/error.h"'),  # what a row's entries allow, it allows
        ("src/importers/pt2/reader.cpp", '"importers/aten/program/aten_graph.h"'),
        ("src/passes/fuse.cpp", '"evaluate/evaluate.h"'),
        ("src/backends/cpu/compile/emit.cpp", "<llvm/IR/IRBuilder.h>"),
        ("src/backends/cpu/compile/llvm/emit.cpp", '"backends/cpu/compile/prepare/lane_plan.h"'),
        ("src/backends/cpu/compile/templates/tile.cpp", '"backends/cpu/compile/llvm/code.h"'),
        ("src/compiler/compile.cpp", '"backends/cpu/compile/backend.h"'),
        ("src/cli/opt.cpp", '"passes/pipeline.h"'),
        ("src/cli/run.cpp", "<ingot/ingot.h>"),
        ("bench/matmul.cpp", "<ingot/engine.h>"),
    ],
)
def test_allowed_include(tmp_path, file, include):
    assert check_layers.check_tree(write(tmp_path, {file: f"#include {include}\n"})) == []


@pytest.mark.parametrize(
    ("file", "include"),
    [
        ("src/support/error.h", '"types/dtype.h"'),
        ("src/ir/graph.h", '"loops/kernel.h"'),
        ("src/runtime/engine.cpp", '"ops/ops.h"'),
        ("src/passes/fuse.cpp", '"importers/aten/program/aten_graph.h"'),
        ("src/importers/aten/import.cpp", '"importers/pt2/reader.h"'),
        ("src/importers/aten/program/guards.cpp", '"importers/aten/schema/schemas.h"'),
        ("src/importers/aten/schema/aliases.cpp", '"importers/aten/converters/call.h"'),
        ("src/importers/aten/converters/view.cpp", '"importers/aten/import.h"'),
        ("src/importers/pt2/reader.cpp", '"importers/aten/import.h"'),
        ("src/importers/aten/import.cpp", '"passes/pipeline.h"'),
        ("src/backends/cpu/execute/run.cpp", '"backends/cpu/compile/emit.h"'),
        ("src/backends/cpu/compile/emit.cpp", '"backends/null/compile/backend.h"'),
        ("src/backends/cpu/compile/emit.cpp", '"runtime/engine.h"'),
        ("src/backends/cpu/compile/prepare/lane_plan.cpp", "<llvm/IR/IRBuilder.h>"),
        ("src/backends/cpu/compile/prepare/lane_plan.cpp", '"backends/cpu/compile/llvm/code.h"'),
        ("src/backends/cpu/compile/llvm/emit.cpp", '"backends/cpu/compile/templates/tile.h"'),
        ("src/backends/cpu/compile/llvm/emit.cpp", '"backends/cpu/compile/emit_kernel.h"'),
        ("src/backends/cpu/compile/templates/tile.cpp", '"backends/cpu/compile/passes.h"'),
        ("src/api/runtime/engine.cpp", '"compiler/compile.h"'),
        ("src/cli/run.cpp", '"passes/pipeline.h"'),
        ("src/ops/softmax.cpp", "<llvm/IR/IRBuilder.h>"),
        ("src/runtime/json.cpp", "<nlohmann/json.hpp>"),
        ("src/ir/graph.cpp", '"../support/error.h"'),
        ("src/ir/graph.cpp", '"nowhere/error.h"'),
        ("src/somewhere/new.cpp", "<vector>"),
        ("bench/matmul.cpp", '"loops/kernel.h"'),
        ("python/bindings/engine.cpp", '"runtime/engine.h"'),
        ("examples/cpp/run.cpp", '"support/error.h"'),
        ("include/ingot/engine.h", '"runtime/engine.h"'),
    ],
)
def test_forbidden_include(tmp_path, file, include):
    problems = check_layers.check_tree(write(tmp_path, {file: f"#pragma once\n#include {include}\n"}))
    assert len(problems) == 1
    assert problems[0].startswith(file)


@pytest.mark.parametrize("length", [2, 3])
def test_cycle_of_modules(tmp_path, length):
    """Each header is fine, but the last .cpp includes the first header."""
    names = "abc"[:length]
    files = {f"src/types/{name}.h": "" for name in names}
    files |= {f"src/types/{a}.h": f'#include "types/{b}.h"\n' for a, b in itertools.pairwise(names)}
    assert check_layers.check_tree(write(tmp_path, files)) == []
    (tmp_path / f"src/types/{names[-1]}.cpp").write_text('#include "types/a.h"\n', encoding="utf-8")
    [problem] = check_layers.check_tree(tmp_path)
    assert " -> ".join(f"types/{name}" for name in [*names, "a"]) in problem


def test_this_tree():
    assert check_layers.check_tree(ROOT) == []


def test_every_row_names_rows():
    for name, entries in check_layers.LAYERS.items():
        assert set(entries) <= set(check_layers.LAYERS), name
