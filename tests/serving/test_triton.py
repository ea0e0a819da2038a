# SPDX-License-Identifier: Apache-2.0
"""Triton with Ingot inside, through PyTriton: metadata, answers, errors, refit, engines with state, metrics."""

from __future__ import annotations

from pathlib import Path

from environments import needs_environment, page_of, run

ROOT = Path(__file__).parents[2]


@needs_environment("triton")
def test_the_server(served: Path) -> None:
    for language, suffix in (("python", "py"),):
        (served / f"page.{suffix}").write_text(page_of("Triton", language))
    output = run("triton", ROOT / "tests/serving/triton_checks.py", folder=served, timeout=400)
    assert "Triton works with Ingot inside\n" in output, output[-8000:]
