# SPDX-License-Identifier: Apache-2.0
"""libtorch/: TorchScript of `ingot.save` in programs that have torch, but neither Python nor `import ingot`.

The library is built as its page says, against the torch that is installed. Most programs here are Python all the same, which loads
it in place of Ingot.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from small_models import Counter, InParts, mlp, tiny_bert
from torch import nn

_ROOT = Path(__file__).parents[2]


def _run(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)


def _build(source: Path, build: Path, *definitions: str) -> None:
    for command in (
        ["cmake", "-S", source, "-B", build, *(f"-D{definition}" for definition in definitions)],
        ["cmake", "--build", build],
    ):
        done = _run(*command)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix, build = tmp_path_factory.mktemp("prefix"), tmp_path_factory.mktemp("library")
    done = _run("cmake", "--install", _ROOT / "build/release", "--component", "runtime", "--prefix", prefix)
    assert done.returncode == 0, done.stderr
    _build(
        prefix / "share/ingot/libtorch",
        build,
        f"CMAKE_PREFIX_PATH={prefix};{torch.utils.cmake_prefix_path}",
    )
    return build / "libingot_torch.so"


def _save(model: nn.Module, inputs: list[Any], path: Path, **options: Any) -> Any:
    with torch.no_grad():
        compiled = ingot.compile(model.eval(), inputs=inputs, **options)
        ingot.save(compiled, path, output_format="torchscript")
    return compiled


def _python(library: Path, folder: Path, program: str) -> subprocess.CompletedProcess:
    start = f"import torch\ntorch.ops.load_library({str(library)!r})\ntorch.set_grad_enabled(False)\n"
    return _run(sys.executable, "-W", "ignore", "-c", start + textwrap.dedent(program), cwd=folder)


def test_the_example(library: Path, tmp_path: Path) -> None:
    rows = ingot.Input(min_shape=(1, 8), opt_shape=(4, 8), max_shape=(32, 8))
    compiled = _save(mlp(), [rows], tmp_path / "model.pt")
    _build(
        _ROOT / "examples/libtorch",
        tmp_path / "example",
        f"CMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}",
        f"INGOT_TORCH={library}",
    )
    for size in (1, 32):
        done = _run(tmp_path / "example/run", tmp_path / "model.pt", size, 8)
        assert done.returncode == 0, done.stderr
        shape, total = done.stdout.rsplit(" ", 1)
        expected = compiled(torch.ones(size, 8))
        assert shape == str(list(expected.shape))
        assert float(total) == pytest.approx(expected.double().sum().item(), rel=1e-4)
    done = _run(tmp_path / "example/run", tmp_path / "model.pt", 33, 8)
    assert done.returncode == 1
    assert "INGOT-U305" in done.stderr
    assert "outside of the range 1..32" in done.stderr


class Everything(nn.Module):
    """Tensors of several dtypes, layouts and sizes, some of them empty, in and out."""

    def forward(
        self, x: torch.Tensor, half: torch.Tensor, index: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return x.t() + 1, half * 2, index.cumsum(0), mask.logical_not(), x[:, :0] * 2


def test_results_are_those_of_ingot(library: Path, tmp_path: Path) -> None:
    inputs = [
        torch.randn(6, 4).t(), torch.randn(3).bfloat16(), torch.arange(10)[::3], torch.rand(2, 3) > 0.5,
    ]  # fmt: skip
    compiled = _save(Everything(), inputs, tmp_path / "everything.pt")
    ids = torch.randint(0, 100, (2, 7))
    bert = _save(tiny_bert(), [ids], tmp_path / "bert.pt")
    expected = [*compiled(*inputs), *(value for value in bert(ids).values() if value is not None)]
    torch.save(([*inputs, ids], expected), tmp_path / "values.pt")
    done = _python(library, tmp_path, """
        (*inputs, ids), expected = torch.load("values.pt")
        results = torch.jit.load("everything.pt")(*inputs)
        results = [*results, *torch.jit.load("bert.pt")(ids).values()]
        assert len(results) == len(expected)
        for result, wanted in zip(results, expected):
            assert result.dtype == wanted.dtype and torch.equal(result, wanted)
        """)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_threads_share_a_module(library: Path, tmp_path: Path) -> None:
    compiled = _save(mlp(), [torch.randn(2, 8)], tmp_path / "model.pt")
    values = [torch.randn(2, 8) for _ in range(8)]
    torch.save((values, [compiled(value) for value in values]), tmp_path / "values.pt")
    done = _python(library, tmp_path, """
        from concurrent.futures import ThreadPoolExecutor
        values, expected = torch.load("values.pt")
        model = torch.jit.load("model.pt")
        def run(i):
            for _ in range(200):
                assert torch.equal(model(values[i]), expected[i])
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(run, range(8)))
        """)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_each_module_has_its_own_state(library: Path, tmp_path: Path) -> None:
    compiled, x = _save(Counter(), [torch.randn(2, 4)], tmp_path / "model.pt"), torch.randn(2, 4)
    torch.save((x, [compiled(x) for _ in range(3)]), tmp_path / "values.pt")
    done = _python(library, tmp_path, """
        x, expected = torch.load("values.pt")
        first, second = torch.jit.load("model.pt"), torch.jit.load("model.pt")
        for module in (first, second):
            for wanted in expected:
                try:
                    module(torch.ones(9, 9))
                except RuntimeError as error:
                    assert "INGOT-U3" in str(error), error
                torch.testing.assert_close(module(x), wanted, rtol=0, atol=0)
        """)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_memory_of_modules_that_are_gone_is_given_back(library: Path, tmp_path: Path) -> None:
    """Each file holds 4 MB of weights: a hundred that stayed would be 400 MB."""
    _save(nn.Linear(1024, 1024), [torch.randn(1, 1024)], tmp_path / "model.pt")
    done = _python(library, tmp_path, """
        import resource
        x = torch.randn(1, 1024)
        def run(count):
            for _ in range(count):
                torch.jit.load("model.pt")(x)
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        first = run(10)
        assert run(100) - first < 100_000, (first, run(1))
        """)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_what_needs_python_is_refused(library: Path, tmp_path: Path) -> None:
    _save(InParts(counts=False), [torch.randn(3, 4)], tmp_path / "parts.pt")
    done = _python(library, tmp_path, f"""
        import sys
        sys.path.append({str(Path(__file__).parent)!r})
        import lacking
        torch.jit.load("parts.pt")(torch.randn(3, 4))
        """)  # fmt: skip
    assert "require_full_compilation=True" in done.stderr
    done = _python(library, tmp_path, """
        torch.ops.ingot.run([torch.ones(2)], torch.zeros(100, dtype=torch.uint8), "")
        """)  # fmt: skip
    assert "INGOT-U20" in done.stderr
    done = _python(library, tmp_path, 'torch.ops.ingot.run([torch.ones(2)], torch.zeros(100), "")')
    assert "dense tensor of uint8" in done.stderr
