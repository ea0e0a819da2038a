# SPDX-License-Identifier: Apache-2.0
"""The HTML page of reports: from Python and the command line, as a reader, a validator and a browser see it."""

from __future__ import annotations

import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import browser
import html5lib
import ingot
import lacking
import pytest
import torch
from errors.inputs import INGOT
from small_models import InParts, mlp
from torch import nn

HOSTILE = '</script><img src=x onerror="document.title=1">'
SECTIONS = [
    "segments",
    "engine-0",
    "engine-0-passes",
    "engine-0-kernels",
    "engine-0-memory",
    "engine-0-times",
]
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Ids, targets of links, elements, and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.add(tag)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        assert not {"src", "srcset", "data", "action"} & set(values)
        assert not [name for name in values if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def checked(html: str) -> Page:
    """The page, after what holds for each of them."""
    html5lib.HTMLParser(strict=True).parse(html)
    page = Page(html)
    assert len(set(page.ids)) == len(page.ids)
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert set(SECTIONS) <= set(page.ids)
    assert not {"script", "link", "img", "iframe", "object"} & page.tags
    assert not [word for word in ("http:", "https:", "url(", "@import") if word in html]
    return page


def onnx_with_names(name: str) -> bytes:
    """y = relu(x @ w) and sigmoid of it, where everything that has a name has this one."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), f"w{name}")
    nodes = [
        helper.make_node("MatMul", [f"x{name}", f"w{name}"], [f"h{name}"], name=f"first{name}"),
        helper.make_node("Relu", [f"h{name}"], [f"r{name}"], name=f"second{name}"),
        helper.make_node("Softmax", [f"r{name}"], [f"y{name}"], name=f"third{name}"),
    ]
    ports = [helper.make_tensor_value_info(f"{p}{name}", TensorProto.FLOAT, [2, 4]) for p in "xy"]
    graph = helper.make_graph(nodes, f"g{name}", ports[:1], ports[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    onnx.checker.check_model(model)
    return model.SerializeToString()


@pytest.fixture(scope="module")
def hybrid() -> ingot.CompiledModule:
    return ingot.compile(
        InParts(counts=False), inputs=[torch.randn(3, 4)], min_block_size=1, reuse_cached_engines=False
    )


def test_segments_of_a_model_that_torch_runs_in_part(hybrid) -> None:
    page = checked(ingot.report(hybrid).html())
    assert lacking.NAME in page.text
    assert "which torch runs" in page.text
    assert "Ends with the program." in page.text
    assert {"engine-0", "engine-1", "codes", "INGOT-N520"} <= set(page.ids)
    assert "is not supported" in page.text  # the page on the code
    assert "test_report_page.py" not in page.text
    assert "small_models.py:" in page.text


def test_passes_tell_what_they_rewrote() -> None:
    compiled = ingot.compile(mlp(), inputs=[torch.randn(2, 8)], reuse_cached_engines=False)
    build = ingot.report(compiled).builds[0]
    fuse = next(row for row in build["passes"] if row["name"] == "fuse" and row["program"] == "main")
    assert fuse["changed"]
    assert fuse["nodes_after"] < fuse["nodes_before"]
    assert len(fuse["made"]) == fuse["rewrites"]
    assert {row["program"] for row in build["passes"]} == {"main", "init"}
    text = checked(ingot.report(compiled).html()).text
    assert all(row["name"] in text for row in build["passes"])
    assert all(each["node"] in text for each in fuse["made"])


def test_an_engine_of_the_cache_says_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("INGOT_ENGINE_CACHE_DIR", str(tmp_path))
    model = mlp()
    for _ in range(2):
        compiled = ingot.compile(model, inputs=[torch.randn(2, 8)])
    assert "found in a cache" in checked(ingot.report(compiled).html()).text


def test_profiles_give_the_times_of_their_engines(hybrid) -> None:
    profile = ingot.profile(hybrid, torch.randn(3, 4), runs=3)
    page = checked(ingot.report(hybrid).html(profile, title="My model"))
    assert "My model: Ingot report" in page.text
    assert page.text.count("Steps, the slowest first") == 2
    assert {step.engine for step in profile.steps} == {0, 1}
    with pytest.raises(ingot.UserError, match="INGOT-U039"):
        ingot.report(ingot.compile(mlp(), inputs=[torch.randn(2, 8)])).html(profile)


def test_torch_compile_and_its_graph_breaks() -> None:
    class Breaks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(x @ x)
            torch._dynamo.graph_break()
            return torch.softmax(y @ y, -1)

    torch._dynamo.reset()
    compiled = torch.compile(Breaks(), backend="ingot")
    compiled(torch.randn(4, 4))
    report = ingot.report(compiled)
    page = checked(report.html())
    assert len(report.builds) == len(report.engines) == 2
    assert "engine-1" in page.ids
    assert not report.breaks or "Graph breaks" in page.text


def test_modules_that_were_loaded_have_no_passes(hybrid, tmp_path) -> None:
    ingot.save(hybrid, tmp_path / "model.pt2")
    page = checked(ingot.report(ingot.load(tmp_path / "model.pt2")).html())
    assert "files do not record the passes" in page.text
    assert "INGOT-N520" in page.ids


def test_a_file_is_written_whole(hybrid, tmp_path) -> None:
    ingot.report(hybrid).save_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == ingot.report(hybrid).html()
    with pytest.raises(ingot.Error):
        ingot.report(hybrid).save_html(tmp_path / "missing" / "page.html")


def test_names_of_models_are_texts(tmp_path) -> None:
    (tmp_path / "model.onnx").write_bytes(onnx_with_names(HOSTILE))
    command = [INGOT, "build", "model.onnx", "--report", "page.html", "--metadata", f"note={HOSTILE}"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    page = checked((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert all(f"{part}{HOSTILE}" in page.text for part in ("x", "y", "first", "second", "third"))
    assert f"metadata note{HOSTILE}" in page.text


def test_the_command_line_takes_the_way_through_the_passes(tmp_path) -> None:
    program = torch.export.export(mlp(), (torch.randn(2, 8),))
    torch.export.save(program, tmp_path / "model.pt2")
    for _ in range(2):  # an engine in the cache has none
        subprocess.run([INGOT, "build", "model.pt2", "--report", "page.html"], cwd=tmp_path, check=True)
        page = checked((tmp_path / "page.html").read_text(encoding="utf-8"))
        assert "Passes, in the order" in page.text
        assert "small_models.py" not in page.text
    command = [INGOT, "profile", "model.ingot", "--seconds", "0.05", "--report", "times.html", "--json"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    page = checked((tmp_path / "times.html").read_text(encoding="utf-8"))
    assert "Steps, the slowest first" in page.text
    assert all(step["name"] in page.text for step in json.loads(done.stdout)["steps"])
    steps = [step["name"] for step in json.loads(done.stdout)["steps"]]
    command[1] = "bench"
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    page = checked((tmp_path / "times.html").read_text(encoding="utf-8"))
    assert "profile" not in json.loads(done.stdout)
    assert "Steps, the slowest first" in page.text
    assert all(name in page.text for name in steps)
    assert re.search(r"Profile: median [0-9.]+ ms in [1-9]", page.text)


def test_the_page_of_twelve_layers_is_small() -> None:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=99, hidden_size=48, num_hidden_layers=12, num_attention_heads=12, intermediate_size=96
    )
    model = BertModel(config).eval()
    compiled = ingot.compile(model, inputs=[torch.randint(0, 99, (1, 16))], reuse_cached_engines=False)
    html = ingot.report(compiled).html(ingot.profile(compiled, torch.randint(0, 99, (1, 16)), runs=2))
    checked(html)
    assert len(html.encode()) < 1_000_000


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    if browser.PROGRAM is None:
        pytest.skip("chromium-headless-shell is not installed: tools/setup_system.sh --browser")
    with browser.Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page_file(hybrid, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    profile = ingot.profile(hybrid, torch.randn(3, 4), runs=2)
    ingot.report(hybrid).save_html(path, profile, title=HOSTILE)
    return path


def test_a_browser_loads_one_file_and_complains_of_nothing(window, page_file) -> None:
    window.open(page_file)
    window.value("document.querySelectorAll('details').forEach(each => { each.open = true })")
    asked = [each["request"]["url"] for each in window.reported("Network.requestWillBeSent")]
    assert asked == [page_file.as_uri()]
    for method in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
        assert window.reported(method) == []
    assert window.value("document.title") == f"{HOSTILE}: Ingot report"
    assert window.value("document.images.length + document.scripts.length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_reader_and_keep_their_contrast(window, page_file, scheme) -> None:
    window.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    window.open(page_file)

    def light(name: str, of: str) -> float:
        """The relative luminance of a colour, as WCAG defines it."""
        text = window.value(f"getComputedStyle(document.querySelector({of!r})).{name}")
        parts = [int(part) / 255 for part in text[text.index("(") + 1 : -1].split(",")[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    back = light("backgroundColor", "body")
    assert (back < 0.1) == (scheme == "dark")
    for of in ("body", "a[href='#segments']", "caption", "dt"):
        lower, upper = sorted((back, light("color", of)))
        assert (upper + 0.05) / (lower + 0.05) >= 4.5, of


def test_the_keyboard_reaches_and_opens_everything(window, page_file) -> None:
    window.open(page_file)
    window.press("Tab")
    assert window.value("document.activeElement.getAttribute('href')") == "#main"
    reached = set()
    for _ in range(window.value("document.querySelectorAll('a, summary, [tabindex]').length")):
        window.press("Tab")
        reached.add(
            window.value("document.activeElement.tagName + document.activeElement.textContent.slice(0, 80)")
        )
    assert any(each.startswith("SUMMARYSegment 0") for each in reached)
    window.value("document.querySelector('summary').focus()")
    window.press("Enter")
    assert window.value("document.querySelector('details').open")


def test_everything_that_a_reader_meets_has_a_name(window, page_file) -> None:
    window.open(page_file)
    window.value("document.querySelectorAll('details').forEach(each => { each.open = true })")
    nodes = window.send("Accessibility.getFullAXTree")["nodes"]
    roles = {
        "link",
        "region",
        "table",
        "image",
        "img",
        "heading",
        "navigation",
        "DisclosureTriangle",
        "columnheader",
    }
    seen = {each["role"]["value"] for each in nodes if not each["ignored"]}
    assert {"link", "region", "table", "heading", "navigation", "columnheader", "main"} <= seen
    assert {"image", "img"} & seen or not window.value("document.querySelectorAll('svg').length")
    unnamed = [
        each["role"]["value"]
        for each in nodes
        if not each["ignored"]
        and each["role"]["value"] in roles
        and not each.get("name", {}).get("value", "").strip()
    ]
    assert unnamed == []


def test_a_narrow_window_needs_no_sideways_scrolling(window, page_file) -> None:
    window.send(
        "Emulation.setDeviceMetricsOverride", width=360, height=640, deviceScaleFactor=1, mobile=False
    )
    try:
        window.open(page_file)
        assert window.value("document.documentElement.scrollWidth") <= 360
    finally:
        window.send("Emulation.clearDeviceMetricsOverride")
