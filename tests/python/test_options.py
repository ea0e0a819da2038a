# SPDX-License-Identifier: Apache-2.0
"""A bad option is an error at once, whatever the way in: it never leaves nodes to torch, and it names the option."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from errors.inputs import INGOT
from ingot import _core, dynamo
from ingot.settings import Settings
from ingot.torch_backend import backend
from lacking import negated
from torch import nn

# By the type that `ingot build --help` prints: values that are bad for every option of that type.
_BAD = {
    "backend[:device]": ["gpu", "cpu:x86-64-v9", "cuda:sm_70", 1.5, None, ["cpu"]],
    "bool": ["maybe", 2, 1.0, None, [True]],
    "number": ["many", "", -2, 1.5, None, [1], True],
    "seed": ["many", "1.x", 1.5, None, [1], True],
    "number[.number]": ["many", "", -2, "1.x", "1.", ".5", None, [1], True],
    "0..5": [6, 7, -1, "high", "", 2.0, None, True],
    "bytes": ["much", "", -2, 1.5, None, [1], True],
    "strict|default|fast": ["precise", "", 3, None, ["strict"]],
    "address": ["nonsense", "ftp://x", "redis://", "redis://x:y", 3, None, ["redis://x"]],
    "milliseconds": ["soon", "", 0, -1, 1.5, None, [1], True],
    "name": ["no_such_thing", 3, None, ["simplify"]],
    "folder": [1.5, None, ["folder"]],
    "file": [1.5, None, ["file"]],
    "files": [1.5, None, 3, [3], {"a"}, "a\nb", ["a\nb"]],
    "policies": ["write-back", "", "disk:", "tape:back", 3, None, ["back"]],
    "entries": [
        "no_such_thing",
        ["simplify", "no_such_thing"],
        "simplify.no_such_rule",
        "hoist@linear",
        3,
        None,
        [3],
    ],
    "patterns": [1.5, None, [3], {3}],
    "pattern=backend,...": [1, None, "softmax", "=cpu", {"softmax": 1}, {"softmax": "gpu"}, ["softmax"]],
    "dtypes": ["f64", "nothing", 3, None, [3], {torch.float64}, torch.float16],
    "platform": ["windows", "linux-mips", 3, None, ["windows-x86-64"]],
    "levels": [
        "i386",
        "x86-64-v3+nothing",
        "",
        "x86-64-v3,",
        "aarch64,aarch64",
        3,
        None,
        [],
        [3],
        ["x86-64-v3", "x86-64-v3"],
    ],
    "any|rank": ["first", "-1", "0:", "0:x", "0,any", "1.5", None, [0], {"0": 0}],
    "name:dims,...": ["nonsense", "x:-1", "x:axb", "other:3x8", "x:3", "x:4x8", 3, None, [3], {"x": (3, 8)}],
}
_BAD_OWN = {
    "check_weights": ["sometimes", 3, None],
    "staged": ["sometimes", 1, None],
    "staged_first_level": ["2", 6, True, None],
    "staged_threads": ["2", 0, True, None],
    "fallback": ["slowest", True, None],
    "check_indices": ["never", True, None, 1],
    "cuda_graphs": ["yes", 0, None],
    "require_full_compilation": ["yes", 1, None],
    "min_block_size": ["3", 0, -1, 2.0, True, None],
    "torch_executed_ops": [
        "aten.add.Tensor",
        ["aten.add.Tensr"],
        ["torch.abs"],
        ["aten.no_such_op.default"],
        [3],
        3,
        None,
        torch.tensor(1),
        torch.tensor([1, 2]),
        b"abs",
        {"aten.abs": 1},
        [["aten.abs"]],
    ],
    "progress": ["aloud", 3],
    "custom_engine_cache": [3, {}, "folder"],
    "metadata": ["a=1", {"a": 1}, {1: "a"}, {"": "a"}, {"a\0": "b"}, [("a", "b")], None],
}
_REFUSAL = r"^ingot: (\[INGOT-\w+\] |build takes no |.* required .* missing)"
_FOREIGN = {"optimisation_level": 3, "": 1}  # names that no option has


class Model(nn.Module):
    """An operator that engines support next to one that torch must run: fallbacks would go unnoticed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return negated(x.relu() + 1)


class Whole(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu() + 1


@pytest.fixture(scope="module", autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def program() -> torch.export.ExportedProgram:
    return torch.export.export(Model(), (torch.randn(3, 8),))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("options") / "whole.pt2"
    torch.export.save(torch.export.export(Whole(), (torch.randn(3, 8),)), path)
    return path


def _just_in_time(options: dict) -> None:
    torch._dynamo.reset()
    torch.compile(Model(), backend=backend, options=options)(torch.randn(3, 8))


Entry = Callable[[dict], Any]


@pytest.fixture(scope="module")
def entries(program: torch.export.ExportedProgram, archive: Path) -> dict[str, Entry]:
    return {
        "compile": lambda options: ingot.compile(Model(), inputs=[torch.randn(3, 8)], **options),
        "compile of a program": lambda options: ingot.compile(program, **options),
        "dynamo.compile": lambda options: dynamo.compile(program, **options),
        "build": lambda options: ingot.build(program, **options),
        "build of a file": lambda options: ingot.build(archive, **options),
        "torch.compile": _just_in_time,
    }


def _bad_values() -> Iterator[tuple[str, Any]]:
    for name, kind, *_ in _core.options():
        yield from ((name, value) for value in _BAD[kind])
    yield from ((name, value) for name, values in _BAD_OWN.items() for value in values)
    yield from _FOREIGN.items()


def _is_no_choice(name: str, value: Any) -> bool:
    """Torch-TensorRT's default of options of the same name."""
    return value is None and name in (
        "device",
        "enabled_precisions",
        "optimization_level",
        "torch_executed_ops",
    )


@pytest.mark.parametrize(("name", "value"), [row for row in _bad_values() if not _is_no_choice(*row)])
def test_a_bad_option_is_an_error_everywhere(name: str, value: Any, entries: dict[str, Entry]) -> None:
    for entry, call in entries.items():
        with pytest.raises((ingot.UserError, ingot.UnsupportedError)) as caught:
            call({name: value})
        assert caught.value.code in ("INGOT-U001", "INGOT-U002", "INGOT-U003", "INGOT-U004", "INGOT-U005",
                                     "INGOT-U011", "INGOT-U027", "INGOT-U031", "INGOT-U121", "INGOT-U123"), entry  # fmt: skip


class _Odd:
    """Neither text, nor equal to anything."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")


_ODD = [_Odd(), [_Odd()], torch.tensor(1), torch.tensor([1, 2]), torch.ones(2).numpy(), object(), len, 1j, float("nan"), -1, 2**70,
        b"x", [[1]], {1: 2}, {"a": object()}, int, "\0", "\ud800", ["\ud800"], {"\ud800": "a"}, {"a": "\ud800"}, range(2), iter([1]),
        ..., "no such thing"]  # fmt: skip


def _refusal_of(options: dict[str, Any]) -> str:
    try:
        Settings.parse(options)
    except ingot.Error as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", [*(row[0] for row in _core.options()), *_BAD_OWN])
def test_odd_values_are_taken_or_refused_by_name(name: str) -> None:
    for value in _ODD:
        refusal = _refusal_of({name: value})
        assert not refusal or name in refusal, value


@pytest.mark.parametrize(
    ("name", "value"), [row for row in _bad_values() if type(row[1]) in (int, str) and row[0] not in _BAD_OWN]
)
def test_a_bad_option_of_the_command_line(name: str, value: Any, archive: Path) -> None:
    if value is True:
        pytest.skip("the command line has texts alone")
    command = [
        INGOT,
        "build",
        archive,
        "-o",
        archive.with_suffix(".ingot"),
        f"--{name.replace('_', '-')}={value}",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (1, 2), done.stderr
    assert re.search(_REFUSAL, done.stderr, re.MULTILINE), done.stderr
    assert not archive.with_suffix(".ingot").exists()


@pytest.mark.parametrize("options", [{"optimisation_level": 3}, {"optimization_level": 6}])
def test_before_the_first_call(options: dict) -> None:
    with pytest.raises(ingot.Error, match="level"):
        ingot.compile(Model(), ir="torch_compile", **options)


def test_options_are_a_dict() -> None:
    with pytest.raises(ingot.UserError, match="dict"):
        backend(torch.fx.symbolic_trace(Whole()), [torch.randn(3, 8)], options=[("threads", 1)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [{"torch_executed_ops": [torch.ops.aten.add.Tensor]}, {"torch_executed_ops": ("aten.add.Tensor",)},
     {"disable_passes": ["simplify", "fuse"]}, {"disable_passes": "simplify,fuse"},
     {"disable_passes": ["simplify.add_zero", "fuse@linear*"]}, {"bisect_passes": "2.1"}, {"optimization_level": "2"},
     {"verify_passes": 1}, {"shapes": "x:3x8"}, {"shapes": ["0:3x8"]},
     {"engine_cache_dir": Path("off")}],
)  # fmt: skip
def test_good_values_of_several_types(options: dict) -> None:
    ingot.compile(Model(), inputs=[torch.randn(3, 8)], **options)


def test_a_file_is_no_trace_of_all_ranks(archive: Path) -> None:
    with pytest.raises(ingot.UserError, match=r"INGOT-U002.*a file is the trace of one rank"):
        ingot.build(archive, rank="all")
