# SPDX-License-Identifier: Apache-2.0
"""`ingot.quantize`."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch.fx import GraphModule, Node

from ingot.errors import UserError, kind_of, quoted, require
from ingot.fitting import given_inputs
from ingot.front import export
from ingot.fronts import FRONTS
from ingot.inputs import place
from ingot.paths import path_text
from ingot.quantization import (
    batch_norms,
    calibration,
    calibration_cache,
    insertion,
    linear_layers,
    sites,
    smoothing,
    stored_weights,
)
from ingot.quantization.histogram import Histogram
from ingot.quantization.ranges import METHODS, parameters

# What activations may be beside each kind of weights; the first is the default.
_ACTIVATIONS = {
    "per_channel": ("u8", "none"),
    "per_tensor": ("u8", "none"),
    "int4": ("none",),
    "float8": ("none", "float8"),
}
_FLOAT8_METHODS = ("minmax", "percentile")  # the others count the steps of integers


def quantize(
    model: torch.nn.Module | torch.export.ExportedProgram,
    calibration_data: Iterable[Any] | Callable[[torch.nn.Module], Any] | None = None,
    inputs: Sequence[Any] | None = None,
    *,
    kwarg_inputs: Mapping[str, Any] | None = None,
    method: str | None = None,
    weights: str = "per_channel",
    activations: str | None = None,
    group_size: int | None = None,
    symmetric: bool | None = None,
    smoothing_share: float | None = None,
    keep_precision: str | Sequence[str] = (),
    cache: str | os.PathLike[str] | None = None,
    progress: calibration.Progress | None = None,
) -> GraphModule:
    """A module whose convolutions and linear layers read activations of 8 bits (u8, one scale and zero point each) and weights of 8
    bits (i8, symmetric), with ranges that were observed on data; or whose linear layers have weights of 4 bits or fp8, with activations
    as they are or in fp8. The rest stays as it is.

    It is the exported program with quantize and dequantize operators of torch.ops.quantized_decomposed, and runs in torch as in
    `ingot.compile`, which multiplies the integers where the target has instructions for that. The model is not changed.

    calibration_data: for activations that are quantized: batches of some hundred samples like those that will come: tensors, tuples
      of arguments or dicts of keyword arguments of forward. It is read once, and once more for smoothing. Or a function, which calls
      the model that it gets with each batch.
    inputs, kwarg_inputs: as for `ingot.compile`, for dynamic sizes, and for weights alone; by default the program has the sizes of the
      first batch.
    method: the range of each activation: "minmax"; "percentile" (all but 0.01 % of the numbers); "mse" (least squared error);
      "entropy" (least divergence of the distributions). None: "mse", or "minmax" for fp8, which has the first two.
    weights: i8 "per_channel" (a scale for each row) or "per_tensor"; "int4": groups of 4 bits; "float8": e4m3, a scale for each row.
    activations: "u8" (default beside i8), "float8" (e4m3, beside such weights) or "none" (default beside int4 and float8).
    group_size, symmetric: of int4: adjacent elements that share a scale (32, the default, 64 or 128), and whether they have no zero
      point (they have none by default).
    smoothing_share: 0 to 1; divides channels of the inputs of linear layers that have outliers by a factor, and multiplies their
      weights (SmoothQuant; 0.5 is usual). None: does not.
    keep_precision: names of layers that stay f32, with * and ?.
    cache: a JSON file for the ranges: read if it exists, else written.
    progress: as for `ingot.compile`.

    Raises UserError (INGOT-U025) on bad options or data, on options that would change nothing, or where nothing can be quantized.
    """
    if activations is None:
        activations = _ACTIVATIONS.get(weights, ("u8",))[0] if isinstance(weights, str) else ""
    _check(weights, activations)
    form = _form(weights, group_size, symmetric)
    observing = {"calibration_data": calibration_data, "method": method, "smoothing_share": smoothing_share}
    _check_activations(activations, {**observing, "cache": cache, "progress": progress})
    method = _checked_method(method, activations)
    kept = [keep_precision] if isinstance(keep_precision, str) else keep_precision
    for pattern in kept if isinstance(kept, (list, tuple, set, frozenset)) else [kept]:
        require(pattern, str, "keep_precision must be a name or a list of names")
    program, batches = _exported(model, calibration_data, inputs, kwarg_inputs)
    module = program.module()
    options = {"method": method, "smoothing": smoothing_share}
    if activations == "float8":
        options["activations"] = activations
    identity = "" if activations == "none" else calibration_cache.digest(module, options)
    batch_norms.fold(module)
    linear_layers.restore(module)
    found = sites.find(module, kept, None if form is None else form.fits, halves=activations == "none")
    if activations != "none":
        _quantize_activations(
            module, found, batches, activations, method, smoothing_share, cache, identity, progress
        )
    if form is None:
        insertion.quantize_weights(module, found, weights == "per_channel")
    else:
        stored_weights.write(module, found, form)
    insertion.remove_unused(module)
    insertion.own_parameters(module)
    return module


def _form(
    weights: str, group_size: int | None, symmetric: bool | None
) -> stored_weights.Groups | stored_weights.Float8 | None:
    """None: i8."""
    if weights == "int4":
        size = stored_weights.GROUP_SIZES[0] if group_size is None else group_size
        _refuse_unless_known("group_size", size, stored_weights.GROUP_SIZES)
        return stored_weights.Groups(size, symmetric is None or symmetric)
    _refuse_given(
        {"group_size": group_size, "symmetric": symmetric},
        f'for weights of 4 bits, and weights are "{weights}" here',
        'weights="int4"',
    )
    return stored_weights.Float8() if weights == "float8" else None


def _quantize_activations(
    module: GraphModule,
    found: list[sites.Site],
    batches: Iterable[Any],
    activations: str,
    method: str,
    smoothing_share: float | None,
    cache: str | os.PathLike[str] | None,
    identity: str,
    progress: calibration.Progress | None,
) -> None:
    path = None if cache is None else Path(path_text(cache, "cache"))
    stored = calibration_cache.load(path, identity) if path is not None else None
    ranges, channels = stored or ({}, {})
    if smoothing_share is not None:
        values = smoothing.layers_of(found)
        if any(value.name not in channels for value in values):
            batches = list(batches)  # they are read twice
            channels = _largest(module, batches, list(values), progress)
        smoothing.apply(module, found, channels, smoothing_share)
    readers = sites.readers(found)
    if any(value.name not in ranges for value in readers):
        ranges = _ranges(module, batches, list(readers), method, progress)
        if path is not None:
            calibration_cache.save(path, identity, ranges, channels)
    for value, nodes in readers.items():
        low, high = ranges[value.name]
        if activations == "float8":
            stored_weights.round_value(module, value, nodes, max(abs(low), abs(high)))
        else:
            insertion.quantize_value(module, value, nodes, *parameters(low, high))


def _refuse_unless_known(name: str, value: Any, known: Sequence[Any]) -> None:
    if not isinstance(value, (str, int)) or value not in known:
        raise UserError(
            f"{name} is one of {', '.join(map(str, known))}, not {quoted(value)}", code="INGOT-U025"
        )


def _refuse_given(options: Mapping[str, Any], purpose: str, wanted: str) -> None:
    """Options that would change nothing."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        verb, them = ("is", "it") if len(given) == 1 else ("are", "them")
        raise UserError(
            f"{' and '.join(given)} {verb} {purpose}",
            code="INGOT-U025",
            advice=f"leave {them} out, or give {wanted}",
        )


def _check(weights: str, activations: str) -> None:
    _refuse_unless_known("weights", weights, tuple(_ACTIVATIONS))
    _refuse_unless_known(f'activations beside weights="{weights}"', activations, _ACTIVATIONS[weights])


def _checked_method(method: str | None, activations: str) -> str:
    known = _FLOAT8_METHODS if activations == "float8" else tuple(METHODS)
    if method is not None:
        _refuse_unless_known("method", method, known)
    return method or ("minmax" if activations == "float8" else "mse")


def _check_batches(data: Any) -> None:
    """Whatever a for loop takes, such as a torch.utils.data.Dataset, which is no Iterable. An iterator may start processes."""
    if not calibration.is_loop(data) and not any(
        hasattr(type(data), method) for method in ("__iter__", "__getitem__")
    ):
        raise UserError(f"calibration_data must be batches, not {kind_of(data)}", code="INGOT-U006")


def _check_activations(activations: str, options: Mapping[str, Any]) -> None:
    if activations == "none":
        wanted = 'activations: "u8" beside weights of i8, "float8" beside those of fp8'
        _refuse_given(options, "for activations, which are not quantized here", wanted)
    elif options["calibration_data"] is None:
        raise UserError("there is no calibration data", code="INGOT-U025")
    else:
        _check_batches(options["calibration_data"])
        if options["progress"] is not None:
            require(options["progress"], Callable, "progress must be a function")
    share = options["smoothing_share"]
    if share is not None and not (isinstance(share, (int, float)) and 0 <= share <= 1):
        raise UserError(f"smoothing_share is from 0 to 1, not {share!r}", code="INGOT-U025")


def _exported(
    model: torch.nn.Module | torch.export.ExportedProgram,
    data: Any,
    inputs: Sequence[Any] | None,
    kwarg_inputs: Mapping[str, Any] | None,
) -> tuple[torch.export.ExportedProgram, Iterable[Any]]:
    """The program, and all batches; the first one may have been taken for the inputs. No data: weights alone are quantized."""
    model = FRONTS["default"](model)
    if calibration.is_loop(data):
        is_program = isinstance(model, torch.export.ExportedProgram)
        data = calibration.calls_of(model.module() if is_program else model, data)
    if isinstance(model, torch.export.ExportedProgram):
        return model, () if data is None else data
    if inputs is None and kwarg_inputs is None:
        if data is None:
            raise UserError(
                "there are no inputs: the model is exported with them",
                code="INGOT-U025",
                advice="give inputs (or kwarg_inputs) as for ingot.compile; weights alone need no calibration data",
            )
        first = next(iter(data), None)
        if first is None:
            raise UserError("there is no calibration data", code="INGOT-U025")
        if iter(data) is data:
            data = itertools.chain([first], data)
        inputs, kwarg_inputs = calibration.arguments_of(first)
    positional, keywords = given_inputs(inputs, kwarg_inputs)
    args, kwargs = place(list(inspect.signature(model.forward).parameters), positional, keywords)
    return export(model, args, kwargs), () if data is None else data


def _largest(
    module: GraphModule, batches: Iterable[Any], values: Sequence[Node], progress: calibration.Progress | None
) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}

    def observer(name: str) -> calibration.Observer:
        def observe(value: torch.Tensor) -> None:
            if value.numel() == 0:
                return
            largest = value.detach().abs().reshape(-1, value.shape[-1]).amax(0)
            found[name] = torch.maximum(found[name], largest) if name in found else largest

        return observe

    calibration.run(module, batches, {node: observer(node.name) for node in values}, "smooth", progress)
    for node in values:
        if node.name not in found:
            _refuse_without_numbers(node)
    return found


def _refuse_without_numbers(node: Node) -> NoReturn:
    raise UserError(
        f"no batch gives {node.name} a finite number",
        code="INGOT-U025",
        node=node.name,
        advice="check the model and the data, or keep what reads it in f32: keep_precision",
    )


def _ranges(
    module: GraphModule,
    batches: Iterable[Any],
    values: Sequence[Node],
    method: str,
    progress: calibration.Progress | None,
) -> calibration_cache.Ranges:
    histograms = {node: Histogram() for node in values}
    calibration.run(
        module, batches, {node: each.add for node, each in histograms.items()}, "calibrate", progress
    )
    for node, histogram in histograms.items():
        if histogram.is_empty:
            _refuse_without_numbers(node)
    return {node.name: METHODS[method](histogram) for node, histogram in histograms.items()}
