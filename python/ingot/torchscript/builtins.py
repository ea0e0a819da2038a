# SPDX-License-Identifier: Apache-2.0
"""What TorchScript calls operators and torch's dispatcher does not have: functions of numbers, strings, lists and dicts.

Keys are names without overloads: Python's own overloading does the rest. Numbers may be symbolic.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from ingot import capture


def scalar_type(dtype: torch.dtype) -> int:
    """The number that TorchScript has for a dtype."""
    return torch.ops.prim.dtype(torch.empty(0, dtype=dtype))


DTYPES = {scalar_type(each): each for each in capture.DTYPES}
MEMORY_FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


def _to_int(value: Any) -> Any:
    value = _item(value)
    if isinstance(value, torch.SymInt):
        return value
    return torch.sym_int(value) if isinstance(value, (torch.SymFloat, torch.SymBool)) else int(value)


def _to_float(value: Any) -> Any:
    return torch.sym_float(_item(value))


def _to_bool(value: Any) -> Any:
    value = _item(value)
    return value if isinstance(value, (bool, torch.SymBool)) else value != 0


def _length(value: Any) -> Any:
    return value.shape[0] if isinstance(value, torch.Tensor) else len(value)


def _size(value: torch.Tensor, dim: int | None = None) -> Any:
    return list(value.shape) if dim is None else value.shape[dim]


def _add(first: Any, second: Any, alpha: Any = 1) -> Any:
    return first + second if alpha == 1 else first + alpha * second


def _subtract(first: Any, second: Any, alpha: Any = 1) -> Any:
    return first - second if alpha == 1 else first - alpha * second


def _divide(first: Any, second: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode == "floor":
        return first // second
    if rounding_mode == "trunc":
        return -(-first // second) if (first < 0) != (second < 0) else first // second
    return first / second


def _not(value: Any) -> Any:
    return torch.sym_not(value) if isinstance(value, torch.SymBool) else not value


def _extreme(choose: Callable[[Any, Any], Any]) -> Callable:
    def of(first: Any, second: Any = None) -> Any:
        values = first if second is None else [first, second]
        result = values[0]
        for value in values[1:]:
            result = choose(result, value)
        return result

    return of


def _slice(value: Any, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return value[start:end:step]


def _range_length(low: Any, high: Any, step: Any) -> Any:
    return torch.sym_max(0, (high - low + step - (1 if step > 0 else -1)) // step)


def _derived_index(index: Any, start: Any, step: Any) -> Any:
    return start + index * step


def _set_item(target: Any, key: Any, value: Any) -> Any:
    target[key] = value
    return target


def _delete(target: Any, key: Any) -> None:
    del target[key]


def _insert(target: list, index: int, value: Any) -> None:
    target.insert(index, value)


def _mutating(name: str) -> Callable:
    """A method of a list or dict that returns the list or dict itself."""

    def call(target: Any, *values: Any) -> Any:
        getattr(target, name)(*values)
        return target

    return call


def _tensor(
    data: Any, dtype: torch.dtype | None = None, device: Any = None, requires_grad: bool = False
) -> torch.Tensor:
    return torch.tensor(data, dtype=dtype, device=device)


def _identity(value: Any, *_: Any) -> Any:
    return value


def _unwrapped(value: Any) -> Any:
    if value is None:
        raise ValueError("an optional value is None where the model needs one")
    return value


def _nothing(*_: Any) -> None:
    """Warnings and prints: they belong to the run of the model, not to its result."""


# Questions to tensors, which the dispatcher answers with other overloads for other kinds of sizes.
QUERIES: dict[str, Callable] = {
    "aten::size": _size, "aten::dim": lambda value: value.dim(), "aten::numel": lambda value: value.numel(),
    "aten::stride": lambda value, dim=None: list(value.stride()) if dim is None else value.stride(dim),
    "aten::storage_offset": lambda value: value.storage_offset(), "aten::item": _item,
    "aten::is_floating_point": lambda value: value.is_floating_point(), "aten::is_complex": lambda value: value.is_complex(),
}  # fmt: skip

# Where no operand is a tensor: numbers, and the 0-d tensors of traced sizes, which stay numbers.
ARITHMETIC: dict[str, Callable] = {
    "aten::add": _add, "aten::sub": _subtract, "aten::mul": operator.mul, "aten::div": _divide, "aten::floor_divide": operator.floordiv,
    "aten::floordiv": operator.floordiv, "aten::remainder": operator.mod, "aten::pow": operator.pow, "aten::neg": operator.neg,
    "aten::eq": operator.eq, "aten::ne": operator.ne, "aten::lt": operator.lt, "aten::le": operator.le, "aten::gt": operator.gt,
    "aten::ge": operator.ge, "aten::floor": math.floor, "aten::ceil": math.ceil, "aten::sqrt": math.sqrt, "aten::exp": math.exp,
    "aten::log": math.log, "aten::round": round, "aten::__and__": operator.and_, "aten::__or__": operator.or_,
    "aten::__xor__": operator.xor,
}  # fmt: skip

# What only TorchScript has.
BUILTINS: dict[str, Callable] = ARITHMETIC | QUERIES | {
    "aten::Int": _to_int, "aten::Float": _to_float, "aten::Bool": _to_bool, "aten::IntImplicit": _item, "aten::FloatImplicit": _item,
    "aten::ScalarImplicit": _item, "prim::NumToTensor": _identity, "aten::__not__": _not, "aten::__is__": operator.is_,
    "aten::__isnot__": operator.is_not, "aten::len": _length, "aten::__getitem__": operator.getitem,
    "aten::__contains__": operator.contains, "aten::slice": _slice, "aten::list": list, "aten::copy": lambda value: value.copy(),
    "aten::append": _mutating("append"), "aten::add_": _mutating("extend"), "aten::extend": _mutating("extend"),
    "aten::clear": _mutating("clear"),
    "aten::reverse": _mutating("reverse"), "aten::insert": _insert, "aten::pop": lambda value, *at: value.pop(*at),
    "aten::index": list.index, "aten::count": list.count, "aten::sort": lambda value, reverse=False: value.sort(reverse=reverse),
    "aten::sorted": sorted, "aten::_set_item": _set_item, "aten::Delete": _delete, "aten::keys": lambda value: list(value.keys()),
    "aten::values": lambda value: list(value.values()), "aten::items": lambda value: list(value.items()),
    "aten::update": _mutating("update"), "aten::get": lambda value, key, default=None: value.get(key, default),
    "aten::setdefault": lambda value, key, new: value.setdefault(key, new), "aten::format": lambda text, *values: text.format(*values),
    "aten::str": str, "aten::tensor": _tensor, "aten::as_tensor": _tensor, "aten::__range_length": _range_length,
    "aten::__derive_index": _derived_index, "prim::min": _extreme(torch.sym_min), "prim::max": _extreme(torch.sym_max),
    "prim::abs": abs, "prim::unchecked_cast": _identity, "aten::_unwrap_optional": _unwrapped, "prim::Uninitialized": _nothing,
    "aten::warn": _nothing, "prim::Print": _nothing, "prim::dtype": lambda value: scalar_type(value.dtype), "prim::layout": lambda _: 0,
    "prim::data": lambda value: value.detach(), "prim::device": lambda value: value.device,
    "prim::ListConstruct": lambda *values: list(values), "prim::TupleConstruct": lambda *values: values,
    "prim::DictConstruct": lambda *pairs: dict(zip(pairs[::2], pairs[1::2], strict=True)), "prim::TupleIndex": operator.getitem,
    "aten::all": all, "aten::any": any, "aten::sum": sum, "aten::is_autocast_enabled": lambda: False,
    "aten::is_grad_enabled": lambda: False, "prim::type": lambda device: device.type, "aten::wait": _identity,
}  # fmt: skip

# Properties of tensors: prim::is_cuda(x) is x.is_cuda.
PROPERTIES = (
    "is_cuda", "is_cpu", "is_quantized", "is_sparse", "is_meta", "is_mkldnn", "is_xpu", "is_mps", "is_nested",
    "requires_grad", "itemsize",
)  # fmt: skip
