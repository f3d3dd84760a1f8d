"""A run of five minutes is used like any other, and talked to."""

import argparse
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from lab.five_minutes import grammar_data
from lab.text import SPECIALS
from tests.small_training import five_minute_run
from trainer.__main__ import main
from trainer.commands.decoder import Decoder, add_decoding
from trainer.commands.talk import HELP, Talk, prepared, shaded

ENGLISH, FRENCH = grammar_data(60).train[0]

pytestmark = pytest.mark.usefixtures("process_as_it_is")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """These models are too small to share out; on busy cores, threads wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def process_as_it_is(monkeypatch) -> None:
    """The other tests' process keeps its allocator."""
    monkeypatch.setattr("trainer.fused.process.prepare_process", lambda threads: ())


@pytest.fixture(scope="module")
def mine(tmp_path_factory) -> Path:
    return five_minute_run(tmp_path_factory.mktemp("runs") / "mine")


@pytest.fixture
def talk(mine) -> Talk:
    parser = argparse.ArgumentParser()
    add_decoding(parser)
    return Talk(Decoder(parser.parse_args([str(mine)])))


# a line and its answer


def test_a_sentence_is_translated(talk):
    assert talk.answer(ENGLISH) == FRENCH
    assert talk.answer("  ") == ""


def test_what_somebody_types_is_put_as_the_corpus_has_it(talk):
    typed = ENGLISH.removesuffix(" .").removesuffix(" ?").replace(" 's", "'s").capitalize()
    answer = talk.answer(typed)
    assert answer.splitlines()[0] == FRENCH
    assert f"(it reads: {ENGLISH})" in answer


def test_a_word_that_it_never_met_is_named(talk):
    known = ENGLISH.split()[0]
    assert "(it has never met: giraffe, zebra)" in talk.answer(f"{known} giraffe zebra .")


def test_attention_is_shown_of_the_last_sentence(talk):
    with pytest.raises(ValueError, match="nothing was translated yet"):
        talk.answer("/attention")
    talk.answer(ENGLISH)
    head, *lines = talk.answer("/attention").splitlines()
    assert head.startswith("layer 0, mean over heads")
    assert [line.split()[0] for line in lines[-len(FRENCH.split()) - 1 :]] == [
        *FRENCH.split(),
        "<eos>",
    ]
    assert any(block in "".join(lines) for block in "░▒▓█")
    with pytest.raises(ValueError, match="/attention takes a number from 0 to 0, not '7'"):
        talk.answer("/attention 7")


def test_a_picture_is_drawn_of_the_last_sentence(talk, tmp_path):
    talk.answer(ENGLISH)
    out = tmp_path / "seen.svg"
    assert talk.answer(f"/picture {out}") == str(out)
    assert "<svg" in out.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"must end in \.svg or \.png"):
        talk.answer("/picture x.gif")
    with pytest.raises(ValueError, match="there is no directory"):
        talk.answer("/picture nowhere/x.svg")


def test_the_beam_can_be_changed(talk):
    assert talk.answer("/beam 1") == "beam of 1"
    assert talk.answer(ENGLISH) == FRENCH
    with pytest.raises(ValueError, match="/beam takes a number from 1 to 100, not 'wide'"):
        talk.answer("/beam wide")


def test_there_is_help_and_an_end(talk):
    assert talk.answer("/help") == HELP
    assert talk.answer("/quit") is None
    with pytest.raises(ValueError, match="there is no /hepl; /help lists what there is"):
        talk.answer("/hepl")


@pytest.mark.parametrize(
    ("line", "whole", "sentence"),
    [
        ("The cat's hat.", True, "the cat 's hat ."),
        ("Does he sleep", True, "does he sleep ?"),
        ("he sleeps", True, "he sleeps ."),
        ("A man, in a hat", False, "a man , in a hat"),
        ("  ", True, ""),
    ],
)
def test_a_line_is_prepared(line, whole, sentence):
    assert prepared(line, whole=whole) == sentence


def test_weights_are_shaded_and_columns_numbered_where_room_is_short():
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.4, 0.4]])
    rows, columns = ["le", "chat"], ["the", "cat", "<eos>"]
    assert shaded(weights, rows, columns, 80).splitlines() == [
        "      the cat <eos>",
        "le    ██  ░░",
        "chat  ▒▒  ▓▓  ▓▓",
    ]
    assert shaded(weights, rows, columns, 12).splitlines() == [
        "0 the, 1 cat, 2 <eos>",
        "      0  1  2",
        "le    ██ ░░",
        "chat  ▒▒ ▓▓ ▓▓",
    ]


# the commands


def test_talk_reads_lines_until_there_are_no_more(mine, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{ENGLISH}\n/hepl\n/quit\nnever read\n"))
    assert main(["talk", str(mine)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        FRENCH,
        "there is no /hepl; /help lists what there is",
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO(ENGLISH))
    assert main(["talk", str(mine)]) == 0


def test_its_words_are_completed(talk):
    words = talk.decoder.run.words()
    assert set(ENGLISH.split()) <= set(words)
    assert not set(SPECIALS) & set(words)


def test_translate_evaluate_and_plot_read_it_too(mine, tmp_path, capsys):
    lines = tmp_path / "english.txt"
    lines.write_text(ENGLISH + "\n", encoding="utf-8")
    assert main(["translate", str(mine), str(lines)]) == 0
    assert capsys.readouterr().out == FRENCH + "\n"
    assert main(["evaluate", str(mine), "--record", str(tmp_path / "record.jsonl")]) == 0
    assert re.search(r"^test +BLEU [\d.]+ ", capsys.readouterr().out, re.M)
    assert '"name": "five minutes"' in (tmp_path / "record.jsonl").read_text(encoding="utf-8")
    for flags in ([], ["--attention", ENGLISH]):
        out = tmp_path / f"{len(flags)}.svg"
        assert main(["plot", str(mine), *flags, "--out", str(out)]) == 0
        assert "<svg" in out.read_text(encoding="utf-8")


def test_errors_are_counted_by_kind_on_the_way_and_in_the_end(mine, capsys):
    assert main(["errors", str(mine), "--beam", "1"]) == 0
    printed = capsys.readouterr().out
    assert re.match(r"right where it is asked for, \d held-out sentences, beam 1\n", printed)
    heads, *rows = printed.splitlines()[1:9]
    assert len(re.findall(r"\d\.\d min", heads)) == 2
    assert rows[0].startswith("agreement of adjectives (")
    assert "the whole sentence (" in printed
    assert main(["errors", str(mine), "--sentences", "0"]) == 2
    assert "--sentences (0) must be at least 1" in capsys.readouterr().err


def test_what_it_does_not_keep_is_refused(mine, capsys):
    assert main(["average", str(mine), "--last", "2"]) == 2
    assert "keeps no checkpoints to take the mean of" in capsys.readouterr().err
