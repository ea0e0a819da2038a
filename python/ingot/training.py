# SPDX-License-Identifier: Apache-2.0
"""Programs that were traced in training mode."""

from __future__ import annotations

import logging

from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from ingot.capture import target_name
from ingot.source import source_of

_log = logging.getLogger("ingot")


def warn_of_training(program: ExportedProgram) -> None:
    """Warns once if the mode affects the result: for dropout and batch norm, not for models without such parts."""
    nodes = [node for node in program.graph.nodes if _trains(node)]
    if nodes:
        module = source_of(nodes[0])[3]
        where = f" of {module}" if module else ""
        more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        _log.warning(
            "the model is in training mode (%s%s%s): its results are not those of inference. Call model.eval() first",
            target_name(nodes[0].target),
            where,
            more,
        )


def _trains(node: Node) -> bool:
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return False
    names = [argument.name for argument in node.target._schema.arguments]
    values = {argument.name: argument.default_value for argument in node.target._schema.arguments}
    values |= dict(zip(names, node.args, strict=False)) | node.kwargs
    drops = [values[name] for name in ("p", "dropout", "dropout_p") if name in values]
    in_training = [values[name] for name in ("train", "training") if name in values]
    if in_training:
        # Norms of batches without running statistics are the same in both modes.
        keeps_none = "momentum" in values and values.get("running_mean") is None
        return in_training[0] is True and not keeps_none and (not drops or drops[0] != 0)
    return "dropout_p" in values and values["dropout_p"] != 0
