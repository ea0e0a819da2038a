# SPDX-License-Identifier: Apache-2.0
"""Models whose weights do not all stay on the GPU."""

from __future__ import annotations

import logging
from typing import Any

from ingot.engine import Engine
from ingot.errors import UserError

_log = logging.getLogger("ingot")
_AUTOMATIC_SHARE = 7 / 8  # of what is available


class WeightStreaming:
    """How much memory of the GPU a module's weights may take, until the `with` block ends.

    Weights beyond the budget stay in pinned memory of the host, and each call copies them to the GPU ahead of their use. Results
    do not change, nothing is compiled again, and calls in flight keep what they have. Modules on the host have no such weights:
    `total_device_budget` is 0, and a budget has no effect.
    """

    def __init__(self, module: Any) -> None:
        self._engines = _engines_of(module)
        self._before: list[str] = []
        if not any(engine.weight_memory()["total"] for engine in self._engines):
            _log.warning("weight streaming has nothing to do: no weights of the module are on a GPU")

    def __enter__(self) -> WeightStreaming:
        self._before = [_budget_of(engine.weight_memory()) for engine in self._engines]
        return self

    def __exit__(self, *unused: object) -> None:
        for engine, budget in zip(self._engines, self._before, strict=True):
            engine.set_weight_budget(budget)

    @property
    def total_device_budget(self) -> int:
        """Bytes of all weights: with this budget nothing is copied."""
        return self._sum("total")

    @property
    def minimum_device_budget(self) -> int:
        """Bytes that calls need at least: lower budgets become this."""
        return self._sum("minimum")

    @property
    def resident_bytes(self) -> int:
        """Bytes of the weights that stay on the GPU."""
        return self._sum("resident")

    @property
    def device_budget(self) -> int:
        """Bytes in use: set it to bytes, or to a percentage ("50%"). Each engine gets its share of them."""
        return self._sum("budget")

    @device_budget.setter
    def device_budget(self, budget: int | str) -> None:
        if isinstance(budget, str):
            for engine in self._engines:
                engine.set_weight_budget(budget)
            return
        if isinstance(budget, bool) or not isinstance(budget, int) or budget < 0:
            raise UserError(
                f"a weight budget is a number of bytes or a percentage, not {budget!r}", code="INGOT-U336"
            )
        totals = [engine.weight_memory()["total"] for engine in self._engines]
        everything = max(1, sum(totals))
        for engine, total in zip(self._engines, totals, strict=True):
            engine.set_weight_budget("all" if budget >= everything else str(budget * total // everything))

    def get_automatic_weight_streaming_budget(self) -> int:
        """Bytes that are free on the GPU or taken by these weights, less an eighth; at most all."""
        memories = [engine.weight_memory() for engine in self._engines]
        taken = sum(memory["resident"] for memory in memories)
        free = max((memory["available"] - memory["resident"] for memory in memories), default=0)
        return min(self.total_device_budget, int((free + taken) * _AUTOMATIC_SHARE))

    def _sum(self, name: str) -> int:
        return sum(engine.weight_memory()[name] for engine in self._engines)


def weight_streaming(module: Any) -> WeightStreaming:
    """The weights of what `ingot.compile` or torch.compile(..., backend="ingot") returned, or of an `Engine`: see `WeightStreaming`.

    with ingot.runtime.weight_streaming(compiled) as weights:
        weights.device_budget = weights.total_device_budget // 2  # or "50%"
        y = compiled(x)
    """
    return WeightStreaming(module)


def _engines_of(module: Any) -> list[Any]:
    if isinstance(module, Engine):
        return [module._core]
    from ingot.front import report  # which imports much

    return list(report(module).engines)


def _budget_of(memory: dict[str, int]) -> str:
    return "all" if memory["budget"] >= memory["total"] else str(memory["budget"])
