# SPDX-License-Identifier: Apache-2.0
"""Options, shared by compile(...), build(...), dynamo.compile(...) and torch.compile(options={...})."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ingot import _core
from ingot.errors import Error, UserError, first_line, kind_of
from ingot.kinds import CHECK_INDICES
from ingot.peer_options import without_peer_options

# Options of this package; all others are passed to the compiler (`ingot build --help` lists them).
_OWN = {
    "require_full_compilation": "raise UnsupportedError instead of running parts of the model in torch",
    "min_block_size": "partitions of fewer nodes stay in torch",
    "torch_executed_ops": 'operators that stay in torch: "aten.add.Tensor", "aten::add", torch.ops.aten.add.Tensor',
    "check_speed": "time each engine against torch at the traced sizes, for the report",
    "check_weights": "how calls notice a write through .data or numpy: fast (8 pieces per weight), thorough (64), full (a hash)",
    "staged": 'begin with engines of `staged_first_level`, and build better ones in the background: True, or "same_bits"',
    "staged_first_level": "the optimization level of the engines that a staged build begins with",
    "staged_threads": "threads of the builds in the background, of the lowest priority",
    "fallback": '"unsupported": torch runs what engines cannot; "fastest": and partitions that it is measured to run faster',
    "check_indices": 'on a GPU, an index out of range is told by the next call, "later", or by the call itself, which waits: "sync"',
    "cuda_graphs": "calls of engines on a GPU become CUDA graphs; False: each enqueues its kernels one by one",
    "custom_engine_cache": "an object with save(key, bytes) and load(key), asked after memory and disk",
    "metadata": "strings by key that each engine stores, see Engine.metadata",
    "progress": "called as progress(phase, done, total, remaining_seconds); returning False cancels, and what it raises ends the build",
}

_CHOICES = {
    "check_weights": ("fast", "thorough", "full"),
    "staged": (False, True, "same_bits"),
    "staged_first_level": (0, 1, 2, 3, 4, 5),
    "fallback": ("unsupported", "fastest"),
    "check_indices": tuple(CHECK_INDICES),
}
_TYPES = {
    "cuda_graphs": bool,
    "require_full_compilation": bool,
    "min_block_size": int,
    "check_speed": bool,
    "staged_threads": int,
}
# Types of options whose values may be lists.
_LISTS = ("entries", "patterns", "name:dims,...", "dtypes", "levels")


@dataclass
class Settings:
    """Parsed options. `compiler` holds strings for the compiler, by name."""

    require_full_compilation: bool = False
    min_block_size: int = 1
    check_speed: bool = False
    staged: bool | str = False
    staged_first_level: int = 3
    staged_threads: int = 1
    fallback: str = "unsupported"
    check_weights: str = "fast"
    check_indices: str = "later"
    cuda_graphs: bool = True
    torch_executed_ops: tuple[str, ...] = ()
    progress: Callable[[str, int, int, float], Any] | None = None
    one_engine: bool = False  # of the whole program, which takes and returns numbers itself
    one_program: bool = False  # rank="all": of the traces of all ranks
    groups: Mapping[str, str] = field(default_factory=dict)  # torch's name of a group -> the program's
    custom_engine_cache: Any = None
    metadata: dict[str, str] = field(default_factory=dict)
    compiler: dict[str, str] = field(default_factory=dict)

    @property
    def measures(self) -> bool:
        """Whether engines are timed against torch."""
        return self.check_speed or self.fallback == "fastest"

    @property
    def first_level(self) -> int | None:
        """Of a staged build, the level of the engines that run first; those that are timed against torch are of level 3 at least."""
        if not self.staged:
            return None
        wanted = int(self.compiler.get("optimization_level", "5"))
        return min(wanted, max(self.staged_first_level, 3) if self.measures else self.staged_first_level)

    def apply_to(self, engine: _core.Engine) -> _core.Engine:
        """The engine, which was just built: its calls run as the options say."""
        engine.set_running(CHECK_INDICES[self.check_indices], self.cuda_graphs)
        return engine

    def add_profiles(self, texts: Sequence[str]) -> None:
        """Further sizes of inputs: "x:1..4x8"."""
        known = [self.compiler["shapes"]] if "shapes" in self.compiler else []
        if known or texts:
            self.compiler["shapes"] = ",".join([*known, *texts])

    @staticmethod
    def parse(options: Mapping[str, Any], of: Callable[..., Any] | None = None) -> Settings:
        """UserError or UnsupportedError for every invalid name, type and value: no later error is due to an option.

        of: the function that took them, whose own parameters may have been meant.
        """
        if not isinstance(options, Mapping):
            raise UserError(
                f"options must be a dict of names and values, not {kind_of(options)}",
                code="INGOT-U002",
            )
        known = {row[0]: row[1] for row in _core.options()}
        settings = Settings()
        for name, value in without_peer_options(options).items():
            if name == "rank" and isinstance(value, str) and value == "all":
                settings.one_program = True
            elif name in _OWN:
                setattr(settings, name, _checked(name, value))
            elif name == "device":
                settings.compiler.update(_device_options(value, known[name]))
            elif name in known:
                settings.compiler[name] = _text(name, known[name], value)
            else:
                raise _no_option(str(name), [*known, *_OWN, *_parameters(of)])
        _check_texts(settings.compiler)
        if settings.fallback == "fastest" and settings.require_full_compilation:
            raise _no_module("fallback", "for programs that torch may run in part")
        return settings


def refuse_for_engines(settings: Settings) -> None:
    """UserError for options that need torch, or a module whose engines change, in a build that returns one engine."""
    if settings.fallback == "fastest":
        raise _no_module("fallback", "for programs that torch may run in part")
    if settings.staged:
        raise _no_module("staged", "for modules, whose engines are replaced while they run")


def _no_module(name: str, what: str) -> UserError:
    return UserError(
        f'option "{name}" is {what}: this build has to become a single engine',
        code="INGOT-U002",
        advice="leave it out, and use optimization_level=5 for the fastest engine; or call ingot.compile or torch.compile, "
        "without require_full_compilation",
    )


def _check_texts(options: Mapping[str, str]) -> None:
    """The compiler's check; its messages quote a bad value, but not all name the option."""
    try:
        _core.check_options(options)
    except Error as error:
        if any(f'"{name}"' in str(error) for name in options):
            raise
        for name, text in options.items():
            try:
                _core.check_options({name: text})
            except Error as alone:
                raise _named(name, alone) from None
        raise


def _named(name: str, error: Error) -> Error:
    """The same error, whose message begins with the option."""
    cause = first_line(error).removeprefix(f"[{error.code}] ")
    return type(error)(f'option "{name}": {cause}', code=error.code, advice=error.advice)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _device_options(value: Any, kind: str) -> dict[str, str]:
    """Of "cuda:sm_90a", which is a target; of "cuda:1" and torch.device("cuda", 1), a GPU of this machine; or of the host."""
    text = str(value) if type(value).__name__ == "device" else _text("device", kind, value)
    gpu = text.removeprefix("cuda:")
    if gpu == text or not gpu.isdigit():
        return {"device": text}
    from ingot import devices  # needs torch

    name = devices.architecture(int(gpu))
    return {"gpu": gpu, "device": f"cuda:{name}" if name else "cuda"}


def _parameters(of: Callable[..., Any] | None) -> list[str]:
    parameters = {} if of is None else inspect.signature(of).parameters
    return [name for name, each in parameters.items() if each.kind is not each.VAR_KEYWORD]


def _no_option(name: str, known: list[str]) -> UserError:
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    own = ", ".join(_OWN)
    return UserError(
        f'there is no option "{name}"' + (f'; the nearest is "{nearest[0]}"' if nearest else ""),
        code="INGOT-U001",
        advice="`ingot build --help` lists all options"
        + ("" if nearest else f"; Python has these in addition: {own}"),
    )


def _operators(name: str, value: Any) -> tuple[str, ...]:
    is_list = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
    items = list(value) if is_list and not hasattr(value, "shape") else [None]  # arrays hold no operators
    if not all(isinstance(item, str) or callable(item) for item in items):
        raise UserError(
            f'option "{name}" must be a list of operators, not {value!r}',
            code="INGOT-U002",
            advice='write ["aten.add.Tensor"], or [torch.ops.aten.add.Tensor]',
        )
    from ingot.operators import operator_names  # needs torch, which builds from files do not

    try:
        return tuple(overload for item in items for overload in operator_names(item))
    except UserError as error:
        raise _named(name, error) from None


def _checked(name: str, value: Any) -> Any:
    if name == "torch_executed_ops":
        return _operators(name, value)
    if name == "metadata":
        is_text = isinstance(value, Mapping) and all(
            isinstance(item, str) for pair in value.items() for item in pair
        )
        texts = [item for pair in value.items() for item in pair] if is_text else []
        if not is_text or "" in value or not all("\0" not in text and _is_utf8(text) for text in texts):
            raise UserError(
                f'option "{name}" must be a dict of strings in UTF-8 by non-empty keys, without NUL, not {value!r}',
                code="INGOT-U002",
            )
        return dict(value)
    choices = _CHOICES.get(name, ())
    if choices and not any(type(value) is type(each) and value == each for each in choices):
        raise UserError(
            f'option "{name}" is one of {", ".join(map(str, choices))}, not {value!r}', code="INGOT-U002"
        )
    if name == "progress" and value is not None and not callable(value):
        raise UserError(f'option "{name}" is a function, not {value!r}', code="INGOT-U002")
    if name == "custom_engine_cache" and not all(
        value is None or callable(getattr(value, method, None)) for method in ("save", "load")
    ):
        raise UserError(
            f'option "{name}" is an object with save(key, bytes) and load(key), not {value!r}',
            code="INGOT-U002",
        )
    expected = _TYPES.get(name)
    if expected is not None and type(value) is not expected:
        raise UserError(
            f'option "{name}" must be of type {expected.__name__}, not {value!r}', code="INGOT-U002"
        )
    if expected is int and value < 1:
        raise UserError(f'option "{name}" is at least 1, not {value}', code="INGOT-U002")
    return value


def _dtype_name(value: Any) -> Any:
    """ "bfloat16" of torch.bfloat16; anything else as it is."""
    return str(value).removeprefix("torch.") if type(value).__name__ == "dtype" else value


def _text(name: str, kind: str, value: Any) -> str:
    """The compiler's text for a value; it knows which strings an option accepts."""
    text = _any_text(name, kind, value)
    if not _is_utf8(text):
        raise UserError(f'option "{name}" must be text in UTF-8, not {value!r}', code="INGOT-U002")
    return text


def _any_text(name: str, kind: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, str)) and kind != "files":
        return str(value)
    if kind in ("file", "folder") and isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if kind == "files":
        files = value if isinstance(value, (list, tuple)) else [value]
        names = [os.fsdecode(file) for file in files if isinstance(file, (str, os.PathLike))]
        if len(names) == len(files) and not any("\n" in name for name in names):
            return "\n".join(names)
    is_choice = kind == "pattern=backend,..." and isinstance(value, Mapping)
    if is_choice and all(isinstance(word, str) and word for pair in value.items() for word in pair):
        return ",".join(f"{pattern}={backend}" for pattern, backend in value.items())
    if kind in _LISTS and isinstance(value, (list, tuple, set, frozenset)):
        words = [_dtype_name(item) if kind == "dtypes" else item for item in value]
        if all(isinstance(word, str) for word in words):
            return ",".join(words if isinstance(value, (list, tuple)) else sorted(words))
    raise UserError(f'option "{name}" must be given as {kind}, not {value!r}', code="INGOT-U002")
