# SPDX-License-Identifier: Apache-2.0
"""Notices writes to weights on GPUs that leave no trace in a tensor: `weight.data += delta`.

One kernel reads the weights, or pieces of them, and makes a hash of each; the call waits for the hashes.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from ingot import compat

PIECES = 64  # of a weight, where not all of it is read
_PIECE = 16  # bytes
_ROW = 1 << 14  # bytes that a warp reads
_WARPS = 8  # of a block

# A warp per row: address, bytes, weight, and where the bytes are among those of the weight. Sums of mixed words do not depend on
# the order of rows, and those of words that changed places differ, since a word is mixed with where it is.
_SOURCE = """
typedef unsigned long long u64;
__device__ u64 mix(u64 word, u64 position) {
  u64 x = word + 0x9e3779b97f4a7c15ull * (position + 1);
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull;
  return x ^ (x >> 32);
}
extern "C" __global__ void hash_rows(const long long* rows, int count, u64* hashes) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= count) return;
  const long long* it = rows + 4ll * row;
  const unsigned char* data = (const unsigned char*)it[0];
  const u64 bytes = it[1], start = it[3];
  u64 sum = 0, done = 0;
  if (((u64)data & 15) == 0) {
    done = bytes & ~15ull;
    for (u64 at = lane * 16ull; at < done; at += 32 * 16) {
      const ulonglong2 words = *(const ulonglong2*)(data + at);
      sum += mix(words.x, start + at) + mix(words.y, start + at + 8);
    }
  }
  for (u64 at = done + lane; at < bytes; at += 32) sum += mix(data[at], start + at);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) atomicAdd(hashes + it[2], sum);
}
"""


@functools.cache
def _kernel(device: int) -> Callable[..., None] | None:
    """None where torch cannot compile kernels."""
    compile_kernel = compat.compile_kernel()
    if compile_kernel is None:
        return None
    try:
        with torch.cuda.device(device):
            return compile_kernel(_SOURCE, "hash_rows")
    except (OSError, RuntimeError):
        return None


def extent(tensor: torch.Tensor) -> int:
    """Bytes between the first and the last element."""
    if tensor.numel() == 0:
        return 0
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return (1 + sum((size - 1) * stride for size, stride in steps)) * tensor.element_size()


def rows_of(weight: int, address: int, count: int, whole: bool) -> list[tuple[int, int, int, int]]:
    """What the kernel reads of a weight of `count` bytes."""
    if whole or count <= PIECES * _PIECE:
        return [(address + at, min(_ROW, count - at), weight, at) for at in range(0, count, _ROW)]
    # Pieces begin at addresses that one load reads.
    starts = [(count - _PIECE) * piece // (PIECES - 1) // _PIECE * _PIECE for piece in range(PIECES - 1)]
    return [(address + at, _PIECE, weight, at) for at in starts] + [
        (address + count - _PIECE, _PIECE, weight, count - _PIECE)
    ]


@dataclass
class DeviceContents:
    """weights: those on one GPU, by their index among all. whole: all bytes are read, not only pieces."""

    weights: dict[int, torch.Tensor]
    whole: bool
    _rows: torch.Tensor | None = field(default=None, init=False)
    _places: list[tuple[int, int]] = field(
        default_factory=list, init=False
    )  # addresses and bytes of the rows' weights
    _seen: torch.Tensor | None = field(default=None, init=False)  # the hashes, on the host

    def copy(self) -> DeviceContents:
        """For a copy of the engine, which has the same values."""
        twin = copy.copy(self)
        twin.weights = dict(self.weights)
        return twin

    def changed(self, bound: Sequence[tuple[int, torch.Tensor]]) -> list[int] | None:
        """The indices of the weights that were written to since the last call; None: of none.

        bound: weights of which the engine has just taken the values.
        """
        if torch.cuda.is_current_stream_capturing():
            return None  # nothing may be waited for
        for index, tensor in bound:
            if index in self.weights:
                self.weights[index] = tensor
        if bound or self._rows is None:
            self._place()
        seen, self._seen = self._seen, self._hashes()
        if seen is None:
            return None
        taken = {index for index, _ in bound}
        others = zip(self.weights, torch.ne(self._seen, seen).tolist(), strict=True)
        return [index for index, is_other in others if is_other and index not in taken] or None

    def _place(self) -> None:
        """Weights that nobody bound again are where they were."""
        places = [(tensor.data_ptr(), extent(tensor)) for tensor in self.weights.values()]
        if self._rows is not None and places == self._places:
            return
        rows = [row for k, place in enumerate(places) for row in rows_of(k, *place, self.whole)]
        self._places, self._rows = places, torch.tensor(rows or [(0, 0, 0, 0)]).to(self._device)

    @property
    def _device(self) -> torch.device:
        return next(iter(self.weights.values())).device

    def _hashes(self) -> torch.Tensor:
        device = self._device
        hashes = torch.zeros(len(self._places), dtype=torch.int64, device=device)
        count = len(self._rows)
        with torch.cuda.device(device):
            kernel = _kernel(device.index)
            kernel(
                grid=(-(-count // _WARPS), 1, 1), block=(32 * _WARPS, 1, 1), args=[self._rows, count, hashes]
            )
        return hashes.cpu()


def contents_of(tensors: Sequence[torch.Tensor], check: str) -> DeviceContents | None:
    """What looks at the weights on GPUs; None if nobody asks for that, or there are none, or on several GPUs."""
    on_gpu = {index: tensor for index, tensor in enumerate(tensors) if tensor.is_cuda}
    devices = {tensor.device.index for tensor in on_gpu.values()}
    if check == "fast" or len(devices) != 1 or _kernel(*devices) is None:
        return None
    contents = DeviceContents(on_gpu, check == "full")
    with compat.with_real_tensors():  # torch traces while it compiles
        contents.changed([])
    return contents
