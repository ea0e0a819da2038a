# SPDX-License-Identifier: Apache-2.0
"""The four kinds of error. Each carries a stable code, the node, the line of the user's model, and what to do."""

from __future__ import annotations


def kind_of(value: object) -> str:
    """For messages: "a list", "an Engine"."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "AEIOaeio" else f"a {name}"


def quoted(value: object) -> str:
    """For messages: texts in the quotes in which options are written."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def first_line(error: BaseException) -> str:
    """Of its message; its type if it has none, as torch's assertions do not."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _whole_text(message: str, code: str, node: str, source: str, advice: str) -> str:
    """As the compiler prints its own errors, whose messages are complete."""
    if not code or message.startswith("["):
        return message
    rows = (("node", node), ("at", source), ("what to do", advice))
    return f"[{code}] {message}" + "".join(f"\n  {name}: {value}" for name, value in rows if value)


def require(value: object, kinds: type | tuple[type, ...], what: str) -> None:
    """what: "rank must be an integer". UserError for a value of another kind. A bool is not an integer."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is int):
        raise UserError(f"{what}, not {kind_of(value)}", code="INGOT-U006")


class Error(Exception):
    """Base of all errors that Ingot raises.

    Attributes: code ("INGOT-U012", see `ingot explain CODE`), node, source (a line of the user's model), advice; each is
    "" where it is unknown.
    """

    def __init__(
        self, message: str, *, code: str = "", node: str = "", source: str = "", advice: str = ""
    ) -> None:
        super().__init__(_whole_text(message, code, node, source, advice))
        self.code = code
        self.node = node
        self.source = source
        self.advice = advice

    def __str__(self) -> str:
        """The format of the C++ library's messages, which are complete."""
        text = super().__str__()
        if not self.code or text.startswith(f"[{self.code}]"):
            return text
        return f"[{self.code}] {text}" + (f"\n  what to do: {self.advice}" if self.advice else "")


class UserError(Error, ValueError):
    """A bad model, file, option or argument."""


class UnsupportedError(Error, NotImplementedError):
    """A valid request that Ingot does not support."""


class NoEngineError(UnsupportedError, AttributeError):
    """A compiled module has no single engine. `hasattr`, with which torch looks through modules, lets only AttributeErrors pass."""


class InternalError(Error, RuntimeError):
    """A bug in Ingot."""


class DeviceError(Error, OSError):
    """The system or a device failed: memory, files, drivers."""
