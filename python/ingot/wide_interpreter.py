# SPDX-License-Identifier: Apache-2.0
"""Runs a program in f64, whatever its dtypes: the reference of `ingot.compare`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.utils import _pytree

from ingot.capture import target_name

_WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


def widened(value: Any) -> Any:
    """Tensors of real and complex numbers in f64; everything else as it is."""
    return value.to(_WIDE.get(value.dtype, value.dtype)) if isinstance(value, torch.Tensor) else value


class WideInterpreter(Interpreter):
    """Runs a graph whose weights are inputs. `see(node, value)` returns the value with which the program goes on.

    Quantizing and dequantizing leave activations as they are, so that the result is that of the numbers before they were rounded;
    dequantized integers (weights) become numbers.
    """

    def __init__(self, module: GraphModule, see: Callable[[Node, Any], Any]) -> None:
        super().__init__(module)
        self._see = see

    def run_flat(self, leaves: Sequence[Any]) -> Any:
        """The program's flat outputs for its flat inputs."""
        with torch.no_grad(), _f64_by_default():
            return self.run(*map(_copied, leaves), enable_io_processing=False)

    def run_node(self, n: Node) -> Any:
        value = _pytree.tree_map(widened, super().run_node(n))
        return self._see(n, value) if n.op == "call_function" else value

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        name = target_name(target)
        if "quantized_decomposed." in name and args[0].is_floating_point():
            return args[0]
        args, kwargs = _pytree.tree_map(_wide_dtype, (args, kwargs))
        return super().call_function(target, args, kwargs)


def _copied(value: Any) -> Any:
    """A copy that the program may write into."""
    return widened(value).clone() if isinstance(value, torch.Tensor) else value


def _wide_dtype(value: Any) -> Any:
    return _WIDE.get(value, value) if isinstance(value, torch.dtype) else value


@contextmanager
def _f64_by_default() -> Iterator[None]:
    """For what a program makes without a dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
