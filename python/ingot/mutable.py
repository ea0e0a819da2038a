# SPDX-License-Identifier: Apache-2.0
"""`ingot.MutableModule`: a compiled model that may be changed like the model itself."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from ingot import compat, one_program
from ingot.errors import UserError, kind_of
from ingot.peer_options import without_peer_options
from ingot.settings import Settings
from ingot.torch_backend import backend, keep_weights

# Attributes of its own; the model may have any other name.
_MODEL = "_ingot_model"
_COMPILED = "_ingot_compiled"
_OPTIONS = "_ingot_options"
_HOOKS = "_ingot_hooks"


class MutableModule(torch.nn.Module):
    """Runs `model` compiled, and remains the model: attributes, parameters, state dict and methods are the model's own.

    A call notices what happened to the model since the last one, and never answers with old weights: after `load_state_dict`,
    in-place updates and replaced parameters (a LoRA merge, say) it refits its engines, and after a change of shapes, submodules,
    forward hooks or attributes that the model reads it recompiles.
    check_weights: how a call notices writes through `.data` or numpy, of which tensors keep no trace: "thorough" compares 64 pieces
    of 16 bytes spread over each weight, which a write of a few elements of a large one can miss, "fast" 8, "full" a hash of all bytes.
    Of weights on a GPU, "fast" compares nothing; the other two make hashes there, for which the call waits.
    options: as of torch.compile(model, backend="ingot", options=...). Calls compute no gradients.
    """

    def __init__(self, model: torch.nn.Module, *, check_weights: str = "thorough", **options: Any) -> None:
        if not isinstance(model, torch.nn.Module) or isinstance(model, MutableModule):
            raise UserError(f"MutableModule takes a torch.nn.Module, not {kind_of(model)}", code="INGOT-U006")
        options = without_peer_options(options) | {"check_weights": check_weights}
        with one_program.calling(model, options, one_program.JUST_IN_TIME):
            keep_weights(Settings.parse(options))
        super().__init__()
        own = vars(self)
        own.pop("training")  # the model's
        own |= {name: vars(model)[name] for name in ("_parameters", "_buffers", "_modules")}
        own |= {_MODEL: model, _OPTIONS: options}
        own[_HOOKS] = RemovableHandle.next_id
        own[_COMPILED] = torch.compile(model, backend=_registered_backend(), options=options)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if vars(self)[_HOOKS] != RemovableHandle.next_id:
            _look_for_hooks(self)
        with torch.no_grad():
            return vars(self)[_COMPILED](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)[_MODEL], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)[_MODEL], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(vars(self)[_MODEL], name)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return vars(self)[_MODEL].state_dict(*args, **kwargs)

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        return vars(self)[_MODEL].load_state_dict(state_dict, *args, **kwargs)

    def train(self, mode: bool = True) -> MutableModule:
        vars(self)[_MODEL].train(mode)
        return self

    def to(self, *args: Any, **kwargs: Any) -> MutableModule:
        vars(self)[_MODEL].to(*args, **kwargs)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> MutableModule:
        twin = MutableModule(copy.deepcopy(vars(self)[_MODEL], memo), **vars(self)[_OPTIONS])
        vars(twin).update(copy.deepcopy(compat.hooks_of(self), memo) or {})
        return twin

    def __reduce__(self) -> tuple:
        return _rebuild, (vars(self)[_MODEL], vars(self)[_OPTIONS]), compat.hooks_of(self)

    def __repr__(self) -> str:
        return f"MutableModule({vars(self)[_MODEL]!r})"


def compiled_form(module: MutableModule) -> Any:
    """What torch.compile returned."""
    return vars(module)[_COMPILED]


def _registered_backend() -> Any:
    """By its name where torch finds it: of such a backend it keeps no weak references to parameters, which swap_tensors rejects."""
    return "ingot" if "ingot" in torch._dynamo.list_backends(exclude_tags=()) else backend


def _look_for_hooks(module: MutableModule) -> None:
    """Compiles anew if a module has got a forward hook, which torch's guards do not look for where there was none.

    Each hook has a number, and the counter of all numbers tells that some module may have got one. Removed hooks are guarded.
    """
    own = vars(module)
    first, own[_HOOKS] = own[_HOOKS], RemovableHandle.next_id
    is_new = any(
        number >= first
        for each in own[_MODEL].modules()
        for number in (*each._forward_hooks, *each._forward_pre_hooks)
    )
    if is_new:  # torch finds what it compiled by the backend, too
        own[_COMPILED] = torch.compile(own[_MODEL], backend=functools.partial(backend), options=own[_OPTIONS])


def _rebuild(model: torch.nn.Module, options: Mapping[str, Any]) -> MutableModule:
    return MutableModule(model, **options)
