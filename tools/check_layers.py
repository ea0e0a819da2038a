#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the #include lines of the tree against the layer table of docs/architecture.md.

A row names what a layer may include besides itself, and allows what its entries allow. Paths are below src/. No modules may form a
cycle.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from source_files import report, root_argument

BACKENDS = ("cpu", "cuda", "fake", "null")

LAYERS: dict[str, tuple[str, ...]] = {
    "support": (),
    "types": ("support",),
    "ir": ("types",),
    "loops": ("types",),
    "ops": ("ir", "loops"),
    "engine": ("types",),
    "routines": ("types",),
    "ranks": ("routines",),
    "cache": ("support",),
    "servers": ("cache",),
    "runtime": ("engine", "routines", "cache", "backends/executor.h"),
    "evaluate": ("ops", "routines"),
    "passes/rewrites": ("ir",),
    "passes/pass.h": ("ir", "passes/rewrites"),
    "backends/backend.h": ("ops", "loops", "engine", "passes/pass.h"),
    "backends/executor.h": ("engine",),
    "importers/aten/program": ("ir",),
    "importers/aten/schema": ("importers/aten/program",),
    "importers/aten/composites": ("importers/aten/program",),
    "importers/aten/converters": ("ops", "importers/aten/composites", "importers/aten/schema"),
    "importers/aten": ("importers/aten/converters", "importers/aten/imported.h"),
    "importers/aten/imported.h": ("ir",),
    "importers/files": ("support",),
    "importers/safetensors": ("importers/files", "types"),
    "importers/pt2": ("importers/files", "importers/aten/schema"),
    "importers/onnx": ("ops", "evaluate", "importers/aten/program", "importers/aten/imported.h"),
    "exporters/onnx": ("ops", "engine"),
    "passes": ("ops", "evaluate", "passes/pass.h"),
    "partition": ("ops", "engine", "backends/backend.h"),
    "plan": ("ops", "engine", "backends/backend.h"),
    # What both halves of a backend agree on.
    **{f"backends/{name}/kernel_abi.h": ("engine",) for name in BACKENDS},
    "backends/steps": ("ops", "loops", "engine", "backends/backend.h"),
    **{
        f"backends/{name}/compile": ("backends/steps", "passes", f"backends/{name}/kernel_abi.h")
        for name in BACKENDS
    },
    # The CPU's compiler: kernels are prepared, then emitted; templates emit what they prepare themselves.
    "backends/cpu/compile/prepare": ("loops", "backends/cpu/kernel_abi.h"),
    "backends/cpu/compile/llvm": ("backends/cpu/compile/prepare",),
    "backends/cpu/compile/templates": ("backends/cpu/compile/llvm", "backends/steps"),
    **{
        f"backends/{name}/execute": ("runtime", "routines", f"backends/{name}/kernel_abi.h")
        for name in BACKENDS
    },
    # The runtime library must link without the compiler, so its half of the API may not reach up.
    "api/runtime": ("runtime", "ranks", "importers/safetensors"),
    "api/runtime/executors.cpp": ("api/runtime", *(f"backends/{name}/execute" for name in BACKENDS)),
    "cli": (),
    "cli/opt": ("api/compiler", "cli"),
    "cli/accuracy_rule": ("compiler", "cli"),
    "cli/nearest": ("support", "cli"),
    "cli/paths": ("support", "cli"),
    "cli/windows": ("support", "cli"),
}
# Code for GPUs: made by one half of the backend, and read by the other.
LAYERS["backends/cuda/images"] = ("engine", "backends/cuda/kernel_abi.h")
LAYERS["backends/cuda/compile"] += ("backends/cuda/images",)
LAYERS["backends/cuda/execute"] += ("backends/cuda/images",)
LAYERS["backends/cpu/compile"] += ("backends/cpu/compile/templates",)
LAYERS["backends/fake/execute"] += ("loops",)  # its kernels are Loop IR; it is linked for tests alone
COMPILER_PARTS = tuple(
    name for name in LAYERS if not name.startswith(("api", "cli")) and not name.endswith("/execute")
)
LAYERS["report"] = ("support",)
LAYERS["compiler"] = (*COMPILER_PARTS, "backends/cpu/execute", "backends/cuda/execute")
LAYERS["api/compiler"] = ("compiler", "report", "api/runtime")

# Third parties that only some layers may see, by the beginning of the included path.
THIRD_PARTIES: dict[str, tuple[str, ...]] = {
    "llvm/": (
        "backends/cpu/compile",
        "backends/cpu/compile/llvm",
        "backends/cpu/compile/templates",
    ),
    "llvm-c/": (),
    "nlohmann/": ("importers/files", "compiler", "report", "api/compiler", "cli"),
    "kainjow/": ("report",),
    "CLI/": ("cli",),
    "Eigen/": ("routines",),
    "flatbuffers/": ("engine",),
    "sodium": ("support",),
    "zstd": ("cache",),
    "hiredis/": ("servers",),
    "curl/": ("servers",),
    "nanobind/": (),
    "torch/": (),
    "ATen/": (),
}

# Trees outside of src/ that may use nothing but the public headers.
PUBLIC_ONLY = ("include", "python", "libtorch", "examples", "bench")
# ... except benchmarks of single kernels.
INSIDE = ("bench/kernels",)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


@dataclass(frozen=True)
class Include:
    file: Path
    line: int
    quoted: bool
    target: str

    def complain(self, text: str) -> str:
        return f"{self.file}:{self.line}: {text}"


def allowed_layers(layer: str) -> set[str]:
    """The layer itself and, transitively, all that its row allows."""
    seen: set[str] = set()
    waiting = [layer]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(LAYERS.get(name, ()))
    return seen


def layer_of(path: str) -> str | None:
    """The longest row that the path (relative to src/) belongs to."""
    parts = path.split("/")
    row = path.rsplit(".", 1)[0]
    if row in LAYERS:  # of one file, without its suffix
        return row
    for length in range(len(parts), 0, -1):
        name = "/".join(parts[:length])
        if name in LAYERS:
            return name
    return None


def includes_of(file: Path, root: Path) -> list[Include]:
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            found.append(Include(file.relative_to(root), number, match[1] == '"', match[2]))
    return found


def sources_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in {".h", ".cpp", ".inc"})


def check_third_party(include: Include, layer: str) -> list[str]:
    for prefix, layers in THIRD_PARTIES.items():
        if include.target.startswith(prefix) and layer not in layers and layer.split("/")[0] not in layers:
            where = ", ".join(layers) or "no folder of src/"
            return [include.complain(f"<{include.target}> may be included in {where} only")]
    return []


def check_source(file: Path, root: Path) -> list[str]:
    """Messages for one file below src/."""
    layer = layer_of(file.relative_to(root / "src").as_posix())
    if layer is None:
        return [f"{file.relative_to(root)}: no row of the layer table holds this file"]
    allowed = allowed_layers(layer)
    problems = []
    for include in includes_of(file, root):
        problems += check_third_party(include, layer)
        if not include.quoted or include.target.startswith("ingot/"):
            continue
        if include.target.startswith("."):
            problems.append(include.complain("includes are relative to src/"))
            continue
        target = layer_of(include.target)
        if target is None:
            problems.append(include.complain(f'"{include.target}" is in no layer'))
        elif target not in allowed:
            problems.append(include.complain(f"{layer} may not include {target} ({include.target})"))
    return problems


def check_cycles(root: Path) -> list[str]:
    """Messages for cycles of modules: a header with the .cpp of its name, or a .cpp alone."""
    source = root / "src"
    uses: dict[str, list[str]] = {}
    for file in sources_below(source):
        module = file.relative_to(source).with_suffix("").as_posix()
        targets = [Path(include.target) for include in includes_of(file, root) if include.quoted]
        modules = [target.with_suffix("").as_posix() for target in targets if (source / target).is_file()]
        uses.setdefault(module, []).extend(other for other in modules if other != module)
    finished: set[str] = set()
    problems = []

    def follow(module: str, path: list[str]) -> None:
        if module in path:
            cycle = " -> ".join([*path[path.index(module) :], module])
            problems.append(
                f"src: modules depend on each other: {cycle}; move what they share to a header of its own"
            )
        elif module not in finished:
            for other in uses.get(module, ()):
                follow(other, [*path, module])
            finished.add(module)

    for module in uses:
        follow(module, [])
    return problems


def check_public_user(file: Path, root: Path) -> list[str]:
    """Messages for one file that may use only include/ and its own folder."""
    problems = []
    for include in includes_of(file, root):
        is_own = (file.parent / include.target).exists() or (root / include.target).exists()
        is_public = include.target.startswith("ingot/")
        if include.quoted and not is_public and (not is_own or include.target.startswith("src/")):
            problems.append(include.complain(f'only include/ingot may be used here, not "{include.target}"'))
    return problems


def check_tree(root: Path) -> list[str]:
    problems = [message for file in sources_below(root / "src") for message in check_source(file, root)]
    problems += check_cycles(root)
    for folder in PUBLIC_ONLY:
        for file in sources_below(root / folder):
            if not file.relative_to(root).as_posix().startswith(INSIDE):
                problems += check_public_user(file, root)
    return problems


def main() -> int:
    root = root_argument(__doc__)
    problems = check_tree(root)
    count = len(sources_below(root / "src"))
    print(f"layers: {count} files of src/ checked, {len(problems)} problems")
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
