# SPDX-License-Identifier: Apache-2.0
"""What torch asserts of sizes from data in programs that run in parts: its export decides what broadcasts before values are known."""

from __future__ import annotations

import os
import re

from torch.fx import GraphModule, Node

from ingot.capture import target_name
from ingot.errors import UserError
from ingot.source import line_of

_CODE = "INGOT-U312"
_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_OWN_TEXT = re.compile(r"Runtime assertion failed for expression (.*) on node '(\w+)'")
_SYMBOL = re.compile(r"\bu\d+\b")
_ADVICE = (
    "if the model does not say so itself, torch.export decided it before values were known, to see what broadcasts: expand the tensor "
    "to the sizes of what it meets, or give it a size of the inputs"
)


def explain(module: GraphModule) -> None:
    """Gives torch's own assertions the texts of errors of ours, so that saved programs have them, too. The model's stay."""
    nodes = {node.name: node for node in module.graph.nodes}
    asserting = [node for node in nodes.values() if target_name(node.target) == "aten._assert_scalar.default"]
    texts = [str(node.args[1]) for node in asserting]
    # torch asserts again what an exported program asserts already, without the line of the model.
    explained = {text.splitlines()[0]: text for text in texts if _is_explained(text)}
    for node in asserting:
        found = _OWN_TEXT.fullmatch(str(node.args[1]))
        if found is None:
            continue
        asserted = nodes.get(found[2], node)
        text = str(
            UserError(
                f"the program asserts {_spelled(found[1], asserted)}",
                code=_CODE,
                node=asserted.name,
                source=_line_of_model(asserted),
                advice=_ADVICE,
            )
        )
        node.args = (node.args[0], explained.get(text.splitlines()[0], text))
        module.recompile()


def raised(error: RuntimeError) -> UserError | None:
    """The error of an assertion whose text `explain` wrote."""
    text = str(error)
    if not _is_explained(text):
        return None
    rows = dict(re.findall(r"^  (node|at): (.*)$", text, re.MULTILINE))
    return UserError(text, code=_CODE, node=rows.get("node", ""), source=rows.get("at", ""), advice=_ADVICE)


def _is_explained(text: str) -> bool:
    return text.startswith(f"[{_CODE}] ")


def _line_of_model(node: Node) -> str:
    """Not of the form that is traced to save a module."""
    line = line_of(node)
    return "" if line.startswith(_PACKAGE) else line


def _spelled(condition: str, asserted: Node) -> str:
    """torch names a size u0; the nodes that compute the condition know whose it is."""
    symbols, sizes = {*_SYMBOL.findall(condition)}, asserted.all_input_nodes
    if len(symbols) != 1 or len(sizes) != 1:
        return condition
    size = sizes[0]
    is_dim = target_name(size.target) == "aten.sym_size.int" and isinstance(size.args[0], Node)
    return condition.replace(symbols.pop(), f"{size.args[0]}.shape[{size.args[1]}]" if is_dim else size.name)
