# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from bindings import call_engines_by_ctypes
from ingot import devices, refusals
from ingot.serving import Model
from ingot.settings import Settings


@pytest.fixture(scope="module", params=["extension", "ctypes"])
def binding(request: pytest.FixtureRequest) -> Iterator[str]:
    """Engines are built by the extension; they are opened and called by it, or by ctypes as in packages without the compiler."""
    torch.compiler.reset()  # torch would find what it compiled by the other one
    patch = pytest.MonkeyPatch()
    if request.param == "ctypes":
        call_engines_by_ctypes(patch)
    yield request.param
    patch.undo()


@pytest.fixture
def opened() -> Iterator[Callable[..., Model]]:
    """Opens models of servers, which are closed when the test is over."""
    models: list[Model] = []

    def make(path: Path, **options: Any) -> Model:
        models.append(Model(path, **options))
        return models[-1]

    yield make
    for model in models:
        model.close(30)


@pytest.fixture(scope="session", autouse=True)
def kernels_check_themselves() -> Iterator[None]:
    """Every engine that a test of this folder builds is built with verify_kernels, unless the test says otherwise."""
    parse = Settings.parse

    def parse_and_verify(options: Mapping[str, Any], *of: Any) -> Settings:
        settings = parse(options, *of)
        settings.compiler.setdefault("verify_kernels", "true")
        return settings

    reason = refusals.reason_of

    def reason_unless_wrong(error: ingot.Error) -> str:
        assert error.code != "INGOT-I002", error  # no wrong kernel is hidden by a fallback to torch
        return reason(error)

    patch = pytest.MonkeyPatch()
    patch.setattr(Settings, "parse", staticmethod(parse_and_verify))
    patch.setattr(refusals, "reason_of", reason_unless_wrong)
    yield
    patch.undo()


if wanted := os.environ.get(
    "INGOT_TEST_ARCHITECTURE"
):  # as for the C++ tests: what engines for this machine's GPU are built for
    own_architecture = devices.architecture
    devices.architecture = lambda gpu=0: wanted if own_architecture(gpu) else ""

_FAKE_DRIVER = Path(__file__).with_name("fake_cuda_driver.cpp")
_FAKE_NCCL = Path(__file__).with_name("fake_nccl.cpp")
_SOURCES = Path(__file__).parents[2] / "src"
_COMPILE = ["c++", "-std=c++20", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{_SOURCES}"]


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a driver for GPUs that computes nothing, for LD_LIBRARY_PATH."""
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run([*_COMPILE, _FAKE_DRIVER, "-o", folder / "libcuda.so.1"], check=True)
    return folder


@pytest.fixture(scope="session")
def fake_nccl(fake_driver: Path) -> Path:
    """The same folder, with a library of collectives that works on that driver."""
    subprocess.run([*_COMPILE, _FAKE_NCCL, "-o", fake_driver / "libnccl.so.2"], check=True)
    return fake_driver
