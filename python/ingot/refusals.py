# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a graph torch runs, and why."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence

from torch.fx import GraphModule, Node

from ingot.capture import Capture, Output, target_name
from ingot.errors import Error, InternalError, NoEngineError, UnsupportedError, first_line
from ingot.kinds import OutputRole
from ingot.partition import HOLDS_INTEGER
from ingot.settings import Settings
from ingot.source import line_of
from ingot.views import viewed_by

_log = logging.getLogger("ingot")

Refused = dict[Node, str]  # with the reason, which may be a CodedReason


class CodedReason(str):
    """A reason that has a page in docs/errors.md, named by `code`, and whose text does not say so."""

    code: str

    def __new__(cls, text: str, code: str) -> CodedReason:
        reason = super().__new__(cls, text)
        reason.code = code
        return reason


def code_of(reason: str) -> str:
    """The code of a reason; "" if its text says it all. Errors begin with theirs in brackets."""
    if isinstance(reason, CodedReason):
        return reason.code
    return reason[1 : reason.index("]")] if reason.startswith("[INGOT-") and "]" in reason else ""


def reason_of(error: Error) -> str:
    """One line for the report; a bug of ours costs speed, not correctness, and is logged."""
    if isinstance(error, InternalError) or error.code == "INGOT-N523":
        _log.warning("torch runs a part of the model because of a bug in Ingot: %s", error)
    return first_line(error)


def by_choice(module: GraphModule, settings: Settings) -> Refused:
    chosen = set(settings.torch_executed_ops)
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    return {node: "named in torch_executed_ops" for node in calls if target_name(node.target) in chosen}


def by_importer(capture: Capture, options: Mapping[str, str]) -> Refused:
    rows = json.loads(capture.builder.unsupported(options))
    refused = {capture.nodes[row["node"]]: CodedReason(row["reason"], "INGOT-N520") for row in rows}
    return {node: reason for node, reason in refused.items() if not node.meta.get(HOLDS_INTEGER)}


def by_guards(capture: Capture, refused: Refused) -> Refused:
    """All nodes, if the program was traced under a condition that no engine can check: torch runs it, with its guards."""
    reasons = [row["reason"] for row in json.loads(capture.builder.guards()) if row["reason"]]
    if not reasons:
        return {}
    reason = CodedReason(reasons[0], "INGOT-N524")
    return {node: reason for node in capture.nodes if node not in refused}


def viewed_by_refused(refused: Refused) -> Refused:
    """The views below as_strided, which reads the memory behind them: only torch lays it out as torch does."""
    views: Refused = {}
    for node in refused:
        base = node.args[0] if "as_strided" in target_name(node.target) else None
        while viewed_by(base) is not None:
            views.setdefault(base, f"{target_name(node.target)} reads the memory that it shows")
            base = viewed_by(base)
    return {node: reason for node, reason in views.items() if node not in refused}


def by_writes(module: GraphModule, refused: Refused) -> Refused:
    """All nodes, if torch could not make the program functional: a part does not see in-place writes of others."""
    calls = [node for node in module.graph.nodes if node.op == "call_function" and node not in refused]
    writes = [node for node in calls if getattr(getattr(node.target, "_schema", None), "is_mutable", False)]
    if not writes:
        return {}
    return dict.fromkeys(calls, f"{target_name(writes[0].target)} writes in place into what other parts read")


def writes_strided(module: GraphModule, outputs: Sequence[Output]) -> bool:
    """Engines update dense memory in place, of values as they are; torch performs the graph's other mutations."""
    mutated = {what.target for what in outputs if what.kind == OutputRole.INPUT_MUTATION}
    written = [node for node in module.graph.nodes if node.op == "placeholder" and node.name in mutated]
    values = [node.meta["val"] for node in written]
    return not all(value.is_contiguous() and not value.is_conj() and not value.is_neg() for value in values)


def full_compilation_error(refused: Refused) -> UnsupportedError:
    rows = [f"  {target_name(node.target)} ({node.name}): {reason}" for node, reason in refused.items()]
    first = next(iter(refused))
    return UnsupportedError(
        "these nodes cannot run in Ingot, but require_full_compilation is set:\n" + "\n".join(rows),
        code="INGOT-N001",
        node=first.name,
        source=line_of(first),
    )


def no_engine_error(numbers: Sequence[str], in_torch: int) -> NoEngineError:
    """numbers: the integers that calls choose. in_torch: how many nodes torch runs."""
    is_number = numbers and not in_torch
    cause = f"calls choose the integer {numbers[0]}" if is_number else f"torch runs {in_torch} of its nodes"
    return NoEngineError(
        f"the program is not a single engine: {cause}",
        code="INGOT-N002",
        advice="print ingot.report(module), or build with require_full_compilation=True for the reasons",
    )
