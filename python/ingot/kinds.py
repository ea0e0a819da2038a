# SPDX-License-Identifier: Apache-2.0
"""Kinds of values, arguments, inputs and outputs of a program, with the values of the C API."""

from __future__ import annotations

from enum import IntEnum


class ValueKind(IntEnum):
    """ingot_value_kind"""

    TENSOR = 0
    INTEGER = 1
    FLOAT = 2
    BOOL = 3
    OTHER = 4


class ArgumentKind(IntEnum):
    """ingot_argument_kind"""

    NONE = 0
    VALUE = 1
    BOOL = 2
    INTEGER = 3
    FLOAT = 4
    STRING = 5
    DTYPE = 6
    DEVICE = 7
    LIST = 8
    GRAPH = 9
    COMPLEX = 10


class InputRole(IntEnum):
    """ingot_input_kind: where the value of an input comes from."""

    USER = 0
    PARAMETER = 1
    BUFFER = 2
    CONSTANT = 3


class OutputRole(IntEnum):
    """ingot_output_kind: returned to the user, or the new value of a mutated input."""

    USER = 0
    BUFFER_MUTATION = 1
    INPUT_MUTATION = 2


CHECK_INDICES = {"later": 0, "sync": 1}  # ingot_check_indices
