#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden archives of tests/data/pt2, each a few features of torch.export's format.

Paths of this machine are cut out of the stack traces, so that the files do not depend on where they were made.
"""

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "python"))

import torch
from lacking import negated
from torch import nn
from torch.export import Dim, ExportedProgram, export, save

FOLDER = Path(__file__).parent / "pt2"
PACKAGES = re.compile(r'File "[^"]*?/(site-packages|python3\.\d+)/')
SCRIPT = re.compile(r'File "[^"]*/make_pt2\.py"')


class Weights(nn.Module):
    """Tied, transposed, sliced, empty and bf16 weights; buffers in and outside of the state dict."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        base = torch.arange(24, dtype=torch.float32)
        self.transposed = nn.Parameter(self.first.weight.detach().t())
        self.low = nn.Parameter(base[4:12].view(2, 4))
        self.high = nn.Parameter(base[10:18].view(2, 4))
        self.base = nn.Parameter(base)
        self.empty = nn.Parameter(torch.empty(0, 4))
        self.short = nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.bfloat16))
        self.register_buffer("count", torch.tensor([5], dtype=torch.int64))
        self.register_buffer("scratch", torch.tensor([0.5]), persistent=False)

    def forward(self, x):
        y = self.second(self.first(x)) @ self.transposed
        y = torch.cat([y, self.low, self.high, self.empty], 0) + self.short.float() * self.scratch
        return {"y": y, "count": self.count + 1, "base": self.base}


class Image(nn.Module):
    """A channels-last weight, and a network in a network."""

    def __init__(self):
        super().__init__()
        layers = nn.Sequential(nn.Conv2d(2, 3, 2, bias=False), nn.ReLU())
        self.body = nn.Sequential(layers).to(memory_format=torch.channels_last)

    def forward(self, image):
        return self.body(image)


class Arguments(nn.Module):
    """Constant inputs, nested inputs, infinities, absent indices and arguments of every common kind."""

    def forward(self, x, scale: int, pair, *, factor: float, name=None):
        y = x.masked_fill(x > 0, -float("inf")) * scale
        y = y[:, torch.tensor([1, 0])] + pair[0] * factor
        return [y.clamp(min=-1e30), pair[1].to(torch.float16), torch.zeros(2, dtype=torch.int32), scale, None]


class Mutation(nn.Module):
    """A buffer and an input that change in place, and a region without gradients."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 3))

    def forward(self, x, position):
        self.cache.index_copy_(0, position, x)
        with torch.no_grad():
            doubled = self.cache * 2
        x.add_(1)
        return doubled + x


class Unsupported(nn.Module):
    """An operator that no engine runs."""

    def forward(self, x):
        return negated(x)


class Control(nn.Module):
    """Branches and loops, whose bodies are graphs with names of their own."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x, n):
        y = torch.cond(x.sum() > 0, self.linear, lambda t: t - 1, (x,))

        def step(i, t):
            return i + 1, t * 2

        i, z = torch.while_loop(lambda i, t: i < 3, step, (n, y))
        return z + i


class Dynamic(nn.Module):
    """Sizes that depend on others: sums, quotients, rounded products, and a data-dependent one."""

    def forward(self, x, mask):
        batch, length = x.shape[0], x.shape[1]
        halves = x.new_zeros((length + 1) // 2)
        wide = nn.functional.interpolate(x.unsqueeze(1), scale_factor=1.5)
        flat = x.reshape(batch * length)
        chosen = torch.nonzero(mask)
        parts = torch.split(x, [1, length - 1], dim=1)
        return halves, wide, flat, chosen, parts[1]


class Pair(nn.Module):
    """Two inputs whose batches are one symbol."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.arange(4, dtype=torch.float32))

    def forward(self, x, y):
        return x * self.scale + y


def without_paths(trace: str) -> str:
    return SCRIPT.sub('File "make_pt2.py"', PACKAGES.sub(r'File "/usr/lib/\1/', trace))


def clean(program: ExportedProgram) -> ExportedProgram:
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            for key in ("from_node", "torch_fn"):
                node.meta.pop(key, None)
            if trace := node.meta.get("stack_trace"):
                node.meta["stack_trace"] = without_paths(trace)
    program._example_inputs = None
    return program


def write(name: str, program: ExportedProgram) -> None:
    FOLDER.mkdir(exist_ok=True)
    save(clean(program), FOLDER / f"{name}.pt2")


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 4)
    write("weights", export(Weights(), (x,)))
    write("image", export(Image(), (torch.randn(1, 2, 3, 3),)))
    mutation = export(Mutation(), (torch.ones(1, 3), torch.tensor([1])))
    write("mutation.functional", mutation.run_decompositions({}))
    write("mutation", mutation)
    pair = (torch.ones(2), torch.ones(1))
    write("arguments", export(Arguments(), (x[:, :2], 3, pair), {"factor": 0.5, "name": None}))
    write("unsupported", export(Unsupported(), (torch.ones(2, 3) * 2,)))
    write("control", export(Control(), (torch.ones(2, 3), torch.tensor(0))))
    shapes = {"x": {0: Dim("batch", min=2, max=16), 1: Dim("length", min=3)}, "mask": None}
    batch = Dim("batch", min=1, max=16)
    pair = export(
        Pair(), (torch.ones(3, 4), torch.ones(3, 4)), dynamic_shapes={"x": {0: batch}, "y": {0: batch}}
    )
    write("pair", pair)
    write("dynamic", export(Dynamic(), (torch.ones(3, 5), torch.ones(6)), dynamic_shapes=shapes))


if __name__ == "__main__":
    main()
