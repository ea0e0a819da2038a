# SPDX-License-Identifier: Apache-2.0
"""What becomes of a model in Ingot, beside eager: whether its results are right, what engines run of it, and times."""

from __future__ import annotations

import copy
import statistics
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import ingot
from accuracy import assert_accurate
from ingot.pytrees import register_caches

from models.architectures import Architecture

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
_CALLS = 2  # the second uses what the first compiled
_ROUNDS = 7
_BURST_S = 0.03


@dataclass
class Outcome:
    """One model, compiled in one way.

    kind: "right", "wrong" or "crashed"; "torch" if torch.compile or torch.export fails, or is wrong, without Ingot too.
    message: the reason, "" if right. in_torch: operator and reason -> how many nodes torch runs for it.
    build_s: the first call with torch.compile; ahead of time what follows torch.export. Times of calls are
    medians of the processor's time, of the latter.
    """

    kind: str = "right"
    message: str = ""
    nodes: int = 0
    in_engines: int = 0
    engines: int = 0
    in_torch: dict[str, int] = field(default_factory=dict)
    breaks: list[str] = field(default_factory=list)
    build_s: float = 0.0
    eager_ms: float = 0.0
    ingot_ms: float = 0.0
    has_f64: bool = (
        True  # whether the model runs in f64, which the accuracy rule compares with; else with f32 or eager
    )

    @property
    def is_whole(self) -> bool:
        """Whether engines run everything."""
        return self.kind == "right" and self.in_engines == self.nodes > 0 and not self.breaks


def tensors(result: Any) -> Iterator[torch.Tensor]:
    """All tensors of a result, also of caches."""
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, Mapping):
        yield from tensors(list(result.values()))
    elif isinstance(result, (list, tuple)):
        for each in result:
            yield from tensors(each)
    elif type(result).__module__.startswith("transformers.") and hasattr(result, "__dict__"):
        yield from tensors(vars(result))


def _on_the_host(result: Any) -> list[torch.Tensor]:
    return [each.cpu() for each in tensors(result)]


@dataclass
class Expected:
    """What calls with the same arguments must return."""

    eager: list[torch.Tensor]
    exact: list[torch.Tensor]
    has_f64: bool

    def check(self, result: Any) -> None:
        """AssertionError that names the tensor if one is wrong."""
        actual = _on_the_host(result)
        assert len(actual) == len(self.eager), f"{len(actual)} tensors, eager returns {len(self.eager)}"
        for number, (each, eager, exact) in enumerate(zip(actual, self.eager, self.exact, strict=True)):
            try:
                _check_one(each, eager, exact)
            except AssertionError as error:
                message = str(error).splitlines()[0] if str(error) else "dtype, shape or integers differ"
                raise AssertionError(f"tensor {number}, {list(eager.shape)}: {message}") from error


def _check_one(actual: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
    if actual.is_floating_point() or actual.shape != eager.shape or actual.dtype != eager.dtype:
        assert_accurate(actual, eager, exact)
    elif not torch.equal(actual, eager):  # places, classes and codes that rounded values decide
        ours, eagers = (int((each != exact).sum()) for each in (actual, eager))
        assert ours <= eagers, f"{ours} of {eager.numel()} integers are wrong, {eagers} of eager's"


def expected(case: Architecture) -> Expected:
    """By eager, and in f64 where the model runs in it; narrow models that do not, in f32."""
    eager = _on_the_host(copy.deepcopy(case.model)(**case.arguments()))
    is_narrow = any(
        parameter.dtype in (torch.bfloat16, torch.float16) for parameter in case.model.parameters()
    )
    for dtype in (torch.float64, torch.float32) if is_narrow else (torch.float64,):
        try:
            exact = _on_the_host(_in_dtype(case.model, dtype)(**_converted(case.arguments(), dtype)))
            assert all(torch.equal(a.isfinite(), b.isfinite()) for a, b in zip(eager, exact, strict=True))
            return Expected(eager, exact, dtype is torch.float64)
        except Exception:
            continue
    return Expected(eager, eager, False)


def _in_dtype(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    wide = copy.deepcopy(model).to(dtype)
    if hasattr(wide, "set_experts_implementation"):
        wide.set_experts_implementation("eager")  # torch has no grouped products of f64
    return wide


def _converted(value: Any, dtype: torch.dtype) -> Any:
    """Floating-point tensors in `dtype`."""
    return _changed(value, lambda each: each.to(dtype) if each.is_floating_point() else each)


def _changed(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """What `change` makes of each tensor, also inside of caches, which are written to."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _changed(each, change) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_changed(each, change) for each in value)
    if type(value).__module__.startswith("transformers."):
        vars(value).update(_changed(vars(value), change))
    return value


def on_device(case: Architecture, device: str) -> Architecture:
    return Architecture(
        case.model.to(device), lambda: _changed(case.arguments(), lambda each: each.to(device))
    )


def in_dtype(case: Architecture, dtype: str) -> Architecture:
    if dtype == "f32":
        return case
    wanted = DTYPES[dtype]
    return Architecture(case.model.to(wanted), lambda: _converted(case.arguments(), wanted))


def just_in_time(case: Architecture) -> Outcome:
    """By torch.compile(model, backend="ingot")."""
    try:
        wanted = expected(case)
    except Exception as error:
        return Outcome(kind="torch", message=f"eager: {_line(error)}")
    outcome = Outcome(has_f64=wanted.has_f64)
    torch._dynamo.reset()
    compiled = torch.compile(copy.deepcopy(case.model), backend="ingot")
    start = time.perf_counter()
    _judge(outcome, wanted, compiled, case)
    outcome.build_s = time.perf_counter() - start
    if outcome.kind == "right":
        _judge(outcome, wanted, compiled, case)
    try:
        if outcome.kind != "crashed":
            _describe(outcome, ingot.report(compiled))
    except ingot.UserError as error:  # INGOT-U007: Dynamo made no graph
        why = [line.strip() for line in str(error).splitlines() if "not traced" in line]
        outcome.kind, outcome.message = "torch", f"torch.compile: {(why or [str(error)])[0]}"
    if outcome.kind in ("wrong", "crashed"):
        torch._dynamo.reset()
        without = torch.compile(copy.deepcopy(case.model), backend="aot_eager")
        _blame_torch(outcome, wanted, case, "torch.compile", without)
    return outcome


def ahead_of_time(case: Architecture, timed: bool = True) -> Outcome:
    """By torch.export and ingot.dynamo.compile, without caches among results."""
    wanted_case = without_caches(case)
    try:
        wanted = expected(wanted_case)
    except Exception as error:
        return Outcome(kind="torch", message=f"eager: {_line(error)}")
    outcome = Outcome(has_f64=wanted.has_f64)
    try:
        program = exported(case.model, wanted_case)
    except Exception as error:
        outcome.kind, outcome.message = "torch", f"torch.export: {_line(error)}"
        return outcome
    start = time.perf_counter()
    try:
        compiled = ingot.dynamo.compile(program)
    except Exception as error:
        outcome.kind, outcome.message = "crashed", _line(error)
        return outcome
    outcome.build_s = time.perf_counter() - start
    _judge(outcome, wanted, compiled, wanted_case)
    if outcome.kind in ("wrong", "crashed"):
        _blame_torch(outcome, wanted, wanted_case, "torch.export", program.module())
    _describe(outcome, ingot.report(compiled))
    if outcome.kind == "right" and timed:
        _measure(outcome, wanted_case, compiled)
    return outcome


def without_caches(case: Architecture) -> Architecture:
    """The model without key-value caches among its results."""
    has_cache = getattr(getattr(case.model, "config", None), "use_cache", None) is not None
    return Architecture(case.model, _without_cache(case.arguments) if has_cache else case.arguments)


def exported(model: nn.Module, case: Architecture) -> torch.export.ExportedProgram:
    """By torch.export, or where that fails as Ingot calls it, which gives integers in buffers their values."""
    register_caches()  # as ingot.compile does before it exports a model
    try:
        return torch.export.export(copy.deepcopy(model), (), case.arguments())
    except Exception as error:
        try:
            return ingot.dynamo.trace(copy.deepcopy(model), kwarg_inputs=case.arguments())
        except Exception:
            raise error from error.__cause__


def _without_cache(arguments: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    return lambda: {**arguments(), "use_cache": False}


def _judge(outcome: Outcome, wanted: Expected, call: Callable[..., Any], case: Architecture) -> None:
    try:
        result = call(**case.arguments())
    except Exception as error:
        outcome.kind, outcome.message = "crashed", _line(error)
        return
    try:
        wanted.check(result)
    except AssertionError as error:
        outcome.kind, outcome.message = "wrong", str(error)


def _blame_torch(
    outcome: Outcome, wanted: Expected, case: Architecture, way: str, without_ingot: Callable[..., Any]
) -> None:
    """Tries again without Ingot."""
    without = Outcome()
    _judge(without, wanted, without_ingot, case)
    if without.kind == outcome.kind:
        outcome.kind, outcome.message = "torch", f"{way}: {without.message}"


def _describe(outcome: Outcome, report: ingot.reporting.Report) -> None:
    outcome.nodes = sum(len(segment.nodes) for segment in report.segments)
    outcome.in_engines = outcome.nodes - len(report.fallbacks)
    outcome.engines = sum(segment.backend != "torch" for segment in report.segments)
    outcome.in_torch = dict(Counter(f"{node.op}: {node.reason}" for node in report.fallbacks))
    outcome.breaks = report.breaks


def _measure(outcome: Outcome, case: Architecture, call: Callable[..., Any]) -> None:
    """Eager and `call` take turns."""
    times: dict[str, list[float]] = {"eager": [], "ingot": []}
    runs = {"eager": case.model, "ingot": call}
    burst = max(1, min(50, int(_BURST_S / max(_seconds(case.model, case.arguments()), 1e-6))))
    for _ in range(_ROUNDS):
        for name, run in runs.items():
            times[name] += [_seconds(run, case.arguments()) for _ in range(burst)]
    outcome.eager_ms = 1e3 * statistics.median(times["eager"])
    outcome.ingot_ms = 1e3 * statistics.median(times["ingot"])


def _seconds(call: Callable[..., Any], arguments: dict[str, Any]) -> float:
    start = time.process_time()  # on a busy machine, calls that take longer are interrupted more often
    call(**arguments)
    return time.process_time() - start


def _line(error: Exception) -> str:
    place = next(
        (f for f in reversed(traceback.extract_tb(error.__traceback__)) if "/ingot/" in f.filename), None
    )
    where = f" ({Path(place.filename).name}:{place.lineno})" if place else ""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}{where}"
