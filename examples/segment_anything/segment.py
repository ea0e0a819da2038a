# SPDX-License-Identifier: Apache-2.0
"""Segment Anything 2: the image encoder and the mask decoder as two engines, beside eager. Weights are random.

    python examples/segment_anything/segment.py [--small] [--runs 5]

An image is encoded once; each further click of a user runs the mask decoder alone. --small: a model of 64 x 64 pixels for a quick look.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import ingot
import torch
from torch import nn
from transformers import Sam2Config, Sam2Model

# The class names of their configurations follow from the fields.
SMALL = {
    "vision_config": {
        "backbone_config": {
            "model_type": "sam2_hiera_det_model", "hidden_size": 16, "num_attention_heads": 1, "image_size": [64, 64],
            "blocks_per_stage": [1, 1, 2, 1], "embed_dim_per_stage": [16, 32, 64, 128],
            "num_attention_heads_per_stage": [1, 2, 4, 8], "window_size_per_stage": [8, 4, 4, 2],
            "global_attention_blocks": [3],
        },
        "backbone_channel_list": [128, 64, 32, 16], "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]],
        "fpn_hidden_size": 32,
    },
    "prompt_encoder_config": {"hidden_size": 32, "image_size": 64, "patch_size": 16},
    "mask_decoder_config": {
        "hidden_size": 32, "mlp_dim": 64, "num_attention_heads": 4, "iou_head_hidden_dim": 32,
    },
}  # fmt: skip


class ImageEncoder(nn.Module):
    def __init__(self, model: Sam2Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.model.get_image_embeddings(pixels))


class MaskDecoder(nn.Module):
    def __init__(self, model: Sam2Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: tuple[torch.Tensor, ...], points: torch.Tensor, labels: torch.Tensor):
        result = self.model(image_embeddings=list(features), input_points=points, input_labels=labels)
        return result.pred_masks, result.iou_scores


def make_model(small: bool) -> Sam2Model:
    torch.manual_seed(0)
    return Sam2Model(Sam2Config(**SMALL) if small else Sam2Config()).eval()


def compile_part(part: nn.Module, inputs: tuple) -> Callable:
    return ingot.dynamo.compile(torch.export.export(part, inputs), require_full_compilation=True)


def milliseconds(call: Callable, inputs: tuple, runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call(*inputs)
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


@torch.no_grad()
def segment(small: bool, runs: int) -> dict[str, tuple[float, float, float]]:
    """Part -> milliseconds of eager and of the engine, and the largest difference in units of the result's RMS."""
    model = make_model(small)
    side = model.config.prompt_encoder_config.image_size
    features: tuple = (torch.randn(1, 3, side, side),)
    rows = {}
    for part in (ImageEncoder(model), MaskDecoder(model)):
        inputs = features if isinstance(part, ImageEncoder) else (
            features, torch.tensor([[[[side / 3, side / 2], [side / 2, side / 4]]]]), torch.tensor([[[1, 0]]]))  # fmt: skip
        compiled = compile_part(part, inputs)
        expected, result = part(*inputs), compiled(*inputs)
        difference = max(
            float((a - b).abs().max() / b.square().mean().sqrt())
            for a, b in zip(result, expected, strict=True)
        )
        rows[type(part).__name__] = (
            milliseconds(part, inputs, runs), milliseconds(compiled, inputs, runs), difference)  # fmt: skip
        features = tuple(result)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args()
    for name, (eager, engine, difference) in segment(chosen.small, chosen.runs).items():
        print(
            f"{name}: eager {eager:.2f} ms, engine {engine:.2f} ms, largest difference {difference:.1e} of the RMS"
        )


if __name__ == "__main__":
    main()
