# SPDX-License-Identifier: Apache-2.0
"""Engines of `python -m bench --int8`: each quantizes the model by its own tool, weights per channel and activations per tensor.

All calibrate on the same data. Ranges are the smallest and largest numbers wherever the tool lets us choose; OpenVINO's tool has its
own default. OpenVINO keeps f32 beside the integers, as for `bench`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench import engines

Prepared = Callable[[], Any]
Batch = tuple[torch.Tensor, ...]
BATCHES = 8


def calibration_data(case: Any) -> list[Batch]:
    """Inputs like the case's: noise for images, other tokens for tokens, and masks as they are."""
    generator = torch.Generator().manual_seed(11)

    def like(given: torch.Tensor) -> torch.Tensor:
        if given.is_floating_point():
            return torch.randn(given.shape, generator=generator)
        if given.min() == given.max():
            return given
        return torch.randint(0, int(given.max()) + 1, given.shape, generator=generator)

    return [tuple(like(given) for given in case.args) for _ in range(BATCHES)]


def longer(case: Any, tokens: int) -> Any:
    """The case with sequences of `tokens`, if it has shorter ones."""
    if case.args[0].is_floating_point() or case.args[0].shape[1] >= tokens:
        return case
    generator = torch.Generator().manual_seed(2)
    words = torch.randint(0, int(case.args[0].max()) + 1, (1, tokens), generator=generator)
    case.args = (words, *(torch.ones(1, tokens, dtype=each.dtype) for each in case.args[1:]))
    return case


def _calibrated(case: Any) -> torch.nn.Module:
    import ingot

    return ingot.quantize(case.model, calibration_data(case), method="minmax")


def ingot_static(case: Any, threads: int) -> Prepared:
    return engines.ingot_aot(replace(case, model=_calibrated(case)), threads)


def ingot_pt2e(case: Any, threads: int) -> Prepared:
    """What PT2E's quantizer for x86 makes of it."""
    return engines.ingot_aot(replace(case, model=_converted(case)), threads)


def onednn_pt2e(case: Any, threads: int) -> Prepared:
    """The same program as torchao lowers it to oneDNN."""
    from torchao.quantization.pt2e.lowering import lower_pt2e_quantized_to_x86

    torch.set_num_threads(threads)
    lowered = lower_pt2e_quantized_to_x86(_converted(case), case.args)
    return lambda: lowered(*case.args)


def _converted(case: Any) -> torch.nn.Module:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(torch.export.export(case.model, case.args).module(), quantizer)
    for batch in calibration_data(case):
        prepared(*batch)
    return convert_pt2e(prepared)


def _named(names: list[str], batch: Batch) -> dict[str, np.ndarray]:
    return {name: np.ascontiguousarray(value.numpy()) for name, value in zip(names, batch, strict=True)}


def onnxruntime_static(case: Any, threads: int) -> Prepared:
    import onnxruntime
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    names = [given.name for given in onnxruntime.InferenceSession(engines.onnx_bytes(case)).get_inputs()]

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.batches = iter(calibration_data(case))

        def get_next(self) -> dict[str, np.ndarray] | None:
            batch = next(self.batches, None)
            return None if batch is None else _named(names, batch)

    with tempfile.TemporaryDirectory() as folder:
        wide, prepared, narrow = (
            str(Path(folder) / f"{name}.onnx") for name in ("wide", "prepared", "narrow")
        )
        Path(wide).write_bytes(engines.onnx_bytes(case))
        quant_pre_process(wide, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            narrow,
            Reader(),
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        session = onnxruntime.InferenceSession(
            narrow, engines.session_options(threads), providers=["CPUExecutionProvider"]
        )
    feed = _named(names, case.args)
    return lambda: torch.from_numpy(session.run(None, feed)[0])


def openvino_nncf(case: Any, threads: int) -> Prepared:
    import nncf
    import openvino

    model = openvino.convert_model(engines.exported(case))
    data = nncf.Dataset([[value.numpy() for value in batch] for batch in calibration_data(case)])
    is_transformer = not case.args[0].is_floating_point()
    narrow = nncf.quantize(
        model,
        data,
        target_device=nncf.TargetDevice.CPU,
        subset_size=BATCHES,
        model_type=nncf.ModelType.TRANSFORMER if is_transformer else None,
    )
    return engines.openvino_request(narrow, case.args, threads)


ENGINES: dict[str, Callable[[Any, int], Prepared]] = {
    "onnxruntime": onnxruntime_static,
    "openvino": openvino_nncf,
    "onednn_pt2e": onednn_pt2e,
    "ingot_f32": engines.ingot_aot,
    "ingot_pt2e": ingot_pt2e,
    "ingot": ingot_static,
}
