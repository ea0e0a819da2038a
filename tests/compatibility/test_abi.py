# SPDX-License-Identifier: Apache-2.0
"""A program that was compiled with the header of an earlier version runs with today's library.

abi_N/ holds the headers of version N of the C ABI as they were when it was frozen. They are copies, and never change: today's header
grows, and a program of today's would not notice if a struct or a function were no longer as it was.
"""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from c_headers import breaks, read
from python.accuracy import assert_accurate

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
INSTALLED = Path(ingot.__file__).with_name("libingot_runtime.so.0")
LIBRARY = INSTALLED if INSTALLED.exists() else HERE.parents[1] / "build/release/lib/libingot_runtime.so.0"
ABIS = sorted(HERE.glob("abi_*"))
HEADERS = ("ingot/base.h", "ingot/ingot.h", "ingot/build.h")


def text_of(folder: Path) -> str:
    headers = [folder / name for name in HEADERS]  # those of ABI 2 were frozen before there was a base.h
    return "".join(header.read_text(encoding="utf-8") for header in headers if header.exists())


def test_the_version_of_the_abi_has_frozen_headers() -> None:
    version = re.search(r"#define INGOT_ABI_VERSION (\d+)", text_of(INCLUDE))
    assert version
    assert HERE / f"abi_{version[1]}" in ABIS, "copy the headers of the new version there"


@pytest.mark.parametrize("abi", ABIS[-1:], ids=lambda path: path.name)
def test_todays_headers_only_add(abi: Path) -> None:
    frozen = read(text_of(abi))
    assert len(frozen.functions) > 120
    assert len(frozen.structs) > 15
    assert breaks(frozen, read(text_of(INCLUDE))) == []


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("INGOT_API void ingot_engine_free(ingot_engine* engine);", "", "ingot_engine_free is gone"),
        ("ingot_context_threads(const ingot_context*", "ingot_context_threads(ingot_context*", "threads"),
        ("INGOT_F32 = 9", "INGOT_F32 = 90", "INGOT_F32 is 90, was 9"),
        ("  int32_t verify; /* ingot_verify */", "  int64_t verify;", "ingot_load_options"),
        ("  size_t total;     /* of all weights on the GPU */\n", "", "ingot_weight_memory"),
        ("  uint64_t byte_offset; ", "  uint64_t byte_offset; int32_t more; ", "ingot_tensor"),
        ("typedef void (*ingot_log)(void* user, int32_t", "typedef void (*ingot_log)(void* user, int64_t", "type void"),
    ],
)  # fmt: skip
def test_what_would_break_a_program_is_found(before: str, after: str, names: str) -> None:
    text = text_of(ABIS[-1])
    assert before in text
    (found,) = breaks(read(text), read(text.replace(before, after, 1)))
    assert names in found


def test_additions_break_nothing() -> None:
    text = text_of(ABIS[-1])
    grown = text.replace(
        "  int32_t gpu;\n} ingot_load_options;", "  int32_t gpu;\n  int32_t more;\n} ingot_load_options;"
    )
    grown += "INGOT_API int32_t ingot_more(void);"
    assert len(grown) > len(text) + 40
    assert breaks(read(text), read(grown)) == []


@pytest.mark.parametrize("abi", ABIS[-1:], ids=lambda path: path.name)
def test_its_program_runs(abi: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{abi}", f"-Wl,-rpath,{LIBRARY.parent}"]
    subprocess.run(["cc", *flags, abi / "program.c", LIBRARY, "-o", program], check=True)
    golden = sorted(HERE.glob("format_*/mlp.ingot.gz"))[-1].parent
    (tmp_path / "mlp.ingot").write_bytes(gzip.decompress((golden / "mlp.ingot.gz").read_bytes()))
    kept = np.load(golden / "mlp.npz")
    kept["call0.input0"].tofile(tmp_path / "input")
    done = subprocess.run(
        [program, "mlp.ingot", "input", "output"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    eager, exact = torch.from_numpy(kept["call0.eager0"]), torch.from_numpy(kept["call0.exact0"])
    output = np.fromfile(tmp_path / "output", np.float32).reshape(eager.shape)
    assert_accurate(torch.from_numpy(output), eager, exact)
