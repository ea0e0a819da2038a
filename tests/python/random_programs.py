# SPDX-License-Identifier: Apache-2.0
"""Random modules: statements of Python over tensors, drawn one by one and kept if eager can run them.

A program is data (`Program`), prints as source that runs by itself (`source`), and is run by `build_module`. Statements
are tried on all size assignments of the program at once, so that a program with dynamic sizes is valid for each of them.
"""

from __future__ import annotations

import random
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import statements
import torch
import wider_statements
from torch import nn

_LARGEST = 4096  # elements of a value
_FILLS = ("normal", "normal", "normal", "special", "wide", "small_integers")
_DTYPES = ("float32",) * 6 + ("float64", "int64", "bool", "bfloat16", "float16", "int32", "uint8")


@dataclass(frozen=True)
class Leaf:
    """An argument, parameter or buffer: sizes are numbers, or names of dynamic sizes."""

    name: str
    kind: str  # argument, parameter or buffer
    shape: tuple[int | str, ...]
    dtype: str = "float32"
    fill: str = "normal"
    strided: bool = False  # an argument whose memory is transposed

    def make(self, sizes: dict[str, int], seed: int) -> torch.Tensor:
        shape = [sizes[size] if isinstance(size, str) else size for size in self.shape]
        return filled(shape, self.dtype, self.fill, self.strided, seed)


def filled(shape: list[int], dtype: str, fill: str, strided: bool, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    drawn = shape[::-1] if strided else shape
    if fill == "small_integers" or not getattr(torch, dtype).is_floating_point:
        value = torch.randint(0 if dtype == "uint8" else -3, 5, drawn, generator=generator).to(
            getattr(torch, dtype)
        )
    else:
        value = torch.randn(drawn, generator=generator)
        if fill == "wide":
            value = value * torch.exp2(torch.randint(-40, 40, drawn, generator=generator).float())
        if fill == "special":
            points = torch.tensor(
                [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-40, 1e30, -1e30, 1.0]
            )
            chosen = points[torch.randint(0, len(points), drawn, generator=generator)]
            value = torch.where(torch.rand(drawn, generator=generator) < 0.15, chosen, value)
        value = value.to(getattr(torch, dtype))
    return value.permute(tuple(reversed(range(value.dim())))) if strided else value


@dataclass(frozen=True)
class Statement:
    text: str  # "v3 = v1 + self.p0"
    result: str = ""  # the name that it binds, "" if it only writes
    reads: tuple[str, ...] = ()


# What else a program and its caller do, and how often.
MANNERS = {
    "structured": 0.15,  # results in a dict, beside None, an integer and a size
    "cached": 0.05,  # a model with other weights was compiled before, into the same cache
    "other strides": 0.1,  # later calls have arguments whose memory is transposed
    "writes results": 0.25,  # the caller writes into the results of each call
    "one tensor": 0.08,  # arguments of equal types are the same tensor
    "autocast": 0.08,  # to bf16
    "counts": 0.3,  # calls choose an integer that the program uses
    "saved": 0.1,  # the compiled model is saved and loaded
    "new weights": 0.1,  # parameters change before the last call
    "level 0": 0.05,
    "level 1": 0.05,
    "level 2": 0.05,
    "strict": 0.05,
    "x86-64-v3": 0.08,
    "named": 0.1,  # results in a named tuple
    "keywords": 0.15,  # all arguments but the first are given by their names, the last one first
    "one memory": 0.12,  # later calls are given the same tensors, into which the caller has written
    "fed back": 0.12,  # results are arguments of the next call
    "parts": 0.1,  # torch runs some operators, between engines
    "quantized": 0.1,  # linear layers and convolutions, if there are any
}
COUNT = 2  # that integer, if they do not


@dataclass(frozen=True)
class Program:
    seed: int
    leaves: tuple[Leaf, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]
    sizes: tuple[dict[str, int], ...] = ({},)  # size assignments; the first one is the example
    manners: tuple[str, ...] = ()  # some of MANNERS

    @property
    def arguments(self) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf.kind == "argument"]

    def source(self) -> str:
        """The class, as Python source."""
        stored = [leaf for leaf in self.leaves if leaf.kind != "argument"]
        lines = ["class Model(torch.nn.Module):", "    def __init__(self):", "        super().__init__()"]
        for leaf in stored:
            call = f"filled({list(leaf.shape)}, {leaf.dtype!r}, {leaf.fill!r}, False, {self._seed_of(leaf)})"
            if leaf.kind == "parameter":
                lines.append(f"        self.{leaf.name} = torch.nn.Parameter({call}, requires_grad=False)")
            else:
                lines.append(f"        self.register_buffer({leaf.name!r}, {call})")
        lines += [
            "",
            f"    def forward(self, {', '.join(leaf.name for leaf in self.arguments)}, count={COUNT}):",
        ]
        lines += [f"        {statement.text}" for statement in self.statements]
        results = f"({', '.join(self.outputs)},)"
        if "structured" in self.manners:
            first = next((leaf.name for leaf in self.arguments if leaf.shape), "")
            size = f"{first}.shape[0]" if first else "7"
            results = f"{{'first': {results}, 'others': [None, 3, {{'size': {size}}}]}}"
        if "named" in self.manners:
            results = f"Named({results}, {self.outputs[0]})"
        lines.append(f"        return {results}")
        return "\n".join(lines) + "\n"

    def inputs(self, assignment: int, call: int = 0) -> list[torch.Tensor]:
        given: list[torch.Tensor] = []
        for leaf in self.arguments:
            value = leaf.make(self.sizes[assignment], self._seed_of(leaf) + 1000 * call)
            if call > 0 and "other strides" in self.manners:
                value = value.mT.contiguous().mT if value.dim() > 1 else value
            equal = [a for a in given if a.shape == value.shape and a.dtype == value.dtype]
            given.append(equal[0] if equal and "one tensor" in self.manners else value)
        return given

    def passed(
        self, given: Sequence[torch.Tensor]
    ) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]:
        """Arguments by their positions, and by their names."""
        if "keywords" not in self.manners:
            return tuple(given), {}
        named = [(leaf.name, value) for leaf, value in zip(self.arguments, given, strict=True)]
        return tuple(given[:1]), dict(reversed(named[1:]))

    def counts(self, call: int) -> dict[str, int]:
        return {"count": (3, 4, 1, 6)[call % 4]} if "counts" in self.manners else {}

    def _seed_of(self, leaf: Leaf) -> int:
        names = [other.name for other in self.leaves]
        return self.seed % 100_003 * 64 + names.index(leaf.name)

    def without(self, position: int) -> Program:
        """Without a statement, and without all that depend on it."""
        gone: set[str] = set()
        kept = []
        for k, statement in enumerate(self.statements):
            if k == position or gone & set(statement.reads):
                gone |= {statement.result} - {""}
            else:
                kept.append(statement)
        outputs = tuple(name for name in self.outputs if name not in gone)
        return replace(self, statements=tuple(kept), outputs=outputs)


Named = namedtuple("Named", ("all", "best"))

NAMESPACE: dict[str, Any] = {
    "Named": Named,
    "torch": torch,
    "F": nn.functional,
    "filled": filled,
    "inf": float("inf"),
    "nan": float("nan"),
    "branch": wider_statements.branch,
    "repeat": wider_statements.repeat,
    "found": wider_statements.found,
    "count": COUNT,
}


def build_module(program: Program) -> nn.Module:
    """A module that torch can trace: its source has a file of its own, which linecache knows."""
    import linecache

    text, name = program.source(), f"<random program {program.seed}-{abs(hash(program.source()))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = dict(NAMESPACE)
    exec(compile(text, name, "exec"), scope)
    return scope["Model"]().eval()


@dataclass
class World:
    """The values of one size assignment while a program is drawn."""

    values: dict[str, torch.Tensor] = field(default_factory=dict)
    module: Any = None

    def run(self, text: str) -> None:
        scope = {**NAMESPACE, "self": self.module, **self.values}
        exec(text, scope)
        self.values.update(
            {name: value for name, value in scope.items() if name in self.values or name.startswith("v")}
        )


class _Store:
    """Stands for the module while statements are tried: parameters and buffers are attributes."""


class Drawing:
    """Draws one program."""

    def __init__(self, seed: int, dynamic: bool) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        first = {"n": self.random.randint(3, 6), "m": self.random.randint(2, 5)}
        second = {"n": self.random.randint(7, 9), "m": self.random.randint(6, 8)}
        smallest = ({"n": 2, "m": 2},) if self.random.random() < 0.4 else ()
        self.sizes = (first, second, *smallest) if dynamic else ({},)
        self.leaves: list[Leaf] = []
        self.kept: list[Statement] = []
        self.draw_leaves(dynamic)
        program = Program(seed, tuple(self.leaves), (), (), self.sizes)
        self.worlds = [self.world(program, k) for k in range(len(self.sizes))]

    def draw_leaves(self, dynamic: bool) -> None:
        rank = self.random.choice((0, 1, 2, 2, 3, 3, 4, 4))
        base: list[int | str] = [self.random.choice((1, 2, 3, 4, 5, 8, 16, 17)) for _ in range(rank)]
        if dynamic and base:
            base[self.random.randrange(len(base))] = self.random.choice("nm")
        for k in range(self.random.randint(1, 3)):
            dtype, fill = self.random.choice(_DTYPES), self.random.choice(_FILLS)
            strided = not dynamic and self.random.random() < 0.15
            self.leaves.append(
                Leaf(f"x{k}", "argument", self.related(base) if k else tuple(base), dtype, fill, strided)
            )
        for k in range(self.random.randint(0, 2)):
            dtype = self.random.choice(("float32", "float32", "int64", "float64"))
            self.leaves.append(Leaf(f"b{k}", "buffer", self.fixed(self.related(base)), dtype))
        for k in range(self.random.randint(0, 2)):
            self.leaves.append(Leaf(f"p{k}", "parameter", self.weight_shape(base)))

    def related(self, base: list[int | str]) -> tuple[int | str, ...]:
        """The same shape, or one that broadcasts with it; at times another one."""
        if self.random.random() < 0.4:
            return tuple(base)
        if self.random.random() < 0.2:
            return tuple(self.random.choice((1, 2, 3, 7)) for _ in range(self.random.randint(0, 3)))
        tail = base[self.random.randint(0, len(base)) :]
        return tuple(1 if self.random.random() < 0.25 else size for size in tail)

    def fixed(self, shape: tuple[int | str, ...]) -> tuple[int, ...]:
        return tuple(size if isinstance(size, int) else self.random.choice((1, 4)) for size in shape)

    def weight_shape(self, base: list[int | str]) -> tuple[int, ...]:
        outputs, own = self.random.choice((1, 3, 8, 17, 32)), self.fixed(tuple(base))
        if len(own) == 4 and self.random.random() < 0.6:
            return (outputs, own[1], *self.random.choice(((1, 1), (3, 3), (2, 2))))
        return (outputs, own[-1]) if own and self.random.random() < 0.7 else self.fixed(self.related(base))

    def world(self, program: Program, assignment: int) -> World:
        store = _Store()
        for leaf in self.leaves:
            if leaf.kind != "argument":
                setattr(store, leaf.name, leaf.make({}, program._seed_of(leaf)))
        values = {
            leaf.name: value
            for leaf, value in zip(program.arguments, program.inputs(assignment), strict=True)
        }
        return World(values, store)

    def names(self) -> list[str]:
        own = list(self.worlds[0].values)
        return own + [f"self.{leaf.name}" for leaf in self.leaves if leaf.kind != "argument"]

    def value(self, name: str) -> torch.Tensor:
        world = self.worlds[0]
        return getattr(world.module, name[5:]) if name.startswith("self.") else world.values[name]

    def add(self, statement: Statement) -> bool:
        """Keeps a statement that all worlds can run, and whose values are small tensors."""
        before = [dict(world.values) for world in self.worlds]
        try:
            with torch.no_grad():
                for world in self.worlds:
                    world.run(statement.text)
            results = (
                [world.values.get(statement.result) for world in self.worlds] if statement.result else []
            )
            good = all(
                isinstance(v, torch.Tensor) and v.numel() <= _LARGEST and v.dim() <= 5 and not v.is_complex()
                for v in results
            ) and not (results and results[0].numel() == 0)  # sizes other than the first may leave nothing
        except Exception:
            good = False
        if not good:
            for world, values in zip(self.worlds, before, strict=True):
                world.values = values
            return False
        self.kept.append(statement)
        return True

    def add_layer(self) -> None:
        """A convolution or linear layer of an f32 value, if there is one, and something behind it."""
        values = self.worlds[0].values
        fitting = [name for name, value in values.items() if value.dtype == torch.float32 and value.dim() > 1]
        if not fitting:
            return
        read, name = fitting[-1], f"p{sum(leaf.kind == 'parameter' for leaf in self.leaves)}"
        shape = tuple(values[read].shape)
        is_convolution = len(shape) == 4 and self.random.random() < 0.6
        weight = Leaf(name, "parameter", (5, shape[1], 3, 3) if is_convolution else (9, shape[-1]))
        self.leaves.append(weight)
        seed = Program(self.seed, tuple(self.leaves), (), ())._seed_of(weight)
        for world in self.worlds:
            setattr(world.module, name, weight.make({}, seed))
        result = f"v{len(self.kept)}"
        call = (
            f"F.conv2d({read}, self.{name}, padding=1)"
            if is_convolution
            else f"F.linear({read}, self.{name})"
        )
        if self.add(Statement(f"{result} = {call}", result, (read,))):
            after = f"v{len(self.kept)}"
            self.add(Statement(f"{after} = F.relu({result}) + 0.5", after, (result,)))

    def program(self) -> Program:
        length = self.random.randint(2, 10)
        for _ in range(40 * length):
            if len(self.kept) >= length:
                break
            self.add(statements.draw(self, f"v{len(self.kept)}"))
        manners = tuple(name for name, share in MANNERS.items() if self.random.random() < share)
        if "quantized" in manners:
            self.add_layer()
        bound = [statement.result for statement in self.kept if statement.result]
        outputs = (
            bound[-1:] + self.random.sample(bound[:-1], min(len(bound[:-1]), self.random.randint(0, 2)))
            if bound
            else []
        )
        if not outputs or self.random.random() < 0.1:
            outputs.append(self.random.choice([leaf.name for leaf in self.leaves if leaf.kind == "argument"]))
        return Program(self.seed, tuple(self.leaves), tuple(self.kept), tuple(outputs), self.sizes, manners)


def draw(seed: int) -> Program:
    return Drawing(seed, dynamic=seed % 3 == 0).program()


def smaller(program: Program) -> Iterator[Program]:
    """Programs with one thing less."""
    for manner in program.manners:
        yield replace(program, manners=tuple(other for other in program.manners if other != manner))
    for k in range(len(program.outputs)):  # a later result keeps more of the program alive
        if len(program.outputs) > 1:
            yield replace(program, outputs=program.outputs[:k] + program.outputs[k + 1 :])
    for k in reversed(range(len(program.statements))):
        candidate = program.without(k)
        if candidate.outputs:
            yield candidate
    used = program.source().split("def forward", 1)[1]
    for leaf in program.leaves:
        if leaf.kind != "argument" and f"self.{leaf.name}" not in used:
            yield replace(program, leaves=tuple(other for other in program.leaves if other != leaf))
    for leaf in program.leaves:
        for simple in (replace(leaf, fill="normal"), replace(leaf, strided=False)):
            if simple != leaf:
                yield replace(
                    program, leaves=tuple(simple if other == leaf else other for other in program.leaves)
                )


def shrink(program: Program, fails: Callable[[Program], bool], tries: int = 200) -> Program:
    """The smallest program found that still fails."""
    progress = True
    while progress and tries > 0:
        progress = False
        for candidate in smaller(program):
            tries -= 1
            if tries <= 0:
                break
            if fails(candidate):
                program, progress = candidate, True
                break
    return program
