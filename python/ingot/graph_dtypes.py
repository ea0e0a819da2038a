# SPDX-License-Identifier: Apache-2.0
"""Graphs whose calls do not fit together: a quantized model that is converted to another dtype afterwards still dequantizes to f32,
which a convolution does not take beside a bias of bf16."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.utils import _pytree

from ingot.errors import UserError, first_line
from ingot.source import line_of


class _Calls(Interpreter):
    """Remembers the call that fails, and whether it would run on operands of f32."""

    failed: Node | None = None
    operands: tuple[str, ...] = ()
    runs_in_f32 = False

    def run_node(self, node: Node) -> Any:
        try:
            return super().run_node(node)
        except Exception:
            self.failed = node
            sources = [source for source in node.all_input_nodes if _is_real(self.env[source])]
            self.operands = tuple(f"{source.name} is {_name(self.env[source])}" for source in sources)
            self.env |= {source: self.env[source].float() for source in sources}
            with contextlib.suppress(Exception):
                super().run_node(node)
                self.runs_in_f32 = True
            raise


Entered = list[tuple[GraphModule, Any]]


@contextlib.contextmanager
def entered_graphs(model: torch.nn.Module) -> Iterator[Entered]:
    """The graphs among a model's modules that a call enters, with their arguments."""
    entered: Entered = []
    hooks = [
        graph.register_forward_pre_hook(
            lambda graph, *given: entered.append((graph, given)), with_kwargs=True
        )
        for graph in model.modules()
        if isinstance(graph, GraphModule)
    ]
    try:
        yield entered
    finally:
        for hook in hooks:
            hook.remove()


def refusal_by_graph(entered: Entered) -> UserError | None:
    """The error about a call that failed, if it is one in a graph that was entered, because of its operands' dtypes."""
    refusals = (_refusal(graph, given) for graph, given in reversed(entered))
    return next((refusal for refusal in refusals if refusal is not None), None)


def _refusal(graph: GraphModule, given: Any) -> UserError | None:
    """given: what the call of the graph had that failed."""
    calls = _Calls(graph)
    calls.extra_traceback = False
    try:
        calls.run(*_pytree.tree_leaves(given), enable_io_processing=False)
    except Exception as error:  # whatever a kernel of torch raises
        if calls.failed is None or not calls.runs_in_f32:
            return None
        return UserError(
            f"parts of the model have dtypes that do not fit together ({', '.join(calls.operands)}): {first_line(error)}",
            code="INGOT-U020",
            node=calls.failed.name,
            source=line_of(calls.failed),
            advice="run a quantized model in the dtype that it was quantized in, or convert the model before it is quantized",
        )
    return None


def _is_real(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _name(value: torch.Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
