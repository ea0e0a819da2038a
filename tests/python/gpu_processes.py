# SPDX-License-Identifier: Apache-2.0
"""What is left of an engine on a GPU in a forked child, and after the GPU has failed: a program without torch, run beside a stand-in
for the driver. It prints the code of the error of each use, and ends as any program."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable

import ingot
import numpy as np

X = np.ones((2, 8, 9, 9), np.float16)


def code_of(use: Callable[[], object]) -> str:
    try:
        use()
    except ingot.Error as error:
        return error.code
    return "none"


def uses(engine: ingot.Engine, path: str) -> str:
    """The codes of everything that needs the GPU."""
    weights = {"linear.bias": np.zeros(24, np.float16)}
    calls: list[Callable[[], object]] = [
        lambda: engine(X),
        lambda: engine(X[:1]),
        lambda: engine.refit(weights, partial=True),
        engine.reset_states,
        lambda: copy.deepcopy(engine)(X),
        lambda: ingot.Engine.load(path),
    ]
    return " ".join(map(code_of, calls))


def in_a_child(path: str) -> None:
    engine = ingot.Engine.load(path)
    for _ in range(3):
        engine(X)
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        print("child", uses(engine, path))
    else:
        print("status", os.waitpid(child, 0)[1])
        print("parent", uses(engine, path))


def before_the_first_use(path: str) -> None:
    sys.stdout.flush()
    if (child := os.fork()) != 0:
        print("status", os.waitpid(child, 0)[1])
    engine = ingot.Engine.load(path)
    print("child" if child == 0 else "parent", uses(engine, path))


def after_a_failure(path: str) -> None:
    engine = ingot.Engine.load(path)
    codes = [code_of(lambda: engine(X)) for _ in range(20)]
    print("calls", *codes)
    print("later", uses(engine, path))


def after_a_failure_in_init(path: str) -> None:
    print("loads", *[code_of(lambda: ingot.Engine.load(path)) for _ in range(3)])


_CASES = (in_a_child, before_the_first_use, after_a_failure, after_a_failure_in_init)
if __name__ == "__main__":
    {case.__name__: case for case in _CASES}[sys.argv[1]](sys.argv[2])
