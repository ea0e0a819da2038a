# SPDX-License-Identifier: Apache-2.0
"""Graphs whose calls do not fit together: a quantized model that is converted to another dtype afterwards still dequantizes to f32,
which a convolution does not take beside a bias of bf16."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
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


def refusal_by_graph(model: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> UserError | None:
    """The error about a model that torch could not trace, if a call in one of its graphs fails because of its operands' dtypes."""
    graphs = [each for each in model.modules() if isinstance(each, GraphModule)]
    entered: list[tuple[GraphModule, Any]] = []
    hooks = [
        graph.register_forward_pre_hook(
            lambda graph, *given: entered.append((graph, given)), with_kwargs=True
        )
        for graph in graphs
    ]
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        try:
            model(*_pytree.tree_map(_like, args), **_pytree.tree_map(_like, kwargs))
        except Exception:  # whatever the model or torch raises
            refusals = (_refusal(graph, given) for graph, given in reversed(entered))
            return next((refusal for refusal in refusals if refusal is not None), None)
        finally:
            for hook in hooks:
                hook.remove()
    return None


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


def _like(leaf: Any) -> Any:
    return torch.empty_like(leaf) if isinstance(leaf, torch.Tensor) else leaf


def _is_real(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _name(value: torch.Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
