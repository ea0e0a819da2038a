# SPDX-License-Identifier: Apache-2.0
"""Engines whose results are of classes that the process that opens them may lack."""

import json
import subprocess
import sys
import textwrap

import ingot
import pytest
import torch
from ingot import calling


def spec_of(kind: str | None, context: object = None, children: tuple = ()) -> dict:
    return {"type": kind, "context": json.dumps(context), "children_spec": list(children)}


LEAF = spec_of(None)


def rebuild(spec: dict, leaves: list) -> object:
    return calling.unflattener(json.dumps([1, spec]))(leaves)


def test_fields_by_name_attribute_and_position() -> None:
    record = rebuild(spec_of("library.outputs.Encoded", ["hidden", "pooled"], (LEAF, LEAF)), [1, 2])
    assert (record.hidden, record["pooled"], record[0], record[:2]) == (1, 2, 1, (1, 2))
    assert record.to_tuple() == (1, 2)
    assert list(record) == ["hidden", "pooled"]
    assert repr(record) == "Encoded(hidden=1, pooled=2)"
    with pytest.raises(AttributeError, match="no field 'logits'; it has hidden, pooled"):
        _ = record.logits


def test_records_inside_of_other_structures() -> None:
    inner = spec_of("library.Cache", None, (LEAF,))
    result = rebuild(
        spec_of("builtins.tuple", None, (LEAF, inner, spec_of("builtins.dict", ["k"], (inner,)))), [1, 2, 3]
    )
    assert result[1].field_0 == 2
    assert result[2]["k"].field_0 == 3


@pytest.mark.parametrize("context", [None, "text", ["one"], ["a", "a"], {"a": 1}, 7])
def test_contexts_that_name_no_fields(context: object) -> None:
    record = rebuild(spec_of("library.Pair", context, (LEAF, LEAF)), [1, 2])
    assert dict(record) == {"field_0": 1, "field_1": 2}


def test_opens_without_the_library_and_without_torch(tmp_path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    torch.manual_seed(0)
    model = transformers.BertModel(config).eval()
    ids, mask = torch.arange(8).reshape(1, 8), torch.ones(1, 8, dtype=torch.int64)
    with torch.no_grad():
        expected = model(ids, mask).last_hidden_state
    path = tmp_path / "bert.ingot"
    ingot.compile(model, inputs=[ids, mask]).engine.save(path)
    script = """
        import sys
        sys.modules["transformers"] = None
        if {without_torch}:
            sys.modules["torch"] = None
        else:
            import torch
        import numpy as np
        import ingot
        engine = ingot.Engine.load({path!r})
        result = engine(np.arange(8).reshape(1, 8), np.ones((1, 8), np.int64))
        print(type(result).__name__, float(np.asarray(result.last_hidden_state).sum()), result[0].shape)
    """
    for without_torch in (False, True):
        text = textwrap.dedent(script.format(without_torch=without_torch, path=str(path)))
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        kind, total, _ = done.stdout.split(maxsplit=2)
        assert kind == "Record"
        assert float(total) == pytest.approx(float(expected.sum()), abs=1e-4)
