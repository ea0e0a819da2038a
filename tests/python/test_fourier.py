# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms inside of engines: every function of torch.fft, short-time transforms and models, against eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from accuracy import assert_accurate
from torch import fft, nn

_Function = Callable[[torch.Tensor], torch.Tensor]
# One, primes, powers of two and of other numbers, products with a large prime; below and above what is divided.
LENGTHS = [1, 2, 3, 4, 5, 8, 31, 96, 97, 100, 120, 127, 128, 243, 257, 320, 400, 512, 1000, 1018, 1021, 2048]


def in_engine(function: Callable, *args: torch.Tensor) -> torch.Tensor:
    """The result of one engine that holds the whole function."""
    options = {"require_full_compilation": True, "check_speed": False}
    torch._dynamo.reset()
    return torch.compile(function, backend="ingot", fullgraph=True, dynamic=False, options=options)(*args)


def check(function: _Function, x: torch.Tensor) -> None:
    assert_accurate(in_engine(function, x), function(x), function(x.double()))


def seeded(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(len(shape)).standard_normal(shape)).to(dtype)


def reals(z: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(z.resolve_conj())


def there_and_back(x: torch.Tensor) -> torch.Tensor:
    n = x.shape[-1]
    z = torch.complex(x, x.flip(-1))
    half = fft.rfft(x)
    parts = [fft.fft(z), fft.ifft(z), half, fft.fft(x)]
    return torch.cat([*(reals(part).flatten(-2) for part in parts), fft.irfft(half * half, n)], -1)


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int) -> None:
    check(there_and_back, seeded(3, n))


@pytest.mark.parametrize("n", [7, 240])
def test_wide_numbers(n: int) -> None:
    check(there_and_back, seeded(3, n, dtype=torch.float64))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_norms(norm: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        z = fft.fft2(x, norm=norm)
        return (
            reals(z).flatten()
            + fft.irfft2(fft.rfft2(x, norm=norm), s=x.shape[-2:], norm=norm).repeat_interleave(2).flatten()
        )

    check(function, seeded(2, 6, 9))


FUNCTIONS: dict[str, _Function] = {
    "fft_dim": lambda x: reals(fft.fft(x, dim=0)),
    "fft_padded": lambda x: reals(fft.fft(x, n=11)),
    "fft_cut": lambda x: reals(fft.fft(x, n=3, dim=1)),
    "fftn": lambda x: reals(fft.fftn(x)),
    "fftn_dims": lambda x: reals(fft.fftn(x, dim=(2, 0))),
    "ifftn": lambda x: reals(fft.ifftn(torch.complex(x, x + 1))),
    "rfft_dim": lambda x: reals(fft.rfft(x, dim=1)),
    "rfftn": lambda x: reals(fft.rfftn(x)),
    "rfftn_dims": lambda x: reals(fft.rfftn(x, dim=(2, 0))),
    "irfft_even": lambda x: fft.irfft(torch.complex(x, x + 1)),
    "irfft_odd": lambda x: fft.irfft(torch.complex(x, x + 1), n=9),
    "irfft_padded": lambda x: fft.irfft(torch.complex(x, x + 1), n=20),
    "irfftn": lambda x: fft.irfftn(torch.complex(x, x + 1)),
    "hfft": lambda x: fft.hfft(torch.complex(x, x + 1), n=8),
    "ihfft": lambda x: reals(fft.ihfft(x)),
    "shift": lambda x: reals(fft.ifftshift(fft.fftshift(fft.fft2(x)) * 2)),
    "chain": lambda x: fft.ifft2(fft.fft2(x) * fft.fft2(x.flip(1)).conj()).real,
    "power": lambda x: fft.rfft(x).abs().square().sum(-1),
    "phase": lambda x: torch.polar(fft.rfft(x).abs(), fft.rfft(x).angle()).real,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    check(FUNCTIONS[name], seeded(4, 6, 8))


# torch.export keeps fft_fft and its like whole in files. These need complex values in the middle of a row, which rows do not have.
NOT_IN_FILES = {"hfft", "ihfft", "irfft_odd", "irfft_padded", "shift"}


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in NOT_IN_FILES])
def test_functions_of_files(name: str, tmp_path: Path) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return FUNCTIONS[name](x)

    x = seeded(4, 6, 8)
    torch.export.save(torch.export.export(Model(), (x,)), tmp_path / "model.pt2")
    engine = ingot.build(tmp_path / "model.pt2")
    assert_accurate(engine(x), Model()(x), Model()(x.double()))


@pytest.mark.parametrize("n", [8, 9, 60])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_a_line_does_not_depend_on_others(n: int, value: float) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        half = fft.rfft(x)
        return reals(half), reals(fft.fft(torch.complex(x, x))), fft.irfft(half, n)

    x = seeded(11, n)
    expected = in_engine(function, x)
    for line in (0, 5, 10):
        changed = x.clone()
        changed[line] *= value
        others = torch.arange(11) != line
        for a, b in zip(in_engine(function, changed), expected, strict=True):
            assert torch.equal(a[others], b[others])


def test_one_dim_and_no_batch() -> None:
    check(lambda x: reals(fft.fft(x)), seeded(6))
    check(lambda x: reals(fft.rfft(x)), seeded(300))
    check(lambda x: fft.irfft(torch.complex(x, x), n=300), seeded(151))
    assert in_engine(lambda x: reals(fft.fft(x)), seeded(0, 6)).shape == (0, 6, 2)


def test_the_ignored_parts_of_half_a_spectrum() -> None:
    """The imaginary parts of the first number and of the middle one."""
    for n in (8, 300):

        def function(x: torch.Tensor, n: int = n) -> torch.Tensor:
            return fft.irfft(torch.complex(x, x * 0 + 1), n=n)

        check(function, seeded(2, n // 2 + 1))


def test_a_batch_of_any_size() -> None:
    model = Spectrogram().eval()
    program = torch.export.export(
        model, (seeded(2, 4000),), dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=64)},)
    )
    module = ingot.dynamo.compile(program, require_full_compilation=True, check_speed=False)
    for batch in (1, 2, 7):
        x = seeded(batch, 4000)
        assert_accurate(module(x), model(x), Spectrogram().double()(x.double()))


class Spectrogram(nn.Module):
    def __init__(self, size: int = 400) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(size))
        self.size = size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stft(x, self.size, 160, window=self.window, return_complex=True).abs()


@pytest.mark.parametrize("size", [64, 400, 512])
def test_short_time_transforms(size: int) -> None:
    model, x = Spectrogram(size).eval(), seeded(2, 4000)
    assert_accurate(in_engine(model, x), model(x), Spectrogram(size).double()(x.double()))


SHORT_TIME = [
    {"hop_length": 16, "win_length": 40},
    {"onesided": False},
    {"normalized": True, "center": False},
    {"hop_length": 7, "win_length": 33, "pad_mode": "constant"},
]


@pytest.mark.parametrize("options", SHORT_TIME)
@pytest.mark.parametrize("shape", [(500,), (3, 500)])
def test_options_of_short_time_transforms(options: dict, shape: tuple[int, ...]) -> None:
    window = torch.hann_window(options.get("win_length", 64), dtype=torch.float64)

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return reals(torch.stft(x, 64, window=window.to(x.dtype), return_complex=True, **options))

    x, model = seeded(*shape), Model()
    module = ingot.compile(model, inputs=[x], require_full_compilation=True, check_speed=False)
    assert_accurate(module(x), model(x), model(x.double()))


@pytest.mark.filterwarnings("ignore:stft with return_complex=False")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(500,), (3, 500)])
def test_short_time_transforms_as_reals(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stft(x, 64, window=torch.hann_window(64, dtype=x.dtype), return_complex=False) * 2

    x, model = seeded(*shape).to(dtype), Model()
    module = ingot.compile(model, inputs=[x], require_full_compilation=True, check_speed=False)
    assert_accurate(module(x), model(x), model(x.double()))


def test_the_inverse_of_short_time_transforms() -> None:
    window = torch.hann_window(64)

    def function(x: torch.Tensor) -> torch.Tensor:
        turned = torch.stft(x, 64, 16, window=window.to(x.dtype), return_complex=True) * 0.5
        return torch.istft(turned, 64, 16, window=window.to(x.dtype), length=x.shape[-1])

    x = seeded(2, 640)
    actual = torch.compile(function, backend="ingot")(x)
    assert_accurate(actual, function(x), function(x.double()))


class Mixing(nn.Module):
    """FNet's layer (arXiv:2105.03824): transforms over positions and channels in place of attention."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.layer = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.norm(x + fft.fft(fft.fft(x, dim=-1), dim=-2).real))


def test_a_saved_engine(tmp_path) -> None:
    torch.manual_seed(0)
    model, x = Mixing().eval(), seeded(2, 30, 48)
    module = ingot.compile(model, inputs=[x], require_full_compilation=True)
    ingot.save(module, str(tmp_path / "mixing.ingot"))
    with torch.no_grad():
        expected = model(x)
        exact = Mixing().double()
        exact.load_state_dict(model.state_dict())
        assert_accurate(ingot.load(str(tmp_path / "mixing.ingot"))(x), expected, exact(x.double()))


REFUSED: dict[str, tuple[_Function, str]] = {
    "a large prime": (lambda x: reals(fft.fft(x, n=1031)), "prime factor above 1024"),
    "of another dim": (
        lambda x: fft.irfft2(torch.complex(x, x).mT[:1031], s=(1031, 2)),
        "prime factor above 1024",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_why(name: str) -> None:
    function, reason = REFUSED[name]
    x = seeded(2, 1100)
    with pytest.raises(Exception, match=reason):
        in_engine(function, x)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(function, backend="ingot")(x), function(x))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_lengths_that_are_not_constant(norm: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        half = fft.rfft2(x, norm=norm)
        return fft.irfft2(half * 2.0, s=x.shape[-2:], norm=norm) + fft.fft(x, norm=norm).real

    torch._dynamo.reset()
    options = {"require_full_compilation": True, "check_speed": False}
    compiled = torch.compile(function, backend="ingot", dynamic=True, options=options)
    for shape in ((2, 6, 9), (2, 7, 16), (3, 1024, 5)):
        x = seeded(*shape)
        assert_accurate(compiled(x), function(x), function(x.double()))


def test_transforms_that_torch_runs_faster() -> None:
    x = seeded(512, 2023)  # 7 * 17 * 17
    module = ingot.compile(nn.Sequential(Transform()), inputs=[x])
    assert "has a prime factor above 5" in str(ingot.report(module))
    torch.testing.assert_close(module(x), Transform()(x))


class Transform(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return fft.irfft(fft.rfft(x))
