# SPDX-License-Identifier: Apache-2.0
"""The result of `ingot.compile`: a module that is called like the user's model."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree

from ingot import calling, compat
from ingot.capture import Input
from ingot.durations import seconds
from ingot.engine import Engine
from ingot.errors import NoEngineError, UserError
from ingot.fixed_module import FixedModule
from ingot.gate import Gate
from ingot.hybrid import Compiled
from ingot.kinds import InputRole
from ingot.program_signature import argument_names, eager_orders, mutated_names
from ingot.pytrees import text_of, with_tuples
from ingot.refitting import have_equal_bytes, module_values, refit_core, refit_engines
from ingot.refusals import no_engine_error
from ingot.reporting import Report
from ingot.same_program import constants_of, refuse_another_program, refuse_other_constants
from ingot.staged_part import StagedPart
from ingot.views import restore_orders
from ingot.weight_names import Names, is_asked_for, tied_names, unread_names, with_tied


class CompiledModule(FixedModule):
    """A compiled program: one engine, or engines with torch parts between them.

    Call it with the model's own arguments, positional or by keyword; it returns the model's own structure. `report` says what
    ran where. `engine` is the whole program's engine, UnsupportedError if torch runs parts of it; `engines` are all of them.
    `state_dict()` has the model's names; its values follow refits, and what calls change as far as torch holds it.
    """

    holds_state = True  # whether there is a `state_dict()`

    def __init__(
        self,
        program: ExportedProgram,
        compiled: Compiled,
        inputs: Sequence[Input],
        source: ExportedProgram | None = None,
        changed: Collection[int] = (),
    ) -> None:
        """`source`: the program as the user gave it, if it is known. `changed`: flat inputs that calls change, besides those of
        the program's signature."""
        super().__init__()
        self.program = program
        self.report: Report = compiled.report
        self.compiled = compiled
        self._specs = program.call_spec  # torch creates a class at each access
        self.result_spec = self._specs.out_spec
        self.orders = eager_orders(program)  # the results of a whole engine are dense
        self._tree = calling.parse_tree(text_of(self._specs.in_spec))
        self._arguments = argument_names(program)
        self._count = len(inputs)
        self._whole = Engine(compiled.engines[0]) if compiled.graph is None else None
        mutated = mutated_names(program)
        self._names = {
            given.name: position
            for position, given in enumerate(inputs)
            if given.kind in (InputRole.PARAMETER, InputRole.BUFFER)
        }
        self._mutated = {k for k, given in enumerate(inputs) if given.name in mutated or k in changed}
        self._values = {name: value.detach() for name, value in program.state_dict.items()}
        self._model_names = list(self._values)
        self._unread = unread_names(program)
        self._tied: Names = tied_names(program.state_dict)
        self._saved = {
            name
            for name, position in self._names.items()
            if is_asked_for(inputs[position]) and position not in self._mutated and name not in self._unread
        }
        self._source = source
        self._staged = compiled.staged
        self._gate = Gate() if self._staged is None else self._staged.gate
        self._weights = {  # tensors that calls change belong to this module
            position: given.data.clone() if position in self._mutated else given.data
            for position, given in enumerate(inputs)
            if given.kind != InputRole.USER
        }
        self._begin_stages()

    def _begin_stages(self) -> None:
        if self._staged is None:
            return
        if self._whole is not None:
            self._go_through_stages(self._whole, self._staged.parts[0])
            self._staged.parts[0].runner = None  # a whole engine is called directly
        self._staged.start(self, self.report, own_weights=True)

    def _go_through_stages(self, engine: Engine, part: StagedPart) -> Engine:
        staged, plain = self._staged, part.core.run

        def run(tensors: Sequence[Any]) -> list:
            if staged.is_finished:
                return plain(tensors)
            with staged.call():
                if part.wants_sample:
                    part.take_sample(tensors)
                return plain(tensors)

        def refit(weights: Any, partial: bool, rank: int | Mapping[str, int] | None = None) -> None:
            values = module_values(weights)
            with staged.lock:
                refit_core(part.core, values, partial, rank)
                staged.keep_weights(values)

        return engine.go_through(run, refit)

    def wait_until_tuned(self, timeout: float | None = None) -> bool:
        """Waits until no stage of a staged build is left; False after `timeout` seconds. `report.stages` says how they ended."""
        patience = None if timeout is None else seconds(timeout)
        return self._staged is None or self._staged.wait(patience)

    def stop_tuning(self) -> None:
        """Ends a staged build: the engines that run now stay."""
        if self._staged is not None:
            self._staged.stop()

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledModule:
        """A module with its own weights and states, sharing the engines' memory until they change."""
        with contextlib.nullcontext() if self._staged is None else self._staged.lock:
            return self._copied(memo)

    def _copied(self, memo: dict[int, Any]) -> CompiledModule:
        shared = [self.program, self._specs, self._result_spec, self._source]
        if self._staged is None:
            shared.append(self.report)
        shared += self._values.values()
        shared += [self._weights[position] for position in self._weights if position not in self._mutated]
        memo.update({id(value): value for value in shared})
        twin = self.__copy__()
        memo[id(self)] = twin
        vars(twin).update({name: copy.deepcopy(value, memo) for name, value in vars(self).items()})
        if twin._staged is not None:
            twin._gate = twin._staged.gate
            twin._begin_stages()
        return twin

    def __copy__(self) -> CompiledModule:
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __reduce__(self) -> tuple:
        """Pickles what `ingot.save` writes: with the current weights, and initial states of whole engines."""
        from ingot.saving import pickled  # which needs this class

        return pickled(self)

    @property
    def result_spec(self) -> _pytree.TreeSpec:
        """The structure of the model's result, as pickles have it: files have tuples for classes that torch cannot write."""
        return self._result_spec

    @result_spec.setter
    def result_spec(self, spec: _pytree.TreeSpec) -> None:
        self._result_spec = spec
        self._has_other_tuples = with_tuples(spec) != spec  # than an engine returns

    @property
    def engine(self) -> Engine:
        if self._whole is None:
            raise self._no_engine()
        return self._whole

    def _no_engine(self) -> NoEngineError:
        conditions = self.compiled.conditions
        numbers = [] if conditions is None else conditions.number_names
        return no_engine_error(numbers, len(self.report.fallbacks))

    def __getattr__(self, name: str) -> Any:
        if name == "engine":  # Python asks here after the property has raised its error
            raise self._no_engine()
        return super().__getattr__(name)

    @property
    def engines(self) -> list[Engine]:
        """All engines, in execution order."""
        if self._whole is not None:
            return [self._whole]
        engines = [Engine(core) for core in self.compiled.engines]
        for engine, part in zip(
            engines, self._staged.parts if self._staged is not None else [], strict=False
        ):
            self._go_through_stages(engine, part)
        return engines

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        live = self._weights if self._whole is None else {}
        for name, value in self._values.items():
            destination[prefix + name] = live.get(self._names.get(name, -1), value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # torch's own costs more than a small model
        if self._forward_hooks or self._forward_pre_hooks or torch.nn.modules.module._has_any_global_hook():
            return super().__call__(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return self._after_a_break(*args, **kwargs)
        if compat.is_in_script_trace():
            return self._in_script(args, kwargs)
        fake = compat.fake_argument((args, kwargs))
        if fake is not None:
            return self._traced(args, kwargs, fake)
        if self._whole is None:
            return self._hybrid(args, kwargs)
        result = self._whole(*args, **kwargs)
        if not self._has_other_tuples and not self.orders:
            return result
        return self.rebuild(self.ordered(_pytree.tree_leaves(result)))

    def ordered(self, leaves: list) -> list:
        """The flat results of a whole engine in the memory format that eager gives them."""
        return restore_orders(leaves, self.orders)

    @torch.compiler.disable
    def _after_a_break(self, *args: Any, **kwargs: Any) -> Any:
        """A call inside of a function that torch.compile traces, which runs the hooks: the graph ends before it."""
        return self.forward(*args, **kwargs)

    def _in_script(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call while torch.jit.trace records: TorchScript of `ingot.save`, whose constants hold the engines as they are now."""
        from ingot.saving import script_of  # imports this file

        with compat.without_script_trace():
            script = script_of(self)
        return script.call_model(args, kwargs)

    def save(self, path: Any, _extra_files: Any = None) -> None:
        """As torch.jit.save calls it: TorchScript, as of `ingot.save(module, path, output_format="torchscript")`."""
        from ingot.saving import save_script

        save_script(self, path, _extra_files)

    def _traced(self, args: tuple, kwargs: dict[str, Any], fake: Any) -> Any:
        """A call while torch traces a graph, which gets `ingot::run` nodes: their constants hold the engines as they are now."""
        from ingot.saving import carrier_of  # imports this file

        with compat.with_real_tensors():
            carrier = carrier_of(self)
        if not fake.fake_mode.allow_non_fake_inputs:
            carrier._apply(fake.fake_mode.from_tensor)
        return carrier.call_model(args, kwargs)

    def _hybrid(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        staged = self._staged
        with self._gate.call() if staged is None or staged.is_finished else staged.call():
            arguments = self.flat_arguments(args, kwargs)
            self.compiled.conditions.check(arguments)
            if self.compiled.guards is not None:
                self.compiled.guards.check(args, kwargs)
            return self.rebuild(self.compiled.call(arguments))

    def flat_arguments(self, args: tuple, kwargs: dict[str, Any]) -> list:
        """The program's flat inputs, including weights."""
        leaves, found = _pytree.tree_flatten((args, kwargs))
        expected = self._specs.in_spec
        if found != expected:  # passed by other names or in another order, or invalid
            leaves = calling.flatten(
                self._tree, calling.bind_names(args, kwargs, self._tree, self._arguments)
            )
        users = iter(leaves)
        return [self._weights[i] if i in self._weights else next(users) for i in range(self._count)]

    @property
    def model_names(self) -> list[str]:
        """The names of the model's state dict."""
        return self._model_names

    @property
    def constants(self) -> list[str] | None:
        """`constants_of` the program, which no refit changes; None if they are not known."""
        return None if self._source is None else constants_of(self._source.graph_module)

    @property
    def tied_names(self) -> Names:
        """The names of each tensor of the model that has several."""
        return self._tied

    @property
    def weight_positions(self) -> dict[str, int]:
        """The flat inputs that are parameters and buffers, by name."""
        return self._names

    @property
    def input_count(self) -> int:
        """How many flat inputs there are, weights among them."""
        return self._count

    def is_changed(self, position: int) -> bool:
        """Whether calls change that flat input."""
        return position in self._mutated

    def weight_at(self, position: int) -> torch.Tensor | None:
        """The value of a flat input that the caller does not pass."""
        return self._weights.get(position)

    def rebuild(self, outputs: Sequence[Any]) -> Any:
        """The model's result from its flat outputs."""
        return _pytree.tree_unflatten(list(outputs), self._result_spec)

    def refit(self, weights: Any, partial: bool = False) -> None:
        """New weights for all parts of the module; see `ingot.refit_module_weights`. All or nothing, between calls."""
        if isinstance(weights, ExportedProgram) and self._source is not None:
            refuse_another_program(self._source, weights)
        elif isinstance(weights, (ExportedProgram, torch.nn.Module)):
            self._refuse_other_constants(weights)
        values = module_values(weights, self._refuse_other_constants)
        if self._whole is None:
            values = with_tied(values, self._tied)
        self._check_names(values, partial)
        with contextlib.nullcontext() if self._staged is None else self._staged.lock:
            self._take(values, partial)

    def _refuse_other_constants(self, weights: ExportedProgram | torch.nn.Module) -> None:
        constants = self.constants
        if constants is not None:
            is_module = isinstance(weights, torch.nn.Module)
            refuse_other_constants(constants, weights if is_module else weights.graph_module)

    def _take(self, values: Mapping[str, torch.Tensor], partial: bool) -> None:
        refitted = refit_engines(self, values, partial)
        own = {self._names[name]: values[name] for name in set(values) & set(self._names)}
        with self._gate.change():
            for engine, twin in refitted:
                engine.take_weights(twin)
            if self._whole is None:
                self._weights |= {
                    position: value for position, value in own.items() if position not in self._mutated
                }
            self._keep_values(values)
        if self._staged is not None:
            self._staged.keep_weights(values)

    def _check_names(self, values: Mapping[str, torch.Tensor], partial: bool) -> None:
        known = set(self._names) | set(self._model_names)
        for name in sorted(set(values) - known):
            if not any(engine.knows_tensor(name) for engine in self.compiled.engines):
                raise UserError(
                    f"the module has no weight {name!r}",
                    code="INGOT-U320",
                    advice="pass the weights of the model that was compiled",
                )
        if self._whole is not None:
            return  # the engine judges the rest
        for name in sorted(set(values) & set(self._names)):
            if name in self._unread:
                continue
            old, new = self._weights[self._names[name]], values[name]
            if self._names[name] in self._mutated and not have_equal_bytes(new, self._values.get(name, new)):
                raise UserError(
                    f"{name!r} is changed by calls, and its initial state cannot be refitted",
                    code="INGOT-U325",
                    advice="leave it out, or compile the model again",
                )
            if (new.dtype, new.shape) != (old.dtype, old.shape):
                raise UserError(
                    f"weight {name!r} is {old.dtype}{list(old.shape)}, but the new value is {new.dtype}{list(new.shape)}",
                    code="INGOT-U321",
                )
        missing = sorted(self._saved - set(values))
        others = len(missing) - 1
        if missing and not partial:
            raise UserError(
                f"there is no new value of {missing[0]!r}"
                + (f", nor of {others} other weight{'s' * (others > 1)}" if others else ""),
                code="INGOT-U324",
                advice="pass all weights, or partial=True (--partial) to keep the values of the others",
            )

    def _keep_values(self, weights: Mapping[str, torch.Tensor]) -> None:
        """For `state_dict`: names that share one tensor (tied weights) share the new value too."""
        known = set(self._values)
        self._values |= {name: weights[name] for name in known & set(weights)}
        for names in self._tied:
            for name in set(weights) & set(names):
                self._values |= dict.fromkeys(known & set(names), weights[name])
