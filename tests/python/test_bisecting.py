# SPDX-License-Identifier: Apache-2.0
"""ingot.bisect finds the rewrite after which a result is wrong."""

from __future__ import annotations

from pathlib import Path

import ingot
import pytest
import torch
from torch import nn


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    model = Convolutions().eval().requires_grad_(False)
    for layer in model.layers:
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.uniform_(-1, 1)
            layer.running_var.uniform_(0.5, 2)
    return model


X = torch.randn(1, 3, 12, 12, generator=torch.Generator().manual_seed(1))


def built(model: nn.Module, **options: object) -> torch.Tensor:
    return ingot.build(torch.export.export(model, (X,)), cache_built_engines=False, **options)(X)


def test_nothing_is_wrong(model: nn.Module) -> None:
    assert ingot.bisect(model, [X]) is None


def test_the_first_rewrite_that_changes_bits(model: nn.Module, tmp_path: Path) -> None:
    """With no tolerance at all, what rounds differently is found: a batch norm that is folded."""
    culprit = ingot.bisect(model, [X], rtol=0, atol=0)
    assert culprit is not None
    passes, rewrites = map(int, culprit.limit.split("."))
    plain = built(model, bisect_passes=0)
    assert not torch.equal(built(model, bisect_passes=culprit.limit), plain)
    assert torch.equal(built(model, bisect_passes=f"{passes}.{rewrites - 1}"), plain)
    assert culprit.pass_name in str(culprit)
    assert culprit.node in str(culprit)
    assert culprit.builds <= 16
    assert f"disable_passes={culprit.disable}" in str(culprit)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(model, (X,)), path)
    assert ingot.bisect(path, [X], rtol=0, atol=0).limit == culprit.limit


def test_a_node_that_is_turned_off_is_not_found_again(model: nn.Module) -> None:
    """Turning off what is found leads from one rewrite to the next, until the bits are those without passes."""
    found: list[str] = []
    while culprit := ingot.bisect(model, [X], rtol=0, atol=0, disable_passes=found):
        assert culprit.disable not in found
        assert culprit.pass_name
        found.append(culprit.disable)
    assert sum(entry.startswith("fold_batch_norm@") for entry in found) == 2
    assert torch.equal(built(model, disable_passes=found), built(model, bisect_passes=0))


def test_the_last_build_says_whether_that_is_all(model: nn.Module) -> None:
    """Two batch norms are folded: leaving the first as it is does not give the bits without passes, leaving both does."""
    first = ingot.bisect(model, [X], rtol=0, atol=0)
    assert not first.is_only_one
    assert "still wrong" in str(first)
    found = [first.disable]
    while culprit := ingot.bisect(model, [X], rtol=0, atol=0, disable_passes=found):
        found.append(culprit.disable)
        last = culprit
    assert last.is_only_one
    assert "right then" in str(last)


def test_engines_that_are_kept_do_not_matter(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A cached engine has no passes to report."""
    expected = ingot.bisect(model, [X], rtol=0, atol=0)
    program = torch.export.export(model, (X,))
    torch.export.save(program, tmp_path / "model.pt2")
    for limit in ("-1", "0", "1", "2", "3", "4", "5", "6", expected.limit):
        ingot.build(tmp_path / "model.pt2", bisect_passes=limit, engine_cache_dir=str(tmp_path))
    found = ingot.bisect(tmp_path / "model.pt2", [X], rtol=0, atol=0, engine_cache_dir=str(tmp_path))
    assert found.limit == expected.limit
    assert found.node == expected.node


def test_the_search_stays_below_the_callers_limit(model: nn.Module) -> None:
    culprit = ingot.bisect(model, [X], rtol=0, atol=0)
    passes, rewrites = map(int, culprit.limit.split("."))
    assert ingot.bisect(model, [X], rtol=0, atol=0, bisect_passes=f"{passes}.{rewrites - 1}") is None
    assert ingot.bisect(model, [X], rtol=0, atol=0, bisect_passes=passes) is None
    found = ingot.bisect(model, [X], rtol=0, atol=0, bisect_passes=culprit.limit)
    assert found.limit == culprit.limit
    assert found.is_only_one  # the second batch norm is not folded either


def test_a_reference_of_the_caller(model: nn.Module) -> None:
    exact = model.double()(X.double())
    model.float()
    assert ingot.bisect(model, [X], reference=[exact]) is None
    culprit = ingot.bisect(model, [X], reference=[exact + 1])
    assert culprit.pass_name == ""
    assert ingot.bisect(model, [X], reference=[exact[:, 1:]]).pass_name == ""


def test_judgements_that_contradict_each_other(model: nn.Module) -> None:
    answers = iter([False, True] + [False] * 30)
    with pytest.raises(ingot.UserError, match="INGOT-U032"):
        ingot.bisect(model, [X], is_wrong=lambda outputs: next(answers))


def test_an_exception_of_the_judgement_is_raised(model: nn.Module) -> None:
    def fail(outputs: tuple[torch.Tensor, ...]) -> bool:
        raise ValueError("no judgement")

    with pytest.raises(ValueError, match="no judgement"):
        ingot.bisect(model, [X], is_wrong=fail)


def test_wrong_before_any_pass(model: nn.Module) -> None:
    culprit = ingot.bisect(model, [X], is_wrong=lambda outputs: True)
    assert culprit is not None
    assert culprit.pass_name == ""
    assert culprit.disable == ""
    assert "level 0" in str(culprit)


def test_options_are_checked(model: nn.Module) -> None:
    with pytest.raises(ingot.UserError, match="optimisation"):
        ingot.bisect(model, [X], optimisation_level=3)


class Trees(nn.Module):
    def forward(self, pair: dict[str, torch.Tensor], count: int, bias: None) -> dict[str, torch.Tensor]:
        left = torch.complex(pair["left"], pair["right"]) * count
        return {"sum": left + 1.0, "size": (left.real * left.real + left.imag * left.imag).sqrt() + 1.0}


def test_inputs_that_are_not_tensors_and_complex_results() -> None:
    pair = {"left": torch.randn(3, 4), "right": torch.randn(3, 4)}
    expected = Trees()(pair, 2, None)
    outputs = [expected["sum"], expected["size"]]
    assert ingot.bisect(Trees(), [pair, 2, None], reference=outputs) is None
    other = [expected["sum"] + 1j, expected["size"]]  # the real parts agree
    assert ingot.bisect(Trees(), [pair, 2, None], reference=other) is not None
