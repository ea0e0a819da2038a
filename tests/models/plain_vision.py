# SPDX-License-Identifier: Apache-2.0
"""Small image and video models in plain torch. MODELS: name -> class and the tensors that it takes, as in architectures.toml."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from models.vision import UNet


class MixerBlock(nn.Module):
    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.tokens = nn.Sequential(nn.Linear(patches, 32), nn.GELU(), nn.Linear(32, patches))
        self.channels = nn.Sequential(nn.Linear(width, 96), nn.GELU(), nn.Linear(96, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norms[1](x))


class MlpMixer(nn.Module):
    """Tolstikhin et al. 2021, arXiv 2105.01601."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 48, 8, 8)
        self.blocks = nn.Sequential(MixerBlock(16, 48), MixerBlock(16, 48), nn.LayerNorm(48))
        self.head = nn.Linear(48, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.patches(image).flatten(2).transpose(1, 2)).mean(1))


class VideoConvolutions(nn.Module):
    """3-D convolutions and pooling over time, as C3D has them."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv3d(3, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d((1, 2, 2)),
            nn.Conv3d(8, 16, 3, padding=1, stride=(2, 1, 1)), nn.ReLU(), nn.AvgPool3d(2), nn.AdaptiveAvgPool3d(1),
        )  # fmt: skip
        self.head = nn.Linear(16, 5)

    def forward(self, video: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(video).flatten(1))


class Generator(nn.Module):
    """A DCGAN's generator."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in ((32, 32), (32, 16), (16, 8)):
            stride, padding = (1, 0) if not layers else (2, 1)
            layers += [nn.ConvTranspose2d(inputs, outputs, 4, stride, padding, bias=False)]
            layers += [nn.BatchNorm2d(outputs), nn.ReLU(True)]
        self.body = nn.Sequential(*layers, nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh())

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.body(noise[:, :, None, None])


class DiffusionBlock(nn.Module):
    """A residual block with an embedded time step, and attention over pixels, as diffusion U-Nets have them."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, 2 * width))
        self.norms = nn.ModuleList(nn.GroupNorm(4, width) for _ in range(3))
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.qkv, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, image: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        half = self.width // 2
        rates = torch.exp(-torch.arange(half, device=step.device) * (9.21 / half))
        angles = step[:, None].to(rates.dtype) * rates
        scale, shift = self.time(torch.cat([angles.sin(), angles.cos()], -1).to(image.dtype)).chunk(2, -1)
        hidden = self.first(functional.silu(self.norms[0](image)))
        hidden = self.norms[1](hidden) * (1 + scale[:, :, None, None]) + shift[:, :, None, None]
        image = image + self.second(functional.silu(hidden))
        batch, width, rows, columns = image.shape
        query, key, value = self.qkv(self.norms[2](image)).reshape(batch, 3, 4, width // 4, -1).unbind(1)
        mixed = functional.scaled_dot_product_attention(*(x.transpose(-1, -2) for x in (query, key, value)))
        return image + self.out(mixed.transpose(-1, -2).reshape(batch, width, rows, columns))


class Detector(nn.Module):
    """A single-shot detector with its post-processing: boxes of anchors, the best of them, and which survive suppression."""

    def __init__(self, classes: int = 4, kept: int = 20) -> None:
        super().__init__()
        self.classes, self.kept = classes, kept
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 4, 1), nn.ReLU(), nn.Conv2d(16, 5 + classes, 3, 2, 1))
        rows, columns = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
        self.register_buffer("centers", torch.stack([columns, rows], -1).reshape(-1, 2))

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self.body(image).flatten(2).transpose(1, 2)[0]
        centers = self.centers + found[:, :2].sigmoid()
        sizes = found[:, 2:4].clamp(-2, 2).exp()
        boxes = torch.cat([centers - sizes / 2, centers + sizes / 2], -1)
        scores = found[:, 4:5].sigmoid() * found[:, 5:].softmax(-1)
        best, label = scores.max(-1)
        best, order = best.topk(self.kept)
        boxes, label = boxes[order], label[order]
        return boxes, label, best, self._survivors(boxes)

    def _survivors(self, boxes: torch.Tensor) -> torch.Tensor:
        """Those that no better one overlaps by half; boxes are sorted by their scores."""
        low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
        high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        shared = (high - low).clamp(min=0).prod(-1)
        areas = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
        overlaps = (shared / (areas[:, None] + areas[None] - shared)).triu(diagonal=1) > 0.5
        alive = torch.ones(len(boxes), dtype=torch.bool, device=boxes.device)
        for row in range(self.kept):
            alive = alive & ~(overlaps[row] & alive[row])
        return alive


class SpatialTransformer(nn.Module):
    """Jaderberg et al. 2015, arXiv 1506.02025."""

    def __init__(self) -> None:
        super().__init__()
        self.locate = nn.Sequential(
            nn.Conv2d(1, 8, 7), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 11 * 11, 6), nn.Tanh()
        )
        self.head = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
        self.head(torch.zeros(1, 1, 28, 28))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        grid = functional.affine_grid(
            self.locate(image).view(-1, 2, 3), list(image.shape), align_corners=False
        )
        return self.head(functional.grid_sample(image, grid, align_corners=False))


class SuperResolution(nn.Module):
    """Sub-pixel convolution, added to a bicubic upscaling."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 5, padding=2), nn.PReLU(16), nn.Conv2d(16, 27, 3, padding=1, padding_mode="reflect"),
            nn.PixelShuffle(3),
        )  # fmt: skip

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        upscaled = functional.interpolate(image, scale_factor=3, mode="bicubic", align_corners=False)
        return (upscaled + self.body(image)).clamp(-1, 1)


class DenseNet(nn.Module):
    """Huang et al. 2016, arXiv 1608.06993: each layer reads the results of all before it."""

    def __init__(self, growth: int = 8, layers: int = 4) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(16 + k * growth), nn.ReLU(), nn.Conv2d(16 + k * growth, growth, 3, padding=1)
            )
            for k in range(layers)
        )
        self.head = nn.Linear(16 + layers * growth, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        results = [self.stem(image)]
        for layer in self.layers:
            results.append(layer(torch.cat(results, 1)))
        return self.head(functional.adaptive_avg_pool2d(torch.cat(results, 1), 1).flatten(1))


class ShuffleNet(nn.Module):
    """Grouped convolutions with shuffled channels and squeeze-and-excitation."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 24, 3, 2, 1)
        self.grouped = nn.Conv2d(24, 24, 1, groups=3)
        self.depthwise = nn.Conv2d(24, 24, 3, padding=1, groups=24)
        self.squeeze = nn.Sequential(nn.Linear(24, 6), nn.ReLU(), nn.Linear(6, 24), nn.Hardsigmoid())
        self.head = nn.Linear(24, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = functional.hardswish(self.first(image))
        x = functional.relu(self.depthwise(functional.channel_shuffle(self.grouped(x), 3)))
        x = x * self.squeeze(x.mean((2, 3)))[:, :, None, None]
        return self.head(functional.max_pool2d(x, 3, 2).amax((2, 3)))


class VectorQuantizer(nn.Module):
    """An autoencoder whose latents are replaced by their nearest entries of a codebook."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Conv2d(3, 8, 4, 4)
        self.codes = nn.Embedding(16, 8)
        self.decode = nn.ConvTranspose2d(8, 3, 4, 4)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        latents = self.encode(image).permute(0, 2, 3, 1)
        nearest = torch.cdist(latents.flatten(0, 2), self.codes.weight).argmin(-1)
        chosen = self.codes(nearest).view(latents.shape)
        return self.decode(chosen.permute(0, 3, 1, 2)), nearest


class ConvLstm(nn.Module):
    """A recurrent cell whose products are convolutions, over a short video."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.width = width
        self.gates = nn.Conv2d(3 + width, 4 * width, 3, padding=1)

    def forward(self, video: torch.Tensor) -> torch.Tensor:
        hidden = video.new_zeros(video.shape[0], self.width, *video.shape[3:])
        cell = hidden
        for frame in video.unbind(1):
            into, forget, out, change = self.gates(torch.cat([frame, hidden], 1)).chunk(4, 1)
            cell = forget.sigmoid() * cell + into.sigmoid() * change.tanh()
            hidden = out.sigmoid() * cell.tanh()
        return hidden


class Capsules(nn.Module):
    """Sabour et al. 2017, arXiv 1710.09829: routing by agreement."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 32, 9, 2)
        self.votes = nn.Parameter(torch.randn(1, 400, 5, 6, 8) / 3)

    @staticmethod
    def _squash(x: torch.Tensor) -> torch.Tensor:
        square = x.square().sum(-1, keepdim=True)
        return x * square / ((1 + square) * (square + 1e-8).sqrt())

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        poses = self._squash(self.first(image).flatten(2).reshape(image.shape[0], -1, 8))
        votes = (self.votes @ poses[:, :, None, :, None]).squeeze(-1)
        weights = votes.new_zeros(votes.shape[:3])
        for _ in range(3):
            result = self._squash((weights.softmax(-1).unsqueeze(-1) * votes).sum(1))
            weights = weights + (votes * result[:, None]).sum(-1)
        return result.norm(dim=-1)


MODELS = {
    "capsules": (Capsules, {"image": "f32[1,1,28,28]"}),
    "conv_lstm": (ConvLstm, {"video": "f32[1,4,3,16,16]"}),
    "dense_net": (DenseNet, {"image": "f32[1,3,32,32]"}),
    "detector": (Detector, {"image": "f32[1,3,64,64]"}),
    "diffusion_block": (DiffusionBlock, {"image": "f32[2,32,8,8]", "step": "i64[2]<1000"}),
    "gan_generator": (Generator, {"noise": "f32[2,32]"}),
    "mlp_mixer": (MlpMixer, {"image": "f32[1,3,32,32]"}),
    "shuffle_net": (ShuffleNet, {"image": "f32[1,3,32,32]"}),
    "spatial_transformer": (SpatialTransformer, {"image": "f32[1,1,28,28]"}),
    "super_resolution": (SuperResolution, {"image": "f32[1,3,16,16]"}),
    "u_net": (lambda: UNet(width=8, depth=2), {"x": "f32[1,3,32,32]"}),
    "vector_quantizer": (VectorQuantizer, {"image": "f32[1,3,32,32]"}),
    "video_convolutions": (VideoConvolutions, {"video": "f32[1,3,4,16,16]"}),
}
