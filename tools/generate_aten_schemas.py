#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds the operator list of the installed torch to src/importers/aten/schema/aten_schemas.def.

Run it when a new torch is supported. Overloads that the table has stay, as files of older torches name them, and so do
their words. One table serves all versions as long as newer ones only add arguments with defaults at the end of an overload:
anything else ends in an error here, and would need a table for each version. (From 2.11 to 2.15 one overload grew; none
changed.) Kept are the overloads that a model at inference can call: no backward,
no out= variants, and nothing of layouts, devices and libraries whose tensors Ingot refuses. Words after a schema
and a bar are what torch's own tables say of the overload:

- how its operands are promoted, by the decorators of torch._refs: default, int_to_float, always_bool ...;
- inplace_view: it changes the sizes and strides of its operand, and writes nothing (torch's tag);
- draws: each call draws random numbers (torch's tag nondeterministic_seeded, without those that only do so in training).
"""

import argparse
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import torch
import torchgen
from torch._prims_common.wrappers import elementwise_type_promotion_wrapper
from torchgen.gen import parse_native_yaml
from torchgen.model import FunctionSchema, NativeFunction

TABLE = Path(__file__).resolve().parent.parent / "src/importers/aten/schema/aten_schemas.def"
VERSION = torch.__version__.partition("+")[0]
FOREIGN_NAME = re.compile(
    r"backward|^_foreach|^_fused_(adam|sgd|dropout|moving|sdp)|cudnn|miopen|mkldnn|mkl_|_mps|fbgemm|sparse|_amp_|(?<!fake_)quantize|^_cufft|nnpack|_cslt"
    r"|nested|^_test_|autocast|_coalesce|_triton|_grad$|vulkan|^_thnn|_cummax_helper|^q_(scale|zero)|_debug"
    r"|_fw_primal|_(un)?(make|pack)_dual|_make_per|_learnable_|moving_avg_obs"
)
FOREIGN_TYPE = re.compile(r"\b(Dimname|QScheme|Stream|Storage|DeviceIndex)\b")

# Their result may be their operand, which torch's list does not declare.
SHARING = {
    "type_as(Tensor self, Tensor other) -> Tensor": "type_as(Tensor(a) self, Tensor other) -> Tensor(a)",
}


def is_kept(func: FunctionSchema) -> bool:
    return not (func.is_out_fn() or FOREIGN_NAME.search(str(func.name)) or FOREIGN_TYPE.search(str(func)))


# Arguments of overloads that draw random numbers only if these say so.
TRAINING = {"train", "training", "dropout", "dropout_p"}


# Torch's references of operators, by the prefix of their ATen names.
REFERENCES = {
    "": (torch._refs, torch._refs.nn.functional),
    "linalg_": (torch._refs.linalg,),
    "special_": (torch._refs.special,),
}


def promotion_of(reference: Callable) -> elementwise_type_promotion_wrapper | None:
    """The decorator of a reference, which is among several."""
    while inspect.isfunction(reference):
        inner = inspect.getclosurevars(reference).nonlocals
        if isinstance(inner.get("self"), elementwise_type_promotion_wrapper):
            return inner["self"]
        reference = inner.get("fn")
    return None


def promotion_kinds() -> dict[str, str]:
    kinds = {}
    for prefix, modules in REFERENCES.items():
        for module in modules:
            for name in module.__all__:
                if promotion := promotion_of(getattr(module, name)):
                    kinds.setdefault(prefix + name, promotion.type_promotion_kind.name.lower())
    return kinds


def words(function: NativeFunction, kinds: dict[str, str]) -> list[str]:
    found = [kinds[name]] if (name := str(function.func.name.name)) in kinds else []
    if "inplace_view" in function.tags:
        found.append("inplace_view")
    arguments = {argument.name for argument in function.func.arguments.flat_all}
    if "nondeterministic_seeded" in function.tags and arguments.isdisjoint(TRAINING):
        found.append("draws")
    return found


def schemas() -> list[str]:
    folder = Path(torchgen.__file__).parent / "packaged/ATen/native"
    parsed = parse_native_yaml(str(folder / "native_functions.yaml"), str(folder / "tags.yaml"))
    kinds = promotion_kinds()
    lines = []
    for function in parsed.native_functions:
        if is_kept(function.func):
            said = words(function, kinds)
            lines.append(
                " ".join(
                    [SHARING.get(str(function.func), str(function.func)), *(["|", *said] if said else [])]
                )
            )
    return sorted(lines, key=lambda line: line.partition("(")[0])


def name_of(line: str) -> str:
    return line.partition("(")[0]


def takes_calls_of(old: FunctionSchema, new: FunctionSchema) -> bool:
    """Whether `new` is `old`, but for arguments with defaults at the end."""
    pairs = [
        (old.arguments.flat_positional, new.arguments.flat_positional),
        (old.arguments.flat_kwarg_only, new.arguments.flat_kwarg_only),
    ]
    added = [argument for before, after in pairs for argument in after[len(before) :]]
    return (
        old.returns == new.returns
        and all(before == after[: len(before)] for before, after in pairs)
        and all(argument.default is not None for argument in added)
    )


def merged_line(old: str, new: str) -> str:
    """The schema of the newer torch, with the words that the table has."""
    before, bar, said = old.partition(" | ")
    after = new.partition(" | ")[0]
    if not takes_calls_of(FunctionSchema.parse(before), FunctionSchema.parse(after)):
        raise SystemExit(f"torch {VERSION} reads calls of an older one differently:\n{before}\n{after}")
    return after + bar + said


def merged(lines: list[str], added: list[str]) -> list[str]:
    rows = {name_of(line): line for line in lines}
    for line in added:
        name = name_of(line)
        rows[name] = merged_line(rows[name], line) if name in rows else line
    return [rows[name] for name in sorted(rows)]


def table(text: str) -> str:
    """The table `text` with the overloads of the installed torch."""
    head, versions, lines = re.fullmatch(
        r"(.* from torch )([^\n]*)\.\n.*R\"schemas\(\n(.*)\n\)schemas\"\n", text, re.DOTALL
    ).groups()
    if VERSION not in versions.split(", "):
        versions = f"{versions}, {VERSION}"
    return "\n".join(
        [
            f"{head}{versions}.",
            "// One overload per line, sorted by name: schemas.cpp uses binary search.",
            'R"schemas(',
            *merged(lines.split("\n"), schemas()),
            ')schemas"\n',
        ]
    )


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    TABLE.write_text(table(TABLE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
