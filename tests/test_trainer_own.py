"""`--own`: nothing but the module's functions train, search and score."""

import json
from pathlib import Path

import pytest

from lab.assembled import Incomplete, load_module
from tests.small_training import CONFIG, MODULE
from trainer.__main__ import main
from trainer.own import SCORED_WITH, own_config, refuse_incomplete
from trainer.runs import RecipeRun

SMALL = [
    *("--pairs", "300", "--steps", "12", "--device", "cpu"),
    *("--set", "warmup=6", "--set", "vocab_size=200", "--set", "max_tokens=256"),
    *("--set", "model.d_model=16", "--set", "model.num_layers=1", "--set", "model.d_ff=24"),
    *("--set", "model.num_heads=2"),
]


def test_a_run_of_ones_own_is_trained_kept_searched_and_scored(tmp_path: Path, capsys):
    run = str(tmp_path / "run")
    assert main(["train", "--own", str(MODULE), "--config", "cpu10", "--out", run, *SMALL]) == 0
    said = capsys.readouterr().out
    assert "all yours    Transformer, initialise, label_smoothed_loss" in said
    lines = (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["step"] for record in records] == [10, 12]
    opened = RecipeRun(tmp_path / "run")
    assert opened.facts()["training"]["own"] is True
    assert opened.weights().position.step == 12
    assert main(["evaluate", "--own", run, "--beam", "2", "--split", "valid"]) == 0
    assert "all yours    beam_search, bleu" in capsys.readouterr().out


def test_what_is_not_answered_is_named_and_no_folder_is_made(tmp_path: Path, capsys):
    text = MODULE.read_text(encoding="utf-8")
    for name in ("label_smoothed_loss", "bleu"):
        text = text.replace(f"def {name}(", f"def once_{name}(")
    module = tmp_path / "mine.py"
    module.write_text(text, encoding="utf-8")
    run = tmp_path / "run"
    given = ["train", "--own", str(module), "--config", "cpu10", "--out", str(run), *SMALL]
    assert main(given) == 2
    assert "missing: label_smoothed_loss" in capsys.readouterr().err
    assert not run.exists()
    with pytest.raises(Incomplete, match="missing: bleu"):
        refuse_incomplete(load_module(module), SCORED_WITH)


def test_its_recipe_asks_for_nothing_that_only_the_trainer_does():
    config = own_config(CONFIG.with_fields({"ema": 0.9, "compile": True, "precision": "bf16"}))
    assert (config.ema, config.fused, config.compile, config.precision) == (0, False, False, "fp32")
    assert config.max_tokens == CONFIG.max_tokens * CONFIG.accumulate and config.accumulate == 1


@pytest.mark.parametrize("flag", ["--resume", "--tensorboard"])
def test_what_it_cannot_do_is_refused(flag: str, tmp_path: Path, capsys):
    given = ["train", "--own", str(MODULE), "--config", "cpu10", "--out", str(tmp_path / "r"), flag]
    assert main(given) == 2
    assert "--own is one process" in capsys.readouterr().err


def test_a_score_without_a_signature_is_not_recorded(tmp_path: Path, capsys):
    given = ["evaluate", "--own", str(tmp_path), "--record", str(tmp_path / "all.jsonl")]
    assert main(given) == 2
    assert "--record is for scores that carry a signature" in capsys.readouterr().err
