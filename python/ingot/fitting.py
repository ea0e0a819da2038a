# SPDX-License-Identifier: Apache-2.0
"""Checks a caller's inputs against the model's forward."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree

from ingot.calling import counted
from ingot.errors import UserError, kind_of
from ingot.inputs import Input, range_of_size

_HOW_TO_PASS = "pass a list with a tensor or an ingot.Input(shape) for each argument of the model's forward"
_TENSOR_ANNOTATIONS = (torch.Tensor, "torch.Tensor", "Tensor")


def given_inputs(positional: Any, keywords: Any) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the keyword inputs of a caller; UserError unless they are a list and a dict."""
    if positional is not None and not isinstance(positional, (list, tuple)):
        plain = isinstance(positional, (str, bool, int, float))
        what = repr(positional) if plain else kind_of(positional)
        raise UserError(
            f"inputs must be a list of the model's arguments, not {what}",
            code="INGOT-U006",
            advice=_HOW_TO_PASS,
        )
    if keywords is not None and not isinstance(keywords, Mapping):
        raise UserError(
            f"kwarg_inputs must be a dict of names and arguments, not {kind_of(keywords)}",
            code="INGOT-U006",
        )
    return list(positional or []), dict(keywords or {})


def bind(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a model's forward by name; UserError INGOT-U300 names a missing or unexpected one."""
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError:
        cause = _misfit(signature, args, kwargs)
    names = ", ".join(signature.parameters)
    raise UserError(
        cause, code="INGOT-U300", advice=f"its arguments are {names}" if names else "it takes no arguments"
    )


def _misfit(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    parameters = signature.parameters.values()
    positional = [each.name for each in parameters if each.kind in _POSITIONAL]
    unknown = [name for name in kwargs if name not in signature.parameters]
    twice = [name for name in positional[: len(args)] if name in kwargs]
    if unknown and all(each.kind is not each.VAR_KEYWORD for each in parameters):
        return f"the model has no argument {unknown[0]}"
    if twice:
        return f"the model's argument {twice[0]} is given twice"
    if len(args) > len(positional) and all(each.kind is not each.VAR_POSITIONAL for each in parameters):
        return f"the model takes {counted(len(positional))}, but inputs has {len(args)}"
    bound = signature.bind_partial(*args, **kwargs).arguments
    required = [each.name for each in parameters if each.default is each.empty and each.kind not in _VARIADIC]
    return f"missing an input for the model's argument {next(name for name in required if name not in bound)}"


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def has_tensor(value: Any) -> bool:
    return any(isinstance(leaf, (Input, torch.Tensor)) for leaf in _pytree.tree_leaves(value))


def check_annotated(signature: inspect.Signature, bound: Mapping[str, Any]) -> None:
    """UserError for a number, string or shape passed for an argument that the model declares as a tensor."""
    for name, value in bound.items():
        declared = signature.parameters[name].annotation in _TENSOR_ANNOTATIONS
        if declared and value is not None and not has_tensor(value):
            raise no_tensor(name, value)


def no_tensor(name: str, value: Any) -> UserError:
    return UserError(
        f"the model's argument {name} is a tensor, but {value!r} is not",
        code="INGOT-U006",
        advice=_HOW_TO_PASS,
    )


def check_fits(program: ExportedProgram, given: Sequence[tuple[str, Any]]) -> None:
    """UserError for what a call of the program could not take for one of its tensors. The compiler checks the sizes of Inputs."""
    recorded = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    for name, value in given:
        example = recorded.get(name)
        if not isinstance(example, torch.Tensor):
            continue
        if not isinstance(value, (Input, torch.Tensor, type(None))):
            raise UserError(
                f"the program's input {name} is a tensor, but {value!r} is not",
                code="INGOT-U006",
                advice="pass a tensor or an ingot.Input(shape), or leave it out",
            )
        if isinstance(value, torch.Tensor) and (problem := _misfit_of(program, value, example)):
            raise UserError(
                f"a tensor does not fit the program's input {name}: {problem}",
                code="INGOT-U011",
                advice="pass a tensor that calls could have, or export the model with what they will have "
                "(torch.export wants dynamic dims, with an example size of 2 or more)",
            )


def _misfit_of(program: ExportedProgram, value: torch.Tensor, example: torch.Tensor) -> str:
    """Empty if it fits."""
    if value.dtype != example.dtype:
        return f"it is {value.dtype}, and the program was exported for {example.dtype}"
    if value.dim() != example.dim():
        return f"it has {value.dim()} dims, and the program was exported for {example.dim()}"
    for axis, (size, expected) in enumerate(zip(value.shape, example.shape, strict=True)):
        if isinstance(expected, int):
            wanted, fits = str(expected), size == expected
        else:
            low, high = range_of_size(program, expected) or (0, size)
            wanted, fits = f"{low}..{high}", size <= high and (size >= low or low == 1)
        if not fits:
            return f"its dim {axis} is {size}, and the program was exported for {wanted}"
    return ""
