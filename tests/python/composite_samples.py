# SPDX-License-Identifier: Apache-2.0
"""Arguments of overloads in the table of composites for which torch's operator database has no samples."""

from __future__ import annotations

import math
from typing import Any

import torch


def _vectors(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(shape, generator=generator) for shape in shapes]


def _layer(width: int) -> list[torch.Tensor]:
    """Parameters of a layer of an encoder, in the order of its schema."""
    return _vectors(
        (3 * width, width),
        (3 * width,),
        (width, width),
        (width,),
        *[(width,)] * 4,
        (6, width),
        (6,),
        (width, 6),
        (width,),
    )


def by_hand(name: str) -> list[tuple[Any, ...]]:
    return {
        **_of_layers(),
        **_of_losses(),
        **_of_functions(),
        **_of_products(),
        **_of_signals(),
        **_of_shapes(),
    }.get(name, [])


def _of_layers() -> dict[str, list[tuple[Any, ...]]]:
    x, y, image = _vectors((3, 4), (3, 4), (1, 2, 4, 5))
    (sequence,) = _vectors((2, 5, 8))
    whole = torch.tensor([[True, False], [True, True]])
    classes, ignored = torch.tensor([2, -100, 0]), torch.tensor([[[0, 1, 1, -100, 0]] * 4])
    cell = [(*_vectors((12, 4), (12, 3)), *biases) for biases in (_vectors((12,), (12,)), (None, None))]
    return {
        "_native_multi_head_attention": [
            (sequence, sequence, sequence, 8, 2, *_layer(8)[:4], None, False),
            (
                sequence,
                sequence,
                sequence,
                8,
                2,
                *_layer(8)[:4],
                torch.tensor([[False] * 5, [False] * 3 + [True] * 2]),
                False,
                True,
                1,
            ),
        ],
        "_safe_softmax": [
            (torch.where(whole, 0.5, -math.inf) * torch.tensor([[1.0], [1.0]]), 1),
            (x, 0, torch.float64),
        ],
        "_transformer_encoder_layer_fwd": [
            (sequence, 8, 2, *_layer(8)[:4], *flags, 1e-5, *_layer(8)[4:])
            for flags in ((False, False), (False, True), (True, False))
        ],
        "cross_entropy_loss": [
            (x, classes),
            (x, classes, y[0], 0, -100, 0.2),
            (x, classes, y[0], 1, 2, 0.1),
            (image[:, :, :, :5], ignored[:, :4], None, 2),
            (x[0], classes[0]),
            (x, y),
        ],
        "gru_cell": [
            (x, torch.rand(3, 4), torch.rand(12, 4), torch.rand(12, 4)),
            (x, y, *_vectors((12, 4), (12, 4), (12,), (12,))),
        ],
        "huber_loss": [(x, y), (x, 3 * y, 0, 0.5)],
        "kl_div": [(x.log(), y), (x.log(), y.log(), 2, True), (x, y * 0, 0)],
        "lstm_cell": [(x, [y[:, :3], y[:, 1:]], *weights) for weights in cell],
        "nll_loss": [(x, classes), (x, classes, y[0], 0, 2), (x[0], classes[0], None, 2)],
        "nll_loss_nd": [(image, ignored), (x, classes, y[0])],
        "soft_margin_loss": [(x - 0.5, (y - 0.5).sign(), reduction) for reduction in (0, 1, 2)],
        "rnn_relu_cell": [(x, y[:, :3], torch.rand(3, 4) - 0.5, torch.rand(3, 3))],
        "rnn_tanh_cell": [(x, y[:, :3], torch.rand(3, 4) - 0.5, torch.rand(3, 3))],
    }


def _of_losses() -> dict[str, list[tuple[Any, ...]]]:
    x, y, image = _vectors((3, 4), (3, 4), (1, 2, 4, 5))
    signs = (y - 0.5).sign()
    return {
        "cosine_embedding_loss": [(x - 0.5, y - 0.5, signs[:, 0], 0.1), (x[0], y[0], signs[0, 0], 0.0, 0)],
        "margin_ranking_loss": [(x, y, signs), (x, y, signs, 0.3, 0)],
        "multilabel_margin_loss_forward": [
            (x - 0.5, torch.tensor([[2, 0, -1, 3], [-1, 0, 0, 0], [1, 3, 0, 2]]), reduction)
            for reduction in range(3)
        ],
        "nll_loss2d": [
            (image, torch.tensor([[[0, 1, 1, -100, 0]] * 4])),
            (image, torch.ones(1, 4, 5).long(), y[0, :2], 2),
        ],
        "poisson_nll_loss": [
            (x, 3 * y, is_log, is_full, 1e-8, 1) for is_log in (True, False) for is_full in (True, False)
        ],
    }


def _of_signals() -> dict[str, list[tuple[Any, ...]]]:
    """Fourier transforms of reals, and windows."""
    x, volume = _vectors((3, 4), (2, 4, 5))
    norms = (None, "ortho", "forward", "backward")
    lines = [(x,), (volume, 7, 1), *((volume, 3, -1, norm) for norm in norms), (torch.arange(6),)]
    planes = [(x,), (volume, [3, 6]), *((volume, None, [0, -1], norm) for norm in norms)]
    windows = [(5,), (1,), (8,)]
    periods = [(5, True), (6, False), (2, False)]
    return {
        **{f"fft_{name}": lines for name in ("fft", "rfft")},
        **{f"fft_{name}": planes for name in ("fft2", "rfft2")},
        **{f"fft_{name}": [*planes, (volume, [4], None)] for name in ("fftn", "rfftn")},
        **{f"fft_{name}": [(x,), (volume, [1]), (volume, [0, -1])] for name in ("fftshift", "ifftshift")},
        **{f"fft_{name}": [(5,), (6, 0.5)] for name in ("fftfreq", "rfftfreq")},
        **{f"{name}_window": windows for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")},
        **{
            f"{name}_window.periodic": periods
            for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")
        },
        "hamming_window.periodic_alpha": [(5, True, 0.6), (6, False, 0.3)],
        "hamming_window.periodic_alpha_beta": [(5, True, 0.6, 0.3), (6, False, 0.3, 0.7)],
        "kaiser_window.beta": [(5, True, 3.0), (6, False, 8.0)],
        "stft.center": [(volume[0].flatten(), 8, 4, 6, None, True, "reflect", True, None, True)],
    }


def _of_shapes() -> dict[str, list[tuple[Any, ...]]]:
    x, y, square, image, volume = _vectors((3, 4), (3, 4), (4, 4), (1, 2, 4, 6), (1, 2, 4, 6, 4))
    pooled, places = torch.nn.functional.max_pool2d(image, 2, return_indices=True)
    pooled_3d, places_3d = torch.nn.functional.max_pool3d(volume, 2, return_indices=True)
    return {
        "_add_relu.Tensor": [(x - 0.5, y - 0.5), (x - 0.9, y, 2)],
        "_addmm_activation": [(x[:, :3], x, y.mT), (x[:, :3], x - 0.5, y.mT, 0.5, 2, True)],
        "_reshape_copy": [(x, [2, 6])],
        "cartesian_prod": [([x[0], y[:, 0]],), ([x[0]],), ([x[0], y[0], x[:, 1]],)],
        "chain_matmul": [([x, y.mT, x],), ([x],)],
        "detach_copy": [(x,)],
        "linalg_pinv": [(x, 0.01), (square + square.mT, 1e-3, True)],
        "linalg_tensorinv": [(torch.eye(6).reshape(2, 3, 6) + 0.1, 2)],
        "max_unpool2d": [(pooled, places, [4, 6]), (pooled[0], places[0], [4, 6])],
        "max_unpool3d": [(pooled_3d, places_3d, [4, 6, 4], [2, 2, 2], [0, 0, 0])],
        "nuclear_norm": [(x,)],
        "nuclear_norm.dim": [(image, [1, 3])],
        "pad_sequence": [
            ([x, y[:1], x[:2]], batch_first, 0.5, side)
            for batch_first, side in ((True, "right"), (False, "left"))
        ],
        "slow_conv3d": [(volume, torch.rand(3, 2, 2, 2, 2), [2, 2, 2], torch.rand(3), [1, 2, 1], [1, 0, 1])],
        "special_polygamma": [(1, x + 1), (0, x + 1)],
        "thnn_conv2d": [(image, torch.rand(3, 2, 2, 2), [2, 2], None, [1, 2], [1, 0])],
    }


def _of_functions() -> dict[str, list[tuple[Any, ...]]]:
    x, y, matrix, image, volume = _vectors((3, 4), (3, 4), (2, 3), (1, 2, 4, 5), (1, 2, 4, 5, 3))
    whole = torch.tensor([[True, False], [True, True]])
    return {
        "_conj_copy": [(torch.complex(x, y),)],
        "_cdist_forward": [(x, y, 2.0, None), (image, volume[..., 0], 1.0, None)],
        "_is_all_true": [(whole,), (whole[:, 0],)],
        "_is_any_true": [(whole,), (~whole[:, 0],)],
        "_prelu_kernel": [(x - 0.5, y[:1]), (image - 0.5, image[:, :, :1, :1])],
        "_reshape_alias": [(x, [4, 3], [3, 1])],
        "_pdist_forward": [(x, 2.0), (x, 1.0)],
        "_unsafe_view": [(x, [2, 6])],
        "_weight_norm": [(x, y[:, :1]), (x, y[:1], 1)],
        "_weight_norm_interface": [(x, y[:, :1].clone()), (x, y[:1].clone(), 1)],
        "_weight_int8pack_mm": [
            (
                torch.rand(32, 64).bfloat16(),
                torch.randint(-9, 9, (32, 64), dtype=torch.int8),
                torch.rand(32).bfloat16(),
            )
        ],
        "affine_grid_generator": [(matrix[None], [1, 2, 4, 3], corners) for corners in (False, True)]
        + [(torch.rand(2, 3, 4), [2, 1, 3, 1, 2], False)],
        "block_diag": [([x, y[0], matrix],), ([x],)],
        "broadcast_tensors": [([x, y[:1], x[0, 0]],)],
        "cdist": [(x, y, 2.0, None), (x, matrix.new_ones(5, 4), 1.0)],
        "clip": [(x, 0.2, 0.6), (x, None, 0.5)],
        "col2im": [
            (torch.rand(2, 12, 4), [4, 5], [2, 3], [1, 1], [0, 0], [2, 2]),
            (torch.rand(12, 12), [4, 5], [2, 3], [2, 1], [1, 0], [1, 1]),
        ],
        "copy": [(x, y[0]), (x, torch.arange(4))],
        "embedding_renorm": [
            (3 * x, torch.tensor([2, 0]), 1.5, 2.0),
            (3 * x, torch.tensor([[2, 2]]), 1.0, 1.0),
        ],
        "eye": [(3,)],
        "eye.m": [(3, 2), (2, 4, torch.int64)],
        "fill.Tensor": [(x, y[0, 0]), (whole, x[0, 0])],
        "frobenius_norm.dim": [(x, [1], True), (x, [0, 1])],
        "isin.Tensor_Scalar": [(whole.long(), 1), (whole.long(), 1, False, True)],
        "lift": [(x,)],
        "lift_fresh_copy": [(x,)],
        "linalg_matmul": [(matrix, x), (x[0], image.mT)],
        "matrix_H": [(x,)],
        "logit": [(3 * y - 1, limit) for limit in (None, 0.0, 0.3, 0.5, 0.6, 1.0, 1.5, -0.2)],
        "meshgrid": [([x[0], y[:, 0]],), ([x[0]],)],
        "moveaxis.int": [(image, 1, -1)],
        "movedim.int": [(image, 1, -1), (image, 3, 0)],
        "norm_except_dim": [(x, 2, 0), (x, 1, 1), (x[0], 2, 0), (x, 2, -1)],
        "norm.ScalarOpt_dim_dtype": [(x, None, [1], False, torch.float64)],
        "norm.ScalarOpt_dtype": [(x, 3, torch.float64)],
        "numpy_T": [(x,), (image,)],
        "polar": [(x, y)],
        "prims.amax": [(x, [0]), (x, None)],
        "prims.amin": [(x, [1]), (x, None)],
        "prims.broadcast_in_dim": [(x, [3, 2, 4], [0, 2]), (x[0], [4], [0])],
        "prims.clone": [(x,)],
        "prims.full": [([2, 3], 1.5, dtype, "cpu", False) for dtype in (torch.float32, torch.int64)],
        "prims.iota": [(5, 1, 3, torch.int64, "cpu", False), (4, 0, -1, torch.int32, "cpu", False)],
        "prims.prod": [(x, [0]), (x, None), (image, [3, 1]), (whole.int(), [0])],
        "prims.reshape": [(x, [2, 6])],
        "prims.squeeze": [(image, [0])],
        "prims.sum": [(x, [0]), (x, None)],
        "prims.transpose": [(image, [0, 2, 3, 1])],
        "prims.view_of": [(x,)],
        "reflection_pad1d": [(x, [1, 2])],
        "reflection_pad2d": [(image, [1, 2, 3, 0])],
        "reflection_pad3d": [(volume, [1, 2, 3, 0, 1, 1])],
        "replication_pad1d": [(x, [1, 2])],
        "replication_pad2d": [(image, [1, 2, 3, 0])],
        "replication_pad3d": [(volume, [1, 2, 3, 0, 1, 1])],
        "tensordot": [(x, y, [1], [-1]), (x, y, [0, 1], [0, 1]), (image, matrix, [1], [0])],
        "type_as": [(x, whole), (whole, x)],
        "unsafe_split_with_sizes": [(x, [1, 3], 1)],
        "zero": [(x,), (whole,)],
    }


def _of_products() -> dict[str, list[tuple[Any, ...]]]:
    x, y, image = _vectors((3, 4), (3, 4), (1, 2, 4, 5))
    complex_x, real_x = torch.complex(x, y), torch.complex(x, y * 0)
    return {
        "div.Scalar": [(complex_x, 2.0)],
        "divide.Scalar": [(complex_x, 2.0)],
        "einsum": [
            ("ij,kj->ik", [x, y]),
            ("ii,...i", [image[0, 0, :4, :4], image[0, :, :4, :4]]),
            ("...ij,...kj->...ik", [image, image[:, :1]]),
            ("bcij, bcij, ij -> b", [image, image, image[0, 0]]),
            ("ab,bc,cd->da", [x, y.mT, x]),
            ("zA", [x]),
        ],
        "eq.Scalar": [(real_x, x[0, 0].item())],
        "ne.Scalar": [(real_x, x[0, 0].item())],
        "pow.Tensor_Scalar": [(complex_x, exponent) for exponent in (-2, 0, 1, 5.0, 7)],
        "true_divide.Scalar": [(complex_x, 2.0)],
    }
