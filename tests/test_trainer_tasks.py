"""Language models and captioners by `python -m trainer`: trained, measured, kept and used."""

import json
import math
import os
import signal
from pathlib import Path

import pytest
import torch

from lab.assembled import Incomplete, load_module
from lab.weights import weights_of
from tests.small_training import MODULE
from trainer import task_runs
from trainer.__main__ import main
from trainer.tasks import Captions, Language, Recipe, Text, _drawn, read_text

SMALL = ["d_model=16", "num_layers=1", "num_heads=2", "d_ff=32", "batch=8", "warmup=5"]
LANGUAGE = [*SMALL, "window=16", "examples=3000", "look_every=20", "peak_rate=0.01"]
CAPTIONS = [*SMALL, "examples=60", "look_every=20"]


def options(settings: list[str]) -> list[str]:
    return [part for one in settings for part in ("--set", one)]


@pytest.fixture(scope="module")
def language(tmp_path_factory) -> Path:
    """A language model of the stories, after 40 updates."""
    out = tmp_path_factory.mktemp("tasks") / "language"
    arguments = ["language", str(MODULE), "--steps", "40", "--out", str(out), *options(LANGUAGE)]
    assert main(arguments) == 0
    return out


@pytest.fixture(scope="module")
def captions(tmp_path_factory) -> Path:
    """A captioner, after 20 updates."""
    out = tmp_path_factory.mktemp("tasks") / "captions"
    arguments = ["captions", str(MODULE), "--steps", "20", "--out", str(out), *options(CAPTIONS)]
    assert main(arguments) == 0
    return out


def records(run: Path, kind: str) -> list[dict]:
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [one for one in map(json.loads, lines) if one["kind"] == kind]


def test_it_learns_and_stays_above_what_is_possible(language: Path):
    first, last = records(language, "valid")
    assert (first["step"], last["step"]) == (20, 40)
    assert last["loss"] < first["loss"] < math.log(74), "better than 74 words at random"
    assert first["least loss"] == last["least loss"] < last["loss"]
    assert last["perplexity"] == pytest.approx(math.exp(last["loss"]))
    assert len(records(language, "train")) == 40


def test_a_second_training_is_the_same(language: Path, tmp_path: Path):
    out = tmp_path / "again"
    main(["language", str(MODULE), "--steps", "40", "--out", str(out), *options(LANGUAGE)])
    assert records(out, "valid") == records(language, "valid")


def test_an_opened_run_has_the_last_weights_and_knows_its_words(language: Path):
    opened = task_runs.open_task_run(language)
    assert opened.step == 40 and not opened.model.training
    task = Language(opened.task.recipe, read_text("stories", opened.task.recipe))
    measured = task.measure(opened.model)
    assert measured["loss"] == pytest.approx(records(language, "valid")[-1]["loss"])


def test_every_token_that_was_held_out_is_said_once():
    recipe = Recipe(window=16)
    task = Language(recipe, read_text("stories", Recipe(window=16, examples=100)))
    windows = list(task._valid_windows())
    said = torch.cat([window[0, 1:] for window in windows])
    assert torch.equal(said, task.text.valid[1:])


def test_bits_a_byte_are_those_of_the_text(tmp_path: Path):
    lines = [f"line {number} says été" for number in range(40)]
    path = tmp_path / "text.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    recipe = Recipe(window=8, vocab_size=60)
    task = Language(recipe, read_text(str(path), recipe))
    assert task.text.size == sum(len(f"{line}\n".encode()) for line in lines[-2:])
    found = task.measure(task.build(load_module(MODULE)).eval())
    nats = found["loss"] * (len(task.text.valid) - 1)
    assert found["bits a byte"] == pytest.approx(nats / math.log(2) / task.text.size)
    assert "least loss" not in found


def test_a_text_of_ones_own_is_learnt_and_gone_on_with(tmp_path: Path, capsys):
    path, out = tmp_path / "text.txt", tmp_path / "run"
    path.write_text("the sea is calm\n" * 60, encoding="utf-8")
    settings = options([*LANGUAGE, "vocab_size=40"])
    data = ["--data", str(path), "--steps", "60", "--out", str(out)]
    assert main(["language", str(MODULE), *data, *settings]) == 0
    path.unlink()  # what is needed to write is in the run
    capsys.readouterr()
    assert main(["write", str(out), "the sea", "--count", "12", "--temperature", "0"]) == 0
    assert capsys.readouterr().out.startswith("the sea is calm\nthe")


def test_writing_follows_its_settings(language: Path, capsys):
    def written(*more: str) -> str:
        assert main(["write", str(language), "anna", "--count", "12", *more]) == 0
        return capsys.readouterr().out

    assert written() == written() != written("--seed", "3")
    likeliest = written("--temperature", "0")
    assert likeliest == written("--top-k", "1") == written("--top-p", "0.0001")
    assert likeliest.startswith("anna ") and len(likeliest.split()) == 13


def test_tokens_are_drawn_from_the_fewest_that_hold_the_share():
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).double().log()
    generator = torch.Generator().manual_seed(0)
    for top_k, top_p, kept in ((0, 1.0, 4), (0, 0.81, 3), (0, 0.79, 2), (2, 1.0, 2), (3, 0.4, 1)):
        seen = {_drawn(logits, 1.0, top_k, top_p, generator) for _ in range(300)}
        assert seen == set(range(kept))


def test_captions_are_measured_by_what_is_true(captions: Path, capsys):
    (only,) = records(captions, "valid")
    assert 0 <= only["true captions"] <= 1 and only["loss"] < math.log(11)
    assert len(only["sample"]) == 3
    assert main(["describe", str(captions), "--count", "2"]) == 0
    shown = capsys.readouterr().out
    assert set("rgb.") >= set(shown.splitlines()[0]) and len(shown.splitlines()) == 2 * 18


def test_the_modules_own_patches_are_trained_on():
    module = load_module(MODULE)
    task = Captions(Recipe(d_model=16, examples=2))
    task.build(module)
    ours = module.patchify(task.train.pictures, 4)
    assert torch.equal(task.patches_of(task.train), ours)


def test_a_signal_ends_it_after_an_update_and_keeps_the_weights(tmp_path: Path):
    recipe = Recipe(d_model=16, num_layers=1, window=16, examples=500, steps=50, batch=4)
    task = Language(recipe, read_text("stories", recipe))
    model = task.build(load_module(MODULE))
    task_runs.begin(tmp_path / "run", MODULE, task, "stories")

    def interrupt(progress: task_runs.Progress) -> None:
        if progress.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    stop = task_runs.train(tmp_path / "run", task, model, torch.device("cpu"), interrupt)
    assert stop.name == "SIGINT"
    opened = task_runs.open_task_run(tmp_path / "run")
    assert opened.step == 4
    kept, now = weights_of(opened.model), weights_of(model)
    assert all(torch.equal(kept[name], now[name]) for name in now)


def test_a_loss_that_is_no_number_is_told(tmp_path: Path, capsys):
    out = tmp_path / "run"
    settings = options([*LANGUAGE, "peak_rate=1e30", "clip=0"])
    assert main(["language", str(MODULE), "--out", str(out), *settings]) == 2
    assert "try a lower peak_rate" in capsys.readouterr().err


STUB = MODULE.read_text(encoding="utf-8")
WITHOUT = STUB.replace("class LanguageModel", "class Other")
UNANSWERED = STUB.replace(
    "        self.embedding = TokenEmbedding(vocab_size, d_model)\n",
    "        raise NotImplementedError\n",
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (WITHOUT, "the module has no LanguageModel: it comes from a later chapter"),
        (UNANSWERED, "is not answered yet"),
    ],
    ids=["not there", "not answered"],
)
def test_a_module_that_lacks_the_model_is_told(text: str, says: str, tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    recipe = Recipe(d_model=16, window=16, examples=500)
    with pytest.raises(Incomplete, match=says):
        Language(recipe, read_text("stories", recipe)).build(load_module(path))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "d_model=3"], "d_model (3) must be even"),
        (["--set", "width=3"], "has no field width"),
        (["--set", "steps"], "FIELD=VALUE"),
        (["--set", "steps=many"], "steps must be of type int, not 'many'"),
        (["--set", "steps=1.5"], "steps must be of type int"),
        (["--set", "window=0"], "window (0) must be at least 1"),
        (["--set", "window=4000"], "4000 tokens held out, the window 4000"),
        (["--data", "nowhere.txt"], "there is no file"),
        (["--data", str(Path(__file__).with_name("old_cases.py")), "--set", "vocab_size=9"], ""),
        (["--device", "abacus"], "device 'abacus'"),
    ],
)
def test_what_cannot_be_trained_is_refused(arguments: list[str], says: str, tmp_path: Path, capsys):
    out = tmp_path / "run"
    assert main(["language", str(MODULE), "--out", str(out), *arguments]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1
    assert not out.exists()


def test_short_and_unreadable_texts_are_refused(tmp_path: Path):
    path = tmp_path / "text.txt"
    path.write_text("one\n", encoding="utf-8")
    with pytest.raises(ValueError, match="at least 20"):
        read_text(str(path), Recipe())
    path.write_bytes(b"\xff\xfe" * 20)
    with pytest.raises(ValueError, match="no UTF-8"):
        read_text(str(path), Recipe())


def test_runs_are_not_taken_for_each_other(language: Path, captions: Path, tmp_path: Path, capsys):
    cases = [
        (["write", str(captions)], "a run of python -m trainer captions, not of language"),
        (["describe", str(language)], "a run of python -m trainer language, not of captions"),
        (["talk", str(language)], "holds no translator"),
        (["write", str(tmp_path)], "holds no run"),
        (["write", str(language), "zebra"], "'zebra' is no word of the stories"),
        (["write", str(language), "--temperature", "-1"], "temperature"),
        (["write", str(language), "--count", "-1"], "--count -1"),
        (["language", str(MODULE), "--out", str(language)], "is taken"),
    ]
    for arguments, says in cases:
        assert main(arguments) == 2
        assert says in capsys.readouterr().err


def test_a_run_that_was_changed_is_refused(tmp_path: Path):
    recipe = Recipe(d_model=16, num_layers=1, window=16, examples=500, steps=1, batch=2)
    task, run = Language(recipe, read_text("stories", recipe)), tmp_path / "run"
    task_runs.begin(run, MODULE, task, "stories")
    with pytest.raises(ValueError, match="no weights yet"):
        task_runs.open_task_run(run)
    (run / "module.py").write_text("print('other')", encoding="utf-8")
    with pytest.raises(ValueError, match="was changed or damaged"):
        task_runs.open_task_run(run)
    for text in ("{", '{"format": 9, "task": "language", "sha256": {}}', "[]"):
        (run / "task.json").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=r"damaged|knows"):
            task_runs.open_task_run(run)


def test_a_text_ends_where_the_next_begins():
    text = Text("stories", torch.zeros(0), torch.zeros(0), 0, None)
    ids = text.encode("anna sleeps . <new> tom")
    assert text.decode(ids) == "anna sleeps .\ntom"
