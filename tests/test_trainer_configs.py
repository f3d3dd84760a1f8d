"""Configurations: what they refuse, how they are written down and read, the recipes by name."""

import json
import re
from dataclasses import replace

import pytest

from trainer.configs import CONFIGS, TrainConfig, differences, find_config

CPU10 = CONFIGS["cpu10"]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_recipe_that_was_written_down_is_read_as_it_was(name):
    config = CONFIGS[name]
    again = TrainConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert again == config
    assert find_config(name) is config


def test_tiny_is_the_published_recipe():
    tiny, model = CONFIGS["tiny"], CONFIGS["tiny"].model
    assert (model.d_model, model.num_layers, model.num_heads, model.d_ff) == (128, 4, 4, 256)
    assert (model.dropout, model.norm_first) == (0.3, False)
    assert (tiny.peak_rate, tiny.warmup, tiny.schedule) == (5e-3, 2000, "inverse-sqrt")
    assert tiny.max_tokens * tiny.accumulate == 8192  # two GPUs with 4096 tokens each


@pytest.mark.parametrize(
    ("name", "d_model", "num_heads", "d_ff", "dropout"),
    [("base", 512, 8, 2048, 0.1), ("big", 1024, 16, 4096, 0.3)],
)
def test_base_and_big_are_vaswanis(name, d_model, num_heads, d_ff, dropout):
    config, model = CONFIGS[name], CONFIGS[name].model
    assert (model.d_model, model.num_heads, model.d_ff) == (d_model, num_heads, d_ff)
    assert (model.num_layers, model.dropout, model.norm_first) == (6, dropout, False)
    assert config.max_tokens * config.accumulate == 25_000
    assert config.peak_rate == pytest.approx(d_model**-0.5 * config.warmup**-0.5)


def test_a_recipe_is_found_in_a_file(tmp_path):
    path = tmp_path / "mine.json"
    mine = replace(CPU10, warmup=123)
    path.write_text(json.dumps(mine.to_json()), encoding="utf-8")
    assert find_config(str(path)) == mine


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tinny", None, "config tinny is none of tiny, multi30k"),
        ("nowhere.json", None, "there is no file"),
        ("x.json", "{", "is no JSON"),
        ("x.json", "[1]", "must be an object with named fields"),
        ("x.json", "{}", "lacks model, peak_rate"),
        ("x.json", '{"steppes": 3}', "has no field steppes; its fields are model"),
        ("x.json", '{"model": {}, "peak_rate": "high"}', "peak_rate must be of type float"),
    ],
)
def test_what_is_no_recipe_is_refused_by_name(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)):
        find_config(str(path) if name.endswith(".json") else name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.num_heads": 3}, "d_model (256) must be divisible by num_heads (3)"),
        ({"model.dropout": 1.0}, "dropout (1.0) must be at least 0 and below 1"),
        ({"model.d_model": True}, "d_model must be of type int, not True"),
        ({"steps": 5}, "give either steps (5) or cpu_minutes (10.0), not both"),
        ({"cpu_minutes": 0}, "cpu_minutes (0.0) must be above 0"),
        ({"peak_rate": -1}, "peak_rate (-1.0) must be above 0"),
        ({"accumulate": 0}, "accumulate (0) must be at least 1"),
        ({"max_tokens": 200}, "max_tokens (200) must be at least 256"),
        ({"optimiser": "adam"}, "optimiser 'adam' is not one of adamw, muon"),
        ({"schedule": "linear"}, "schedule 'linear' is not one of"),
        ({"precision": "fp16"}, "precision 'fp16' is not one of fp32, bf16"),
        ({"optimiser": "adamw"}, "optimiser 'adamw' with matrix_rate 0.01: Muon needs one, AdamW"),
        ({"newton_schulz": 6}, "newton_schulz (6) must be 1 to 5"),
        ({"average": 4}, "average (4) must be at most keep (3)"),
        ({"betas": [0.9]}, "betas must be two numbers"),
        ({"warmup": 2.5}, "warmup must be of type int, not 2.5"),
        ({"model": 3}, "model must be an object with named fields, not 3"),
        ({"model.depth": 3}, "model has no field depth"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        CPU10.with_fields(changes)


def test_changed_fields_are_taken_and_named():
    changed = CPU10.with_fields({"warmup": 7, "model.dropout": 0.25, "peak_rate": 1})
    assert (changed.warmup, changed.model.dropout, changed.peak_rate) == (7, 0.25, 1.0)
    assert differences(CPU10, CPU10.with_fields({})) == []
    assert differences(CPU10, changed) == [
        f"model.dropout is {CPU10.model.dropout}, not 0.25",
        f"peak_rate is {CPU10.peak_rate}, not 1.0",
        f"warmup is {CPU10.warmup}, not 7",
    ]
