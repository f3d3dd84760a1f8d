"""`python -m trainer`: it reaches a BLEU, and what was trained can be used."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.small_training import CONFIG, MODULE
from trainer.__main__ import main
from trainer.checkpoints import checkpoint_paths
from trainer.configs import CONFIGS

SMOKE = CONFIG.with_fields(
    {
        "model.d_model": 96,
        "model.d_ff": 128,
        "model.num_heads": 4,
        "model.dropout": 0.0,
        "vocab_size": 1000,
        "target_vocab_size": 900,
        "first_embeddings": "cooccurrence",
        "max_tokens": 1024,
        "accumulate": 1,
        "warmup": 100,
        "steps": 500,
        "peak_rate": 5e-3,
        "validate_every": 250,
        "bleu_sentences": 50,
        "save_every": 100,
    }
)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """These models are too small to share out; on busy cores, threads wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def process_as_it_is(monkeypatch) -> None:
    """The other tests' process keeps its allocator."""
    monkeypatch.setattr("trainer.fused.process.prepare_process", lambda threads: ())


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run that was trained by the command, with the lines it printed beside it."""
    folder = tmp_path_factory.mktemp("command")
    config, out = folder / "smoke.json", folder / "run"
    config.write_text(json.dumps(SMOKE.to_json()), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainer.fused.process.prepare_process", lambda threads: ())
        command = ["train", "--model", str(MODULE), "--config", str(config), "--pairs", "8000"]
        assert main([*command, "--device", "cpu", "--out", str(out)]) == 0
    return out


# what comes of it


@pytest.mark.parametrize(("flags", "threads"), [([], 1), (["--threads", "2"], 2)])
def test_threads_belong_to_the_recipe_and_to_the_record(tmp_path, monkeypatch, flags, threads):
    config = tmp_path / "small.json"
    config.write_text(json.dumps({**CONFIG.to_json(), "threads": 1}), encoding="utf-8")
    monkeypatch.setattr(
        "trainer.fused.process.prepare_process", lambda number: torch.set_num_threads(number) or ()
    )
    command = ["train", str(MODULE), "--config", str(config), "--pairs", "300", "--steps", "1"]
    try:
        assert main([*command, "--device", "cpu", "--out", str(tmp_path / "run"), *flags]) == 0
    finally:
        torch.set_num_threads(1)
    content = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    assert content["recipe"]["threads"] == content["training"]["hardware"]["threads"] == threads


def test_recipes_of_minutes_say_how_many_threads_share_them():
    timed = [config for config in CONFIGS.values() if config.cpu_minutes is not None]
    assert timed and all(config.threads == 1 for config in timed)


def test_a_minute_of_training_reaches_a_bleu(trained, tmp_path, capsys):
    record, said = tmp_path / "results.jsonl", tmp_path / "said"
    options = ["--beam", "2", "--record", str(record), "--out-hypotheses", str(said)]
    assert main(["evaluate", str(trained), *options]) == 0
    printed = capsys.readouterr().out
    found = re.search(r"^test +BLEU ([\d.]+) .*nrefs:1\|case:mixed\|.*tok:none", printed, re.M)
    assert found, printed
    assert float(found[1]) > 70
    assert len(said.read_text(encoding="utf-8").splitlines()) == 200
    content = json.loads(record.read_text(encoding="utf-8"))
    assert content["what"] == "evaluate"
    assert content["scores"]["test"]["bleu"] == pytest.approx(float(found[1]), abs=0.01)
    assert content["recipe"] == json.loads(json.dumps(SMOKE.to_json()))
    assert {"cpu", "cores", "threads", "gpu"} == content["hardware"].keys()
    assert content["training"]["device"] == "cpu"
    assert [point["step"] for point in content["curve"]] == [250, 500]
    assert content["curve"][1]["bleu"] > content["curve"][0]["bleu"]
    assert content["steps"] == 500 and content["cpu_minutes"] > 0


def test_sentences_are_translated_in_their_order(trained, tmp_path, capsys):
    english = tmp_path / "english"
    english.write_text("we sing .\n\nthe cat sleeps .\n", encoding="utf-8")
    assert main(["translate", str(trained), str(english), "--beam", "1", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0] == "nous chantons ."
    assert lines[2] == "le chat dort ."


def test_a_changed_module_is_said_and_the_runs_own_copy_used(
    trained, tmp_path, capsys, monkeypatch
):
    config = json.loads((trained / "config.json").read_text(encoding="utf-8"))
    changed = tmp_path / "transformer.py"
    changed.write_text("raise SystemExit", encoding="utf-8")
    config["module"] = str(changed)
    whole = (trained / "config.json").read_text(encoding="utf-8")
    english = tmp_path / "english"
    english.write_text("we sing .\n", encoding="utf-8")
    try:
        (trained / "config.json").write_text(json.dumps(config), encoding="utf-8")
        assert main(["translate", str(trained), str(english)]) == 0
    finally:
        (trained / "config.json").write_text(whole, encoding="utf-8")
    printed = capsys.readouterr()
    assert "transformer.py has changed since; the run's own copy of it is used" in printed.err
    assert printed.out == "nous chantons .\n"


def test_checkpoints_are_averaged_and_the_mean_used(trained, tmp_path, capsys):
    mean = tmp_path / "mean.safetensors"
    assert main(["average", str(trained), "--last", "3", "--out", str(mean)]) == 0
    assert "mean of 3 checkpoints, steps 00000300 to 00000500" in capsys.readouterr().out
    english = tmp_path / "english"
    english.write_text("we sing .\n", encoding="utf-8")
    said = []
    for options in (["--weights", str(mean)], ["--average", "3"]):
        assert main(["translate", str(trained), str(english), *options]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != ""


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_curves_and_attention_are_drawn(trained, tmp_path, kind):
    for name, options in (("curves", []), ("attention", ["--attention", "we sing ."])):
        out = tmp_path / f"{name}.{kind}"
        assert main(["plot", str(trained), *options, "--out", str(out)]) == 0
        start = out.read_bytes()[:400]
        assert start.startswith(b"\x89PNG") if kind == "png" else b"<svg" in start


def test_resuming_what_is_done_changes_nothing(trained, capsys):
    last = checkpoint_paths(trained)[-1]
    before = (last / "state.json").stat().st_mtime_ns
    assert main(["train", "--resume", "--out", str(trained), "--device", "cpu"]) == 0
    assert "the budget is used up" in capsys.readouterr().out
    assert checkpoint_paths(trained)[-1] == last
    assert (last / "state.json").stat().st_mtime_ns == before


def test_tensorboard_is_written_where_it_is_wanted(tmp_path, capsys):
    pytest.importorskip("tensorboard")
    out = tmp_path / "run"
    flags = ["--set", "steps=12", "--tensorboard", "--pairs", "300", "--device", "cpu"]
    config = tmp_path / "small.json"
    config.write_text(json.dumps(CONFIG.to_json()), encoding="utf-8")
    command = ["train", str(MODULE), "--config", str(config), *flags, "--out", str(out)]
    assert main(command) == 0
    assert list((out / "tb").glob("events.out.tfevents.*"))


# what is wrong is said in one sentence


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "cpu10"], "which module? give its path, such as my_transformer.py"),
        ([], "which module? give its path"),
        ([str(MODULE), "--model", "x.py", "--config", "cpu10"], "two modules given"),
        ([str(MODULE), "--config", "cpu11"], "config cpu11 is none of tiny, multi30k"),
        (["nowhere.py", "--config", "cpu10"], "there is no module nowhere.py"),
        ([str(MODULE), "--data", "multi30k"], "which recipe? add --config, such as --config cpu10"),
        ([str(MODULE), "--config", "cpu10", "--device", "gpu"], "device 'gpu' is not one of"),
        ([str(MODULE), "--config", "cpu10", "--data", "nowhere/at/all"], "nowhere/at/all"),
        ([str(MODULE), "--config", "cpu10", "--languages", "en"], "must be of the form en-fr"),
        ([str(MODULE), "--config", "cpu10", "--languages", "en-xx"], "xx"),
        ([str(MODULE), "--config", "cpu10", "--set", "warmup"], "must be of the form FIELD=VALUE"),
        ([str(MODULE), "--config", "cpu10", "--set", "speed=9"], "has no field speed"),
        (
            [str(MODULE), "--config", "cpu10", "--max-tokens", "9"],
            "max_tokens (9) must be",
        ),
        ([str(MODULE), "--config", "cpu10", "--threads", "0"], "threads (0) must be at least 1"),
        (["--resume"], "--resume needs the run's directory: --out RUN"),
        (["--resume", "--out", "nowhere"], "nowhere holds no training run"),
    ],
)
def test_wrong_arguments_of_train_are_explained(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *arguments]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1, "one sentence"
    assert not (tmp_path / "runs").exists(), "nothing was begun"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", str(MODULE), "--config", "cpu10", "--out", "RUN"], "holds a run already"),
        (["train", "--resume", "--out", "RUN", "--seed", "5"], "its seed is 0, not 5"),
        (["train", "--resume", "--out", "RUN", "--pairs", "5"], "was begun on another corpus"),
        (["train", __file__, "--resume", "--out", "RUN"], "is not the module that"),
        (["translate", "RUN", "nowhere"], "there is no file nowhere"),
        (["translate", "RUN", "--beam", "0"], "--beam (0) must be at least 1"),
        (["translate", "RUN", "--average", "9"], "has 3 checkpoints; the mean of 9"),
        (["translate", "RUN", "--weights", "nowhere"], "there is no file nowhere"),
        (["translate", "RUN", "--device", "cuda:77"], "device 'cuda:77': torch sees"),
        (["evaluate", "RUN", "--split", "test_2031"], "the corpus has no part test_2031; it has"),
        (["evaluate", "RUN", "--record", "no/where"], "there is no directory no for where"),
        (["average", "RUN", "--last", "0"], "the mean of 0 cannot be taken"),
        (["plot", "RUN", "--out", "x.pdf"], "must end in .svg or .png"),
        (["plot", "RUN", "--attention", ""], "the sentence has 0 tokens"),
        (["plot", "nowhere"], "there is no directory nowhere"),
        (["evaluate", "nowhere"], "nowhere holds no training run"),
    ],
)
def test_wrong_arguments_about_a_run_are_explained(trained, capsys, arguments, message):
    assert main([argument.replace("RUN", str(trained)) for argument in arguments]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1, "one sentence"


COMMANDS = ["train", "translate", "evaluate", "average", "plot"]


def test_every_subcommand_is_listed(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    printed = capsys.readouterr().out
    for command in COMMANDS:
        assert f"    {command} " in printed


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_has_help(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = capsys.readouterr().out
    flags = re.findall(r"^  (--?[\w-]+)(.*(?:\n {5,}.*)*)", text, re.M)
    assert flags
    for flag, rest in flags:
        assert re.search(r"[a-z]{3}", re.sub(r"[A-Z=-]+|\{.*?\}", "", rest)), flag
