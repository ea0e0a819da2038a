# SPDX-License-Identifier: Apache-2.0
"""MLServer with Ingot inside, without and with worker processes: metadata, answers, errors, metrics, refit, unload and reload."""

from __future__ import annotations

from pathlib import Path

from environments import needs_environment, page_of, run

ROOT = Path(__file__).parents[2]


@needs_environment("mlserver")
def test_the_server(served: Path) -> None:
    for language, suffix in (("json", "json"), ("sh", "sh")):
        (served / f"page.{suffix}").write_text(page_of("MLServer", language))
    output = run("mlserver", ROOT / "tests/serving/mlserver_checks.py", folder=served, timeout=400)
    assert "MLServer works with Ingot inside\n" in output, output[-8000:]
