# SPDX-License-Identifier: Apache-2.0
"""Engines of several CPU levels: each machine runs the best that it has, with the same weights."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from errors.inputs import INGOT
from torch import nn

LEVELS = ["x86-64-v3", "x86-64-v4", "aarch64"]
MOST = "x86-64-v4+vnni+bf16+fp16+amx-tile+amx-bf16+amx-int8"


def model(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4)
    ).eval()


class Counter(nn.Module):
    """A convolution, a batch norm that is folded, and a state."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.norm.running_mean.normal_()
        self.register_buffer("count", torch.ones(2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.count.add_(1)
        return self.norm(self.conv(x)).mean((2, 3)), self.count * 2


def exported(module: nn.Module, *inputs: torch.Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(module.eval(), inputs)


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(5, 32, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def here() -> str:
    """The features of this processor."""
    return (
        ingot.build(exported(nn.ReLU(), torch.ones(2)), cpu="native").target.split()[0].removeprefix("cpu:")
    )


def level_of(engine: ingot.Engine) -> str:
    return engine.target.split()[0].removeprefix("cpu:")


def run(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([INGOT, *map(str, arguments)], capture_output=True, text=True)


def best(here: str) -> str:
    return "x86-64-v4" if here.startswith("x86-64-v4") else "x86-64-v3"


def test_each_level_computes_what_its_own_engine_does(tmp_path: Path, x: torch.Tensor, here: str) -> None:
    program = exported(model(), x)
    built = ingot.build(program, cpu=LEVELS)
    built.save(tmp_path / "all.ingot")
    loaded = ingot.Engine.load(tmp_path / "all.ingot", verify="full")
    assert level_of(built) == level_of(loaded) == best(here)
    assert loaded.inspect()["platforms"] == ["linux-x86-64", "windows-x86-64", "linux-aarch64"]
    assert [row["cpu"] for row in loaded.inspect()["levels"]] == ["x86-64-v4", "x86-64-v3", "aarch64"]
    for level in {"x86-64-v3", best(here)}:
        own = ingot.build(program, cpu=level)
        chosen = ingot.Engine.load(tmp_path / "all.ingot", cpu=level)
        assert level_of(chosen) == level
        assert torch.equal(chosen(x), own(x))
        assert torch.equal(ingot.Engine.from_bytes(built.to_bytes(), cpu=level)(x), own(x))
    torch.testing.assert_close(loaded(x), model()(x))


@pytest.mark.parametrize("spelled", [LEVELS, tuple(reversed(LEVELS)), ",".join(LEVELS), set(LEVELS)])
def test_the_order_of_levels_does_not_matter(spelled: Any, x: torch.Tensor) -> None:
    program = exported(model(), x)
    assert ingot.build(program, cpu=spelled).to_bytes() == ingot.build(program, cpu=LEVELS).to_bytes()


def test_weights_are_stored_once(x: torch.Tensor) -> None:
    program = exported(model(), x)

    def weights(**options: Any) -> int:
        engine = ingot.Engine.from_bytes(ingot.build(program, **options).to_bytes())
        (section,) = [row for row in engine.inspect()["sections"] if row["name"] == "weights"]
        return section["bytes"]

    assert weights(cpu=LEVELS) == weights(cpu="x86-64-v3", keep_original_weights=True)


def test_one_level_alone_is_a_file_as_before(x: torch.Tensor) -> None:
    program = exported(model(), x)
    one = ingot.build(program, cpu=["x86-64-v3"]).to_bytes()
    assert one == ingot.build(program, cpu="x86-64-v3").to_bytes()
    assert one[8] == 6
    assert ingot.build(program, cpu=LEVELS).to_bytes()[8] == 7


def test_states_and_folded_norms(tmp_path: Path, here: str) -> None:
    x = torch.randn(2, 3, 9, 9)
    ingot.build(exported(Counter(), x), cpu=LEVELS).save(tmp_path / "a.ingot")
    for level in {"x86-64-v3", best(here)}:
        torch.manual_seed(0)
        engine = ingot.Engine.load(tmp_path / "a.ingot", cpu=level)
        assert engine(x)[1].tolist() == [4, 4]
        assert engine(x)[1].tolist() == [6, 6]


@pytest.mark.parametrize("keep", [False, True])
def test_saving_and_refits_keep_all_levels(tmp_path: Path, x: torch.Tensor, keep: bool, here: str) -> None:
    first, second = tmp_path / "first.ingot", tmp_path / "second.ingot"
    ingot.build(exported(model(), x), cpu=LEVELS, keep_original_weights=keep).save(first)
    ingot.Engine.load(first).save(second)
    assert first.read_bytes() == second.read_bytes()
    ingot.Engine.load(first, cpu="x86-64-v3").save(second)  # whichever is in use
    assert first.read_bytes() == second.read_bytes()
    engine = ingot.Engine.load(first)
    engine.refit(model(seed=5))
    engine.save(second)
    for level in {"x86-64-v3", best(here)}:
        refitted = ingot.Engine.load(second, verify="full", cpu=level)
        torch.testing.assert_close(refitted(x), model(seed=5)(x))
    assert len(refitted.inspect()["levels"]) == 3
    fresh = ingot.build(exported(model(seed=5), x), cpu=LEVELS, keep_original_weights=keep)
    assert second.read_bytes() == fresh.to_bytes()


def test_engines_without_weights(tmp_path: Path, x: torch.Tensor, here: str) -> None:
    program = exported(model(), x)
    ingot.build(program, cpu=LEVELS, strip_engine_weights=True).save(tmp_path / "a.ingot")
    for level in {"x86-64-v3", best(here)}:
        with pytest.raises(ingot.UserError):
            ingot.Engine.load(tmp_path / "a.ingot", cpu=level)(x)
        engine = ingot.Engine.load(tmp_path / "a.ingot", weights=model(), cpu=level)
        torch.testing.assert_close(engine(x), model()(x))
    engine.save(tmp_path / "b.ingot")  # with these weights
    torch.testing.assert_close(ingot.Engine.load(tmp_path / "b.ingot")(x), model()(x))


def test_weights_of_a_file(tmp_path: Path, x: torch.Tensor, here: str) -> None:
    from safetensors.torch import save_file

    save_file(model().state_dict(), tmp_path / "w.safetensors")
    built = ingot.build(exported(model(), x), cpu=LEVELS, weights_file=str(tmp_path / "w.safetensors"))
    built.save(tmp_path / "a.ingot")
    for level in {"x86-64-v3", best(here)}:
        engine = ingot.Engine.load(tmp_path / "a.ingot", cpu=level)
        torch.testing.assert_close(engine(x), model()(x))
        engine.save(tmp_path / "b.ingot")
        assert (tmp_path / "b.ingot").read_bytes() == (tmp_path / "a.ingot").read_bytes()
    save_file(model(seed=3).state_dict(), tmp_path / "w.safetensors")
    with pytest.raises(ingot.UserError, match="INGOT-U334"):
        ingot.Engine.load(tmp_path / "a.ingot")


def test_immutable_weights(x: torch.Tensor) -> None:
    engine = ingot.build(exported(model(), x), cpu=LEVELS, immutable_weights=True)
    loaded = ingot.Engine.from_bytes(engine.to_bytes(), cpu="x86-64-v3")
    torch.testing.assert_close(loaded(x), model()(x))


def test_compiled_modules_have_all_levels(tmp_path: Path, x: torch.Tensor) -> None:
    compiled = ingot.compile(model(), inputs=[x], cpu=LEVELS)
    torch.testing.assert_close(compiled(x), model()(x))
    ingot.save(compiled, tmp_path / "a.pt2")
    torch.testing.assert_close(ingot.load(tmp_path / "a.pt2")(x), model()(x))


def test_what_torch_compiles(x: torch.Tensor) -> None:
    compiled = torch.compile(model(), backend="ingot", options={"cpu": LEVELS[:2]})
    torch.testing.assert_close(compiled(x), model()(x))


def test_for_windows(tmp_path: Path, x: torch.Tensor) -> None:
    levels = ["x86-64-v3", "x86-64-v4"]
    ingot.cross_compile_for_windows(model(), tmp_path / "a.ingot", inputs=[x], cpu=levels)
    loaded = ingot.load_cross_compiled_exported_program(tmp_path / "a.ingot")
    assert loaded.inspect()["platforms"] == ["linux-x86-64", "windows-x86-64"]
    torch.testing.assert_close(loaded(x), model()(x))
    with pytest.raises(ingot.UserError, match=r"INGOT-U002.*aarch64"):
        ingot.cross_compile_for_windows(model(), tmp_path / "b.ingot", inputs=[x], cpu=LEVELS)


def test_a_level_is_found_in_caches(tmp_path: Path, x: torch.Tensor) -> None:
    """Each has an entry of its own, which builds of one level share."""

    def found(name: str, seed: int, cpu: str) -> list[bool]:
        torch.export.save(exported(model(seed), x), tmp_path / "model.pt2")
        options = ["--cpu", cpu, "--engine-cache-dir", tmp_path / "cache", "--json"]
        done = run("build", tmp_path / "model.pt2", "-o", tmp_path / name, *options)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        return [row["is_from_cache"] for row in report["levels"] or [report]]

    assert found("one.ingot", 0, "x86-64-v3") == [False]
    assert found("all.ingot", 0, ",".join(LEVELS)) == [False, True, False]
    assert found("again.ingot", 0, ",".join(LEVELS)) == [True, True, True]
    assert (tmp_path / "all.ingot").read_bytes() == (tmp_path / "again.ingot").read_bytes()
    assert found("other.ingot", 9, ",".join(LEVELS)) == [True, True, True]  # of the same structure
    for level in ("", "x86-64-v3"):
        engine = ingot.Engine.load(tmp_path / "other.ingot", cpu=level)
        torch.testing.assert_close(engine(x), model(seed=9)(x))


def test_no_level_runs_here(tmp_path: Path, x: torch.Tensor, here: str) -> None:
    if here == MOST:
        pytest.skip("this processor has everything")
    built = ingot.build(exported(model(), x), cpu=["aarch64", MOST])
    built.save(tmp_path / "a.ingot")
    with pytest.raises(ingot.UserError, match="INGOT-U220") as caught:
        ingot.Engine.load(tmp_path / "a.ingot")
    assert f"with {MOST} or aarch64; this one has {here}" in str(caught.value)
    for command in ("inspect", "verify"):
        done = run(command, tmp_path / "a.ingot")
        assert done.stdout.count(f"cannot run here: this processor has {here}") == 2
    done = run("run", tmp_path / "a.ingot")
    assert done.returncode == 1
    assert done.stderr.count("INGOT-U220") == 1
    with pytest.raises(ingot.UserError, match="INGOT-U220"):
        built(x)


@pytest.mark.parametrize(
    ("cpu", "says"),
    [
        ("", "INGOT-U002.*one processor, or several"),
        ([], "INGOT-U002.*one processor, or several"),
        ("x86-64-v3,", "INGOT-U002.*one processor, or several"),
        (",", "INGOT-U002.*one processor, or several"),
        ("x86-64-v3,,aarch64", "INGOT-U002.*one processor, or several"),
        ("x86-64-v3,x86-64-v3", "INGOT-U002.*names the level x86-64-v3 twice"),
        (["native", "aarch64", "native"], "INGOT-U002.*twice.*native is x86-64"),
        (["x86-64-v3", "x86-64-v5"], "INGOT-U121.*there is no CPU feature 'x86-64-v5'"),
        ("x86-64-v3, aarch64", "INGOT-U121"),
        (["x86-64-v3+vnni", "aarch64"], "INGOT-U122"),
    ],
)
def test_wrong_levels(cpu: Any, says: str, x: torch.Tensor) -> None:
    with pytest.raises(ingot.UserError, match=f"(?s){says}"):
        ingot.build(exported(model(), x), cpu=cpu)


def test_levels_are_for_processors(x: torch.Tensor) -> None:
    with pytest.raises(ingot.UserError, match=r"(?s)INGOT-U002.*several levels.*backend is cuda"):
        ingot.build(exported(model(), x), cpu=LEVELS, backend="cuda")
    with pytest.raises(ingot.UserError, match=r"(?s)INGOT-U002.*device"):
        ingot.build(exported(model(), x), cpu=LEVELS, device="cpu:x86-64-v3")
    for target in ("linux-x86-64", "linux-aarch64"):
        with pytest.raises(ingot.UserError, match="INGOT-U002"):
            ingot.build(exported(model(), x), cpu=LEVELS, target=target)


def test_a_level_that_the_engine_has_not(tmp_path: Path, x: torch.Tensor, here: str) -> None:
    program = exported(model(), x)
    ingot.build(program, cpu=LEVELS).save(tmp_path / "a.ingot")
    with pytest.raises(ingot.UserError, match=r"INGOT-U220.*'x86-64-v4\+vnni' was asked for"):
        ingot.Engine.load(tmp_path / "a.ingot", cpu="x86-64-v4+vnni")
    with pytest.raises(
        ingot.UserError, match=rf"INGOT-U220.*with aarch64; this one has {here.replace('+', '.')}"
    ):
        ingot.Engine.load(tmp_path / "a.ingot", cpu="aarch64")
    with pytest.raises(ingot.UserError, match=r"(?s)INGOT-U121.*did you mean 'x86-64-v3'"):
        ingot.Engine.load(tmp_path / "a.ingot", cpu="x86-64-v33")
    ingot.build(program, cpu="x86-64-v3").save(tmp_path / "b.ingot")
    assert level_of(ingot.Engine.load(tmp_path / "b.ingot", cpu="x86-64-v3")) == "x86-64-v3"
    with pytest.raises(ingot.UserError, match=r"INGOT-U220.*with x86-64-v3; the level 'aarch64'"):
        ingot.Engine.load(tmp_path / "b.ingot", cpu="aarch64")


@pytest.fixture
def files(tmp_path: Path, x: torch.Tensor) -> Callable[[str], Path]:
    torch.export.save(exported(model(), x), tmp_path / "model.pt2")

    def build(cpu: str) -> Path:
        path = tmp_path / f"{cpu.replace(',', '-')}.ingot"
        done = run("build", tmp_path / "model.pt2", "-o", path, "--cpu", cpu)
        assert done.returncode == 0, done.stderr
        return path

    return build


def test_the_commands(files: Callable[[str], Path], tmp_path: Path, here: str) -> None:
    path = files(",".join(LEVELS))
    for command in ("inspect", "verify"):
        shown = run(command, path).stdout
        assert f"{best(here)}: " in shown
        assert shown.count("runs here, the best of those that can") == 1
        assert f"cannot run here: this processor has {here}" in shown
        levels = json.loads(run(command, path, "--json").stdout)["levels"]
        assert [row["cpu"] for row in levels] == ["x86-64-v4", "x86-64-v3", "aarch64"]
    outputs = [
        run("run", path, "-o", tmp_path / f"{level}.npy", "--cpu", level)
        for level in {"x86-64-v3", best(here)}
    ]
    assert all(done.returncode == 0 for done in outputs)
    assert run("run", path, "--cpu", "aarch64").returncode == 1
    assert run("bench", path, "--seconds", "0.01", "--cpu", "x86-64-v3").returncode == 0
    assert "the engines are identical" in run("diff", path, path).stdout
    compared = run("diff", path, files("x86-64-v3,x86-64-v4"))
    assert "levels differ" in compared.stdout
    assert "target differ" not in compared.stdout


def test_a_comparison_has_the_kernels_of_all_levels(files: Callable[[str], Path]) -> None:
    def kernels(path: Path, *other: Path) -> dict[str, Any]:
        return json.loads(run("diff", path, *other, "--json").stdout)["kernels"]

    both, low, high = (files(cpu) for cpu in ("x86-64-v3,x86-64-v4", "x86-64-v3", "x86-64-v4"))
    counts = {path: kernels(path, path)["same"] for path in (both, low, high)}
    assert counts[both] == counts[low] + counts[high]
    for path in (low, high):
        compared = kernels(path, both)
        assert compared["same"] == counts[path]
        assert compared["removed"] == []
        assert len(compared["added"]) == counts[both] - counts[path]
    assert all(name.endswith(" (x86-64-v4)") for name in kernels(low, both)["added"])


@pytest.mark.parametrize("cpu", ["x86-64-v3", ["x86-64-v3"], "native"], ids=str)
def test_the_device_cpu_is_the_processor_that_is_named(cpu: Any, x: torch.Tensor) -> None:
    alone = ingot.build(exported(model(), x), cpu=cpu)
    for device in ("cpu", torch.device("cpu"), f"cpu:{level_of(alone)}"):
        assert ingot.build(exported(model(), x), cpu=cpu, device=device).to_bytes() == alone.to_bytes()
    with pytest.raises(ingot.UserError, match="INGOT-U002"):
        ingot.build(exported(model(), x), cpu="x86-64-v3", device="cpu:x86-64-v4")


def test_build_reports_each_level(files: Callable[[str], Path], tmp_path: Path) -> None:
    files("x86-64-v3")
    done = run(
        "build", tmp_path / "model.pt2", "-o", tmp_path / "a.ingot", "--cpu", ",".join(LEVELS), "--json"
    )
    report = json.loads(done.stdout)
    assert [row["target"].split()[0] for row in report["levels"]] == [
        "cpu:x86-64-v4",
        "cpu:x86-64-v3",
        "cpu:aarch64",
    ]
    assert all(row["kernels"] > 0 for row in report["levels"])
    done = run("build", tmp_path / "model.pt2", "-o", tmp_path / "a.ingot", "--cpu", "x86-64-v3,x86-64-v3")
    assert done.returncode == 1
    assert "twice" in done.stderr


def test_signed_engines(files: Callable[[str], Path], tmp_path: Path) -> None:
    path = files(",".join(LEVELS))
    assert run("cache", "keygen", tmp_path / "key").returncode == 0
    assert run("sign", path, "--key", tmp_path / "key").returncode == 0
    trusted = {"trust": "signed", "trusted_keys": str(tmp_path / "key.pub")}
    ingot.Engine.load(path, **trusted)
    ingot.Engine.load(path, cpu="x86-64-v3", **trusted)
    content = bytearray(path.read_bytes())
    (images,) = [
        row for row in ingot.Engine.load(path).inspect()["sections"] if row["name"] == "images of level 3"
    ]
    content[images["offset"]] ^= 1  # of a level that does not run here
    damaged = tmp_path / "damaged.ingot"
    damaged.write_bytes(content)
    with pytest.raises(ingot.UserError, match="section 'images of level 3'"):
        ingot.Engine.load(damaged)
    assert run("verify", damaged).returncode == 1


def test_a_refit_by_the_command(files: Callable[[str], Path], tmp_path: Path, x: torch.Tensor) -> None:
    from safetensors.torch import save_file

    path = files(",".join(LEVELS))
    save_file(model(seed=7).state_dict(), tmp_path / "w.safetensors")
    done = run("refit", path, "--weights", tmp_path / "w.safetensors", "-o", tmp_path / "b.ingot")
    assert done.returncode == 0, done.stderr
    for level in ("", "x86-64-v3"):
        torch.testing.assert_close(ingot.Engine.load(tmp_path / "b.ingot", cpu=level)(x), model(seed=7)(x))


def test_a_file_that_changes(files: Callable[[str], Path], tmp_path: Path) -> None:
    path = files(",".join(LEVELS))
    shutil.copy(path, tmp_path / "copy.ingot")
    engine = ingot.Engine.load(tmp_path / "copy.ingot")
    with (tmp_path / "copy.ingot").open("r+b") as file:
        file.seek(engine.inspect()["sections"][1]["offset"] + 8)
        file.write(b"\xff")
    with pytest.raises(ingot.UserError, match="INGOT-U211"):
        engine.save(tmp_path / "other.ingot")
