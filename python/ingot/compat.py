# SPDX-License-Identifier: Apache-2.0
"""Every private name of torch that Ingot uses, each with its fallback. tests/python/test_compat.py checks their presence."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

_TRACING = "torch._dynamo.convert_frame.compile_lock"

# Name -> the effect of its absence; `present()` returns the available ones.
PRIVATE_NAMES = {
    "torch.export.exported_program._override_composite_implicit_decomp": "composites are decomposed by AOT",
    "torch.export.exported_program._split_decomp_table_to_cia_and_python_decomp": "composites are decomposed by AOT",
    "torch._subclasses.fake_impls.op_implementations_dict": "composites are decomposed by AOT",
    "torch._decomp.decomposition_table": "fewer operators are decomposed",
    "torch._dynamo.backends.common.aot_autograd": "the backend cannot be used",
    "torch._guards.TracingContext": "weights are ordinary inputs of the graph",
    "torch._functorch._aot_autograd.schemas.OutputType.non_alias": "calls go through AOTAutograd's wrapper",
    "torch._dynamo.exc.ShortenTraceback": "refusals arrive inside BackendCompilerFailed",
    "torch._dynamo.exc.RestartAnalysis": "graphs whose numbers torch has to fix run in torch",
    _TRACING: "models cannot be compiled by several threads at once",
    "torch._dynamo.config.prepare_freezing": "weights are ordinary inputs of the graph",
    "torch.export._trace._fakify_params_buffers": "models whose sizes follow from integers in buffers cannot be exported",
    "torch.export.exported_program._convert_guards_to_code": "programs have no guards to check",
    "torch._TorchCompileWrapper": "there are no reports of torch.compile",
    "torch._dynamo.optimize": "ir='torch_compile' leaves Dynamo's settings as they are",
    "torch._dynamo.eval_frame.innermost_backend": "there are no reports of torch.compile",
    "torch._dynamo.utils.counters": "a model that torch runs without a graph has no reasons",
    "torch._dynamo.utils.graph_break_reasons": "reports of torch.compile have no graph breaks",
    "torch._C._dispatch_get_all_op_names": "operators of libraries that are imported late are not decomposed",
    "torch._subclasses.fake_tensor.unset_fake_temporarily": "models on a GPU cannot be compiled by torch.compile",
    "torch.cuda._compile_kernel": "of weights on a GPU only check_weights='full' notices writes through .data",
    "torch._C._len_torch_dispatch_stack": "compiled modules cannot be traced by torch.export",
    "torch._subclasses.fake_tensor.FakeTensor": "compiled modules cannot be traced by torch.export",
    "torch._C._is_tracing": "compiled modules cannot be traced by torch.jit.trace",
    "torch._C._jit_pass_inline": "TorchScript models that call functions cannot be compiled",
    "torch._C._dispatch_has_kernel": "TorchScript models cannot be compiled",
    "torch.jit._recursive.wrap_cpp_module": "frozen TorchScript models that keep attributes cannot be compiled",
}


def find(path: str) -> object | None:
    """The object of that dotted name, or None."""
    parts = path.split(".")
    found: object = torch
    for position, part in enumerate(parts[1:], start=1):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = __import__(".".join(parts[: position + 1]), fromlist=[part])
            except ImportError:
                return None
    return found


def present() -> dict[str, bool]:
    return {name: find(name) is not None for name in PRIVATE_NAMES}


def operator_count() -> int:
    """How many operators torch and the libraries imported so far have registered."""
    return len(operator_names())


def operator_names() -> list[str]:
    """Their names: "aten::add.Tensor"."""
    names = find("torch._C._dispatch_get_all_op_names")
    return list(names()) if callable(names) else []


_modes = find("torch._C._len_torch_dispatch_stack")
_is_tracing = find("torch._C._is_tracing")
_fake_tensor = find("torch._subclasses.fake_tensor.FakeTensor")


def fake_argument(arguments: Any) -> Any:
    """An argument without a value, of a call that torch traces; None if there is none."""
    if not callable(_modes) or not isinstance(_fake_tensor, type) or _modes() == 0:
        return None
    leaves = torch.utils._pytree.tree_leaves(arguments)
    return next((leaf for leaf in leaves if isinstance(leaf, _fake_tensor)), None)


def is_in_script_trace() -> bool:
    """Whether torch.jit.trace records this call."""
    return callable(_is_tracing) and bool(_is_tracing())


@contextlib.contextmanager
def without_script_trace() -> Iterator[None]:
    """While active, torch.jit.trace records nothing."""
    state = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)
    try:
        yield
    finally:
        torch._C._set_tracing_state(state)


def with_real_tensors() -> contextlib.AbstractContextManager[Any]:
    """While torch traces: operators run on real tensors, and make real ones."""
    unset = find("torch._subclasses.fake_tensor.unset_fake_temporarily")
    return unset() if callable(unset) else contextlib.nullcontext()


def tracing() -> contextlib.AbstractContextManager[Any]:
    """While torch traces, or reads or writes a program: no other thread does, since that changes state of the whole process."""
    lock = find(_TRACING)
    return lock if isinstance(lock, contextlib.AbstractContextManager) else contextlib.nullcontext()


def _free_tracing() -> None:
    """In a child of fork no other thread traces, whatever one did in the parent."""
    lock: Any = find(_TRACING) if "torch._dynamo" in sys.modules else None
    if hasattr(lock, "_at_fork_reinit") and not lock._is_owned():
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_tracing)


def only_passes_on(graph: torch.fx.GraphModule, count: int) -> bool:
    """Whether what AOTAutograd puts around a graph that it has just traced hands `count` arguments on and results back, as they are.

    Then the wrapper can be left out, which takes longer than a small graph. Writes to arguments are the graph's own. False too if
    this version of torch says it elsewhere.
    """
    context = find("torch._guards.TracingContext.try_get")
    facts = getattr(context() if callable(context) else None, "fw_metadata", None)
    if facts is None or sum(node.op == "placeholder" for node in graph.graph.nodes) != count:
        return False
    plain = find("torch._functorch._aot_autograd.schemas.OutputType.non_alias")
    writes_outside = find("torch._functorch._aot_autograd.schemas.MutationType.MUTATED_OUT_GRAPH")
    try:
        return not (
            facts.num_mutated_inp_runtime_indices
            or facts.num_outputs_aliased
            or facts.num_intermediate_bases
            or facts.is_rng_op_functionalized
            or facts.tokens
            or any(output.output_type != plain for output in facts.output_info)
            or any(
                given.mutates_metadata or given.mutation_type == writes_outside for given in facts.input_info
            )
        )
    except AttributeError:
        return False


@contextlib.contextmanager
def without_own_deprecations() -> Iterator[None]:
    """Suppresses torch's warnings about deprecated calls that torch makes itself, for example when it copies tree specs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*treespec, LeafSpec.*", category=FutureWarning)
        yield


def compile_call(depth: int) -> Any:
    """The object of the torch.compile call that called the function `depth` frames up as its backend; None if there is none."""
    wrapper = find("torch._TorchCompileWrapper")
    caller = sys._getframe(depth + 1).f_locals.get("self")
    return caller if wrapper is not None and isinstance(caller, wrapper) else None


def compile_call_of(compiled: Any) -> Any:
    """The same object, from the result of torch.compile; None for anything else."""
    innermost = find("torch._dynamo.eval_frame.innermost_backend")
    cells = getattr(compiled, "__closure__", None) or ()
    contexts = [getattr(compiled, "dynamo_ctx", None), *(cell.cell_contents for cell in cells)]
    callback = next((each.callback for each in contexts if hasattr(each, "callback")), None)
    return innermost(callback) if innermost is not None and callback is not None else None


def graph_breaks() -> list[tuple[str, str, int, str]]:
    """(reason, file, line, function) of each graph break of Dynamo in this process, without duplicates."""
    rows = []
    for each in find("torch._dynamo.utils.graph_break_reasons") or []:
        if each.graph_break and each.user_stack:
            frame = each.user_stack[-1]
            rows.append((_first_and_hint(each.reason), frame.filename, frame.lineno or 0, frame.name))
    return list(dict.fromkeys(rows))


def untraced() -> list[str]:
    """What Dynamo could not trace in this process, also in functions that it gave up: these leave no graph break."""
    counted = find("torch._dynamo.utils.counters") or {}
    return [_first_and_hint(reason) for reason in counted.get("unimplemented", {})]


def _first_and_hint(reason: str) -> str:
    lines = [line.strip() for line in reason.splitlines()]
    hints = [line for line in lines if line.startswith("Hint: Set ")]
    reasons = [line.partition("Reason: ")[2] for line in lines if "Reason: " in line]  # torch 2.15
    return ". ".join([lines[0], *(hints or reasons)[:1]])


def traced_parameters() -> list[torch.Tensor]:
    """Real tensors that AOT put before the example inputs (prepare_freezing), in order."""
    context = torch._guards.TracingContext.try_get()
    return list((context and context.params_flat) or [])


def compile_kernel() -> Callable[..., Callable[..., None]] | None:
    return find("torch.cuda._compile_kernel")


def shorten_traceback_class() -> type[BaseException] | None:
    found = find("torch._dynamo.exc.ShortenTraceback")
    return found if isinstance(found, type) else None


def restarts_tracing(error: BaseException) -> bool:
    """Whether Dynamo raised it for itself: it traces the function again, with other assumptions."""
    found = find("torch._dynamo.exc.RestartAnalysis")
    return isinstance(found, type) and isinstance(error, found)


def sizes_seen(environment: Any) -> dict[Any, Any]:
    """The sizes that a ShapeEnv's symbols had in the example; older torch uses another name."""
    found = getattr(environment, "backed_var_to_val", None)
    return getattr(environment, "var_to_val", {}) if found is None else found


def guards_seen(values: Sequence[Any]) -> int:
    """How many conditions on the sizes of these fake tensors torch has recorded so far."""
    sizes = (size for value in values if isinstance(value, torch.Tensor) for size in value.shape)
    symbols = (size for size in sizes if isinstance(size, torch.SymInt))
    environments = {id(size.node.shape_env): size.node.shape_env for size in symbols}
    return sum(len(getattr(each, "guards", None) or []) for each in environments.values())


def without_guards(environment: Any) -> AbstractContextManager[None]:
    """Questions about sizes are answered for the example, and torch does not fix the sizes in question. `environment` may be None."""
    suppress = getattr(environment, "suppress_guards", None)
    return contextlib.nullcontext() if suppress is None else suppress()


@contextlib.contextmanager
def without_unbound_symbols(environment: Any) -> Iterator[None]:
    """What is traced apart from a program may leave symbols of sizes that follow from data, which nothing of the program binds.

    Torch forgets them: it would refuse the next trace because of them. `environment` may be None.
    """
    name = "pending_fresh_unbacked_symbols"
    before = [*getattr(environment, name, [])]
    try:
        yield
    finally:
        if hasattr(environment, name):
            getattr(environment, name)[:] = before


NARROWING_DEVICES = ("cpu", "cuda")  # torch.is_autocast_enabled has no answer for "meta"


def is_in_autocast() -> bool:
    return any(map(torch.is_autocast_enabled, NARROWING_DEVICES))


def without_autocast() -> AbstractContextManager[None]:
    """Calls have the dtypes that their arguments give them."""
    regions = contextlib.ExitStack()
    for device in filter(torch.is_autocast_enabled, NARROWING_DEVICES):
        regions.enter_context(torch.autocast(device, enabled=False))
    return regions


def size_seen(size: int | torch.SymInt) -> int:
    """A size in the example. One that follows from data has none: a large prime tells it from other sizes."""
    if isinstance(size, int):
        return size
    seen = size.node.expr.xreplace(sizes_seen(size.node.shape_env))
    return int(seen.xreplace(dict.fromkeys(seen.free_symbols, 8191)))


def guards_of(program: torch.export.ExportedProgram) -> list[str]:
    """The conditions on sizes that torch.export traced for, as Python over L['x'].size()[0]."""
    return list(getattr(program, "_guards_code", None) or [])


def traced_guards(program: torch.export.ExportedProgram) -> list[tuple[Any, Any]]:
    """The same as sympy relations, each with the frame that asked for it or None; empty for a program loaded from a file."""
    sizes = (
        size
        for node in program.graph.nodes
        if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor)
        for size in node.meta["val"].shape
    )
    environment = next((size.node.shape_env for size in sizes if isinstance(size, torch.SymInt)), None)
    return [
        (guard.expr, _frame_of(getattr(guard, "sloc", None)))
        for guard in getattr(environment, "guards", None) or []
    ]


def _frame_of(location: Any) -> Any:
    """The innermost line outside of torch's own machinery."""
    user = getattr(location, "maybe_user_loc", None)
    frame = user if hasattr(user, "filename") else getattr(location, "framework_loc", None)
    return frame if hasattr(frame, "filename") else None


def dispatcher_has(name: str, overload: str) -> bool:
    """Whether an operator of TorchScript ("aten::add", "Tensor") is one of torch's dispatcher."""
    return torch._C._dispatch_has_kernel(f"{name}.{overload}" if overload else name)


def is_data_dependent(value: Any) -> bool:
    """Whether only a run knows this number or condition."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    return isinstance(value, (torch.SymBool, torch.SymInt, torch.SymFloat)) and bool(
        free_unbacked_symbols(value)
    )


def range_of(environment: Any, symbol: Any) -> list[int | None]:
    """The least and the largest value of a ShapeEnv's symbol; None: without an end."""
    bounds = environment.var_to_range.get(symbol)
    ends = (None, None) if bounds is None else (bounds.lower, bounds.upper)
    return [int(end) if end is not None and end.is_Integer else None for end in ends]


def set_range(environment: Any, symbol: Any, low: int | None, high: int | None) -> None:
    from torch.utils._sympy.numbers import int_oo
    from torch.utils._sympy.value_ranges import ValueRanges

    environment.var_to_range[symbol] = ValueRanges(
        -int_oo if low is None else low, int_oo if high is None else high
    )


def name_nodes(graph: torch.fx.Graph, names: Mapping[torch.fx.Node, str]) -> None:
    """Names all nodes of a graph, with new ones from then on that differ from these."""
    from torch.fx.graph import _Namespace

    graph._graph_namespace = _Namespace()
    for node, name in names.items():
        node.name = graph._graph_namespace.create_name(name, node)


def is_data_dependence(error: BaseException) -> bool:
    """Whether torch reports that tracing needs what only a run knows."""
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    return isinstance(error, GuardOnDataDependentSymNode)


def cond(condition: Any, then: Callable, otherwise: Callable, operands: tuple) -> Any:
    """`torch.cond` of functions that torch.export traces as they are, without Dynamo."""
    return torch.ops.higher_order.cond(condition, then, otherwise, operands)


_TORCH = torch.__file__.rsplit("__init__", 1)[0]


def is_of_torch(path: str) -> bool:
    return path.startswith(_TORCH)


# Where torch queries the memory layout of a tensor. No value depends on the answers.
LAYOUT_FUNCTIONS = frozenset({
    "is_contiguous", "is_contiguous_or_false", "check_contiguous_sizes_strides", "is_channels_last_contiguous",
    "is_channels_last_contiguous_2d", "is_channels_last_contiguous_3d", "is_channels_last_contiguous_or_false",
    "is_non_overlapping_and_dense", "is_non_overlapping_and_dense_or_false", "are_strides_like_channels_last",
    "compute_elementwise_output_strides", "_reshape_view_helper_core_alg",
})  # fmt: skip


_HOOKS = tuple(name for name in vars(torch.nn.Module()) if "hook" in name)


def hooks_of(module: torch.nn.Module) -> dict[str, Any] | None:
    """What torch keeps of a module's own hooks, by attribute: state of its pickles and copies. None if there are none."""
    return {name: vars(module)[name] for name in _HOOKS if vars(module).get(name)} or None
