"""Weights by name, and files of them: tied ones once, damaged ones refused by name."""

from pathlib import Path

import pytest
import torch

from lab.assembled import load_module
from lab.weights import load_weights, read_tensors, weights_of, write_tensors

MODULE = Path(__file__).parents[1] / "solutions" / "transformer.py"


def test_tied_weights_are_kept_once_and_stay_tied(tmp_path):
    module = load_module(MODULE)
    models = [
        module.Transformer(
            9, 9, module.sinusoidal_encoding(8, 4), d_model=4, num_layers=1, num_heads=2, d_ff=6
        )
        for _ in range(2)
    ]
    weights = weights_of(models[0])
    assert "source_embedding.weight" in weights
    assert not {"target_embedding.weight", "generator.weight"} & weights.keys()
    load_weights(models[1], weights, "x")
    first, second = (model.state_dict() for model in models)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert models[1].generator.weight is models[1].source_embedding.weight


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, "x lacks weight"),
        ({"weight": torch.ones(2, 3), "more": torch.ones(1)}, "x holds more"),
        ({"weight": torch.ones(3, 2)}, r"x: weight has shape \(3, 2\), the model's has \(2, 3\)"),
    ],
)
def test_weights_of_another_shape_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        load_weights(torch.nn.Linear(3, 2, bias=False), weights, "x")


def test_a_single_file_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensors(path, {"a": torch.arange(3.0)}, {"what": "é"})
    tensors, words = read_tensors(path)
    assert (tensors["a"].tolist(), words) == ([0.0, 1.0, 2.0], {"what": "é"})
    assert [file.name for file in tmp_path.iterdir()] == ["x.safetensors"]
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match="is cut: 4 bytes are missing"):
        read_tensors(path)
    path.write_bytes(b"PK\x03\x04 a pickle in a zip, which nobody opens")
    with pytest.raises(ValueError, match="is no safetensors file"):
        read_tensors(path)
    with pytest.raises(ValueError, match="there is no file"):
        read_tensors(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "header", [b"[" * 100_000, b'{"a": {"data_offsets": [0, "x"]}}', b"9" * 5000], ids=len
)
def test_a_header_that_says_anything_is_refused_as_no_such_file(tmp_path, header: bytes):
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ValueError, match="is no safetensors file"):
        read_tensors(path)
