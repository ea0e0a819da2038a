# SPDX-License-Identifier: Apache-2.0
"""Ray Serve with Ingot inside, on two nodes: answers, errors, cancelled requests, killed replicas, refit, another engine, metrics."""

from __future__ import annotations

from pathlib import Path

from environments import needs_environment, page_of, run

ROOT = Path(__file__).parents[2]


@needs_environment("ray")
def test_a_cluster_of_two_nodes(served: Path) -> None:
    for language, suffix in (("python", "py"), ("sh", "sh")):
        (served / f"page.{suffix}").write_text(page_of("Ray Serve", language))
    output = run("ray", ROOT / "tests/serving/ray_checks.py", folder=served, timeout=400)
    assert "Ray Serve works with Ingot inside\n" in output, output[-8000:]
