# SPDX-License-Identifier: Apache-2.0
"""Static quantization: programs of PT2E, and `ingot.quantize`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from ingot.quantization.ranges import METHODS
from torch import nn


class Net(nn.Module):
    """A stem of three channels with a batch norm, a residual connection, pooling, a join and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2)
        self.inner = nn.Conv2d(16, 16, 3, padding=1)
        self.last = nn.Conv2d(32, 24, 3, stride=2, padding=1)
        self.head = nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = torch.relu(self.norm(self.stem(x)))
        second = torch.relu(self.inner(first) + first)
        joined = nn.functional.max_pool2d(torch.cat([first, second], 1), 2)
        return self.head(torch.relu(self.last(joined)).mean((2, 3)))


def images(count: int = 4, size: int = 16) -> torch.Tensor:
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(count * size))


def batches(count: int = 6) -> list[torch.Tensor]:
    return [torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(i)) for i in range(count)]


def steps(compiled: Any, *inputs: torch.Tensor) -> str:
    return str(ingot.profile(compiled, *inputs))


def check(program: nn.Module, reference: nn.Module, x: torch.Tensor, allowed: float) -> Any:
    """The engine is as near to the quantized program as one step of rounding, and that is near the model."""
    compiled = ingot.compile(program, inputs=[x], require_full_compilation=True)
    with torch.no_grad():
        quantized, exact = program(x), reference(x)
    step = exact.abs().max() * allowed
    assert (quantized - exact).abs().max() < step
    assert (compiled(x) - quantized).abs().max() < step / 10
    return compiled


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("smoothing", [None, 0.5])
def test_engines_compute_what_the_quantized_program_says(method: str, smoothing: float | None) -> None:
    model = Net().eval()
    program = ingot.quantize(model, batches(), method=method, smoothing_share=smoothing)
    compiled = check(program, model, images(), 0.15)
    assert ingot.report(compiled).precisions == {"u8 with weights of i8": 4}
    text = steps(compiled, images())
    assert text.count("integer_convolution") == 3
    assert text.count("integer_linear") == 1


class Products(nn.Module):
    """Layers as GPT-2 writes them, with matrices [inputs, outputs], and one of many columns."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.matrix = nn.Parameter(torch.randn(32, 48) / 6)
        self.bias = nn.Parameter(torch.randn(48))
        self.shared = nn.Parameter(torch.randn(48, 48) / 7)
        self.head = nn.Linear(48, 20000, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(torch.addmm(self.bias, x.view(-1, 32), self.matrix))
        y = (y @ self.shared).relu() @ self.shared
        z = torch.addmm(self.bias, y, self.shared, beta=2)  # not a layer
        return self.head(y + 0.1 * z)


def test_products_with_matrices_are_layers() -> None:
    model = Products().eval()
    data = [torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(i)) for i in range(4)]
    program = ingot.quantize(model, data)
    compiled = check(program, model, data[0], 0.1)
    assert ingot.report(compiled).precisions == {"u8 with weights of i8": 4}
    assert not any(value.shape == (32, 48) and value.is_floating_point() for value in program.buffers())
    kept = ingot.quantize(model, data, keep_precision="addmm")
    assert ingot.report(ingot.compile(kept, inputs=[data[0]])).precisions == {"u8 with weights of i8": 3}


def test_one_scale_for_each_weight() -> None:
    model = Net().eval()
    program = ingot.quantize(model, batches(), weights="per_tensor")
    scales = [tensor for name, tensor in program.state_dict().items() if name.endswith("_scales")]
    assert len(scales) == 4
    assert all(len(each.unique()) == 1 for each in scales)
    check(program, model, images(), 0.15)


def test_all_processors_compute_the_same_integers() -> None:
    program, x = ingot.quantize(Net().eval(), batches()), images()
    results = [ingot.compile(program, inputs=[x], cpu=cpu)(x) for cpu in ("native", "x86-64-v3")]
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)


class Depthwise(nn.Module):
    """Inverted residuals: limited activations, depthwise windows of several sizes and strides, linear bottlenecks, pooling."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.first = nn.Conv2d(3, 24, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(24, 24, 3, padding=1, groups=24)
        self.narrow = nn.Conv2d(24, 12, 1)
        self.wide = nn.Conv2d(12, 72, 1)
        self.strided = nn.Conv2d(72, 72, (5, 3), stride=2, padding=(2, 1), groups=72)
        self.last = nn.Conv2d(72, 12, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.narrow(nn.functional.relu6(self.depthwise(nn.functional.relu6(self.first(x)))))
        y = nn.functional.max_pool2d(torch.relu(self.wide(x)), 2)
        return self.last(nn.functional.hardtanh(self.strided(y), -0.5, 1.5))


def test_depthwise_convolutions_limits_and_pools() -> None:
    model, x = Depthwise().eval(), images()
    program = ingot.quantize(model, batches())
    check(program, model, x, 0.2)
    plain = ingot.compile(program, inputs=[x], cpu="x86-64-v3", require_full_compilation=True)
    torch.testing.assert_close(plain(x), program(x), rtol=1e-4, atol=0.02)


def test_strict_numerics_compute_in_f32() -> None:
    program, x = ingot.quantize(Net().eval(), batches()), images()
    compiled = ingot.compile(program, inputs=[x], numerics="strict", require_full_compilation=True)
    assert (compiled(x) - program(x)).abs().max() < 0.02
    assert "integer_" not in steps(compiled, x)


def test_the_model_stays_as_it_is() -> None:
    model = Net().eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    x = images()
    expected = model(x)
    ingot.quantize(model, batches(), smoothing_share=0.5)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert torch.equal(model(x), expected)


@pytest.mark.parametrize("weights", ["per_channel", "int4", "float8"])
@pytest.mark.parametrize("change", ["nothing", "double", "zero_grad", "gradients"])
def test_the_model_can_be_trained_and_its_program_converted(weights: str, change: str) -> None:
    """Layers that stay as they are share memory with the model's, and nothing else."""
    model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 64)).eval()
    model[2].bias = model[0].bias  # tied parameters stay tied
    kinds = [(parameter.dtype, parameter.requires_grad) for parameter in model.parameters()]
    x = torch.randn(4, 64)
    options = {} if weights == "per_channel" else {"weights": weights, "inputs": [x]}
    program = ingot.quantize(model, [x] if weights == "per_channel" else None, **options)
    assert not any(parameter.requires_grad for parameter in program.parameters())
    assert len(list(program.parameters())) == 3, "a bias, and the norm's scale and shift"
    memory = {parameter.data_ptr() for parameter in model.parameters()}
    assert all(parameter.data_ptr() in memory for parameter in program.parameters())
    {"nothing": lambda: None, "double": program.double, "zero_grad": program.zero_grad}.get(
        change, lambda: program.requires_grad_(True)
    )()
    assert [(parameter.dtype, parameter.requires_grad) for parameter in model.parameters()] == kinds
    model(x).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_quantized_programs_hold_no_floating_weights() -> None:
    program = ingot.quantize(Net().eval(), batches())
    wide = [
        name
        for name, tensor in program.state_dict().items()
        if tensor.is_floating_point() and tensor.dim() > 1
    ]
    assert wide == []
    assert sum(tensor.dtype == torch.int8 for tensor in program.state_dict().values()) == 4


def test_sizes_may_be_dynamic() -> None:
    model = Net().eval()
    sizes = ingot.Input(min_shape=(1, 3, 8, 8), opt_shape=(4, 3, 16, 16), max_shape=(9, 3, 40, 40))
    program = ingot.quantize(model, batches(), inputs=[sizes])
    compiled = ingot.compile(program, inputs=[sizes])
    for x in (images(1, 8), images(9, 30), images(4, 16)):
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), program(x), atol=0.02, rtol=0)


def test_names_keep_layers_in_f32() -> None:
    model = Net().eval()
    program = ingot.quantize(model, batches(), keep_precision=["conv2d_*", "linear"])
    assert sum(tensor.dtype == torch.int8 for tensor in program.state_dict().values()) == 1
    check(program, model, images(), 0.1)


def test_through_other_ways(tmp_path: Path) -> None:
    """torch.compile, and a .pt2 file without Python."""
    program, x = ingot.quantize(Net().eval(), batches()), images()
    expected = program(x)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(program, backend="ingot")(x), expected, atol=0.02, rtol=0)
    torch.export.save(torch.export.export(program, (x,)), tmp_path / "net.pt2")
    engine = ingot.build(tmp_path / "net.pt2")
    torch.testing.assert_close(torch.from_numpy(engine(x.numpy())), expected, atol=0.02, rtol=0)


def test_keyword_arguments_and_structures() -> None:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128, vocab_size=100
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    data = [
        {"input_ids": torch.randint(0, 100, (2, 12)), "attention_mask": torch.ones(2, 12, dtype=torch.int64)}
        for _ in range(4)
    ]
    program = ingot.quantize(model, data, smoothing_share=0.5)
    compiled = ingot.compile(program, kwarg_inputs=data[0])
    with torch.no_grad():
        exact, rounded, computed = (each(**data[0]).last_hidden_state for each in (model, program, compiled))
    assert torch.nn.functional.cosine_similarity(exact, rounded, dim=-1).min() > 0.99
    assert (rounded - computed).abs().max() < 0.1


def test_caches_replace_calibration(tmp_path: Path) -> None:
    model, path = Net().eval(), tmp_path / "ranges.json"
    first = ingot.quantize(model, batches(), cache=path, smoothing_share=0.5)
    stored = json.loads(path.read_text())
    assert set(stored) == {"program", "ranges", "channels"}

    def unread() -> Any:
        raise AssertionError("the data was read")
        yield

    second = ingot.quantize(model, unread(), inputs=[images()], cache=path, smoothing_share=0.5)
    assert all(torch.equal(second.state_dict()[name], each) for name, each in first.state_dict().items())
    assert second.code == first.code
    for change in (
        lambda: ingot.quantize(model, batches(), cache=path),
        lambda: ingot.quantize(model, batches(), cache=path, smoothing_share=0.5, method="minmax"),
        lambda: ingot.quantize(_changed(model), batches(), cache=path, smoothing_share=0.5),
    ):
        refused(change, "another model, other weights or other options")
    path.write_text("{}")
    refused(lambda: ingot.quantize(model, batches(), cache=path), "is not a calibration cache")
    for other, message in ((tmp_path, "directory"), (tmp_path / "none" / "cache.json", "folder")):
        refused(
            lambda: ingot.quantize(model, unread(), inputs=[images()], cache=other),  # noqa: B023
            message,
        )


def _changed(model: Net) -> Net:
    other = Net().eval()
    other.load_state_dict(model.state_dict())
    other.head.bias.data += 1
    return other


def refused(call: Callable[[], Any], message: str, code: str = "INGOT-U025") -> None:
    with pytest.raises(ingot.UserError, match=message) as caught:
        call()
    assert caught.value.code == code


def test_progress_is_reported_and_can_end_it() -> None:
    rows: list[tuple[str, int, int, float]] = []
    ingot.quantize(Net().eval(), batches(3), smoothing_share=0.5, progress=lambda *row: rows.append(row))
    assert [row[:3] for row in rows] == [
        *(("smooth", i, 3) for i in range(3)),
        *(("calibrate", i, 3) for i in range(3)),
    ]
    assert all(row[3] >= 0 for row in rows if row[1] > 0)
    cancel = lambda *_: False  # noqa: E731
    refused(lambda: ingot.quantize(Net().eval(), batches(), progress=cancel), "cancelled", "INGOT-U010")


def test_data_may_be_a_generator() -> None:
    model = Net().eval()
    expected = ingot.quantize(model, batches(), smoothing_share=0.5)
    assert ingot.quantize(model, iter(batches()), smoothing_share=0.5).code == expected.code


class Endless(torch.utils.data.IterableDataset):
    """It has no length, and says so by an error."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(torch.ones(3, 4, 16))


def test_data_of_all_kinds() -> None:
    loader, tensor = torch.utils.data.DataLoader, torch.ones(3, 4, 16)
    rows: list[int] = []
    for data in (tensor, loader(tensor, batch_size=None), loader(Endless(), batch_size=None)):
        model = nn.Sequential(nn.Linear(16, 4)).eval()
        program = ingot.quantize(model, data, progress=lambda *row: rows.append(row[1]))
        assert (program(tensor[0]) - model(tensor[0])).abs().max() < 0.05
    assert rows == [0, 1, 2] * 3


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
        return self.linear(x * scale)


def test_data_may_be_a_function_that_calls_the_model() -> None:
    model, x = Scaled(), [torch.randn(4, 8) for _ in range(3)]
    scale = torch.tensor(2.0)

    def loop(given: nn.Module) -> None:
        for each in x:
            assert given(each, scale=scale).requires_grad is False

    expected = ingot.quantize(model, [{"x": each, "scale": scale} for each in x])
    program = torch.export.export(model, (x[0],), {"scale": scale})
    for found in (ingot.quantize(model, loop), ingot.quantize(program, lambda given: loop(given))):
        torch.testing.assert_close(found(x[0], scale=scale), expected(x=x[0], scale=scale), rtol=0, atol=0)
    assert not model._forward_pre_hooks
    refused(lambda: ingot.quantize(model, lambda given: None), "no calibration data")


def test_data_may_have_positions_alone() -> None:
    """As the datasets of torch have, which are no Iterable."""

    class Positions:
        def __getitem__(self, position: int) -> torch.Tensor:
            return batches()[position]

    assert isinstance(ingot.quantize(Net().eval(), Positions()), nn.Module)


def test_bad_requests() -> None:
    model = Net().eval()
    refused(lambda: ingot.quantize(model, []), "no calibration data")
    refused(lambda: ingot.quantize(model, [], inputs=[images()]), "no calibration data")
    refused(lambda: ingot.quantize(model, [3]), "a batch of calibration data is an int")
    refused(lambda: ingot.quantize(model, [images(), torch.randn(4, 5)]), "does not take batch 1")
    refused(lambda: ingot.quantize(model, batches(), method="best"), 'not "best"')
    refused(lambda: ingot.quantize(model, batches(), weights="per_row"), 'not "per_row"')
    refused(lambda: ingot.quantize(model, batches(), smoothing_share=2.0), "from 0 to 1")
    refused(lambda: ingot.quantize(model, batches(), smoothing_share="half"), "from 0 to 1")
    refused(
        lambda: ingot.quantize(model, batches(), keep_precision="*"), "no convolution or linear layer of f32"
    )
    refused(lambda: ingot.quantize(model, batches(), keep_precision="conv3d*"), "called so")
    refused(lambda: ingot.quantize(nn.Sequential(nn.ReLU()), batches()), "nothing to quantize")
    endless = [images() * float("inf")]
    refused(lambda: ingot.quantize(model, endless), "finite number")


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn], ids=str)
def test_enabled_precisions_lead_here(dtype: torch.dtype) -> None:
    with pytest.raises(ingot.UserError, match=r"ingot\.quantize"):
        ingot.compile(Net().eval(), inputs=[images()], enabled_precisions={dtype})


def test_programs_of_pt2e(tmp_path: Path) -> None:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    model, x = Net().eval(), images()
    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model, (x,)).module(), quantizer)
    for batch in batches():
        prepared(batch)
    program = convert_pt2e(prepared)
    compiled = check(program, model, x, 0.15)
    assert steps(compiled, x).count("integer_") == 4
