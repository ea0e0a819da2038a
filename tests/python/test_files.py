# SPDX-License-Identifier: Apache-2.0
"""Files written by Python and the command line: atomic, permissions kept, links followed, nothing left behind."""

import os
import signal
import stat
import subprocess
import sys
import threading

import ingot
import numpy as np
import pytest
import torch
from errors.inputs import INGOT


@pytest.fixture(scope="module")
def module():
    return ingot.compile(torch.nn.ReLU(), inputs=[torch.ones(4)])


@pytest.fixture(scope="module")
def engine_file(module, tmp_path_factory):
    path = tmp_path_factory.mktemp("engine") / "relu.ingot"
    ingot.save(module, path, output_format="engine")
    return path


@pytest.fixture(params=["engine", "exported_program", "npy", "npz"])
def write(request, module, engine_file):
    """Writes to a path, in one of the ways that there are."""
    if request.param in ("npy", "npz"):

        def run(path):
            # The kind of file is known by the name: another one is a link to it.
            named = path.with_name(f"{path.name}.{request.param}")
            os.symlink(path, named)
            subprocess.run([INGOT, "run", engine_file, "-o", named], check=True, capture_output=True)
            named.unlink()

        return run
    return lambda path: ingot.save(module, path, output_format=request.param)


def test_permissions_are_kept(write, tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes()[:3] != b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_followed(write, tmp_path):
    (tmp_path / "folder").mkdir()
    target, link, second = tmp_path / "folder" / "target", tmp_path / "link", tmp_path / "second"
    link.symlink_to(os.path.join("folder", "target"))  # which is not there yet
    second.symlink_to("link")
    for _ in range(2):
        write(second)
        assert second.is_symlink()
        assert link.is_symlink()
        assert target.stat().st_size > 10
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["target"]


def test_devices_and_pipes_stay(write, tmp_path):
    write(tmp_path / "out")
    expected = (tmp_path / "out").read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = []
    reader = threading.Thread(target=lambda: content.append(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert len(content[0]) == len(expected)
    null = os.stat("/dev/null")
    (tmp_path / "null").symlink_to("/dev/null")
    write(tmp_path / "null")
    assert os.stat("/dev/null").st_ino == null.st_ino
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_planted_links_are_not_followed(module, engine_file, tmp_path):
    """A temporary file's name is unpredictable: no link can be planted under it."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    script = f"""
import os
for number in range(os.getpid() - 50, os.getpid() + 50):
    os.symlink({str(victim)!r}, f{str(tmp_path)!r} + f"/.ingot-{{number}}-out.npz")
os.execv({str(INGOT)!r}, ["ingot", "run", {str(engine_file)!r}, "-o", {str(tmp_path / "out.npz")!r}])
"""
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert victim.read_bytes() == b"mine"
    assert (tmp_path / "out.npz").is_file()


def test_npz_files_are_numpys(engine_file, tmp_path):
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    subprocess.run([INGOT, "run", engine_file, "-i", tmp_path / "x.npy", "-o", tmp_path / "out.npz"], check=True,
                   capture_output=True)  # fmt: skip
    with np.load(tmp_path / "out.npz") as arrays:
        assert [np.array_equal(arrays[name], np.maximum(x, 0)) for name in arrays] == [True]
    listing = subprocess.run(
        [sys.executable, "-m", "zipfile", "-t", tmp_path / "out.npz"], capture_output=True, text=True
    )
    assert "Done testing" in listing.stdout
    compare = [INGOT, "compare", tmp_path / "out.npz", engine_file, "-i", tmp_path / "x.npy"]
    subprocess.run(compare, check=True, capture_output=True)  # reads it


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_saves_leave_nothing(end, tmp_path):
    script = """
import signal
import sys
import ingot._core as core
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background processes with it ignored
writer = core.FileWriter(sys.argv[1])
writer.write(bytes(1 << 20))
print("begun", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", script, tmp_path / "out"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as child:  # fmt: skip
        assert child.stdout.readline() == "begun\n"
        child.send_signal(end)
        child.wait(timeout=60)
    assert list(tmp_path.iterdir()) == []
