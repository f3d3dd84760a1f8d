"""The command line of the lab."""

import runpy
import subprocess
import sys

import pytest

from lab.__main__ import main
from lab.corpus import sentence_pairs


def test_corpus_prints_the_pairs_asked_for_as_a_table(capsys):
    assert main(["corpus", "--pairs", "3", "--seed", "5"]) == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split() == ["English", "French"]
    start = heading.index("French")
    assert [(row[:start].strip(), row[start:]) for row in rows] == sentence_pairs(3, seed=5)


def test_wrong_numbers_are_explained_on_stderr(capsys):
    assert main(["corpus", "--pairs", "-3"]) == 2
    assert capsys.readouterr().err == "python -m lab corpus: n (-3) must be at least 0\n"


def test_an_unknown_subcommand_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["corpse"])
    assert "invalid choice" in capsys.readouterr().err


def test_the_module_runs_as_a_program(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["lab", "corpus", "--pairs", "1"])
    monkeypatch.delitem(sys.modules, "lab.__main__")
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("lab", run_name="__main__")
    assert ended.value.code == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_every_subcommand_is_listed(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    printed = capsys.readouterr().out
    for command in ("corpus", "assemble", "train", "little", "page"):
        assert f"    {command} " in printed


def test_looking_at_the_help_takes_no_torch():
    code = "import lab.__main__, trainer.__main__, benchmarks.__main__, sys; "
    done = subprocess.run(
        [sys.executable, "-c", code + "print('torch' in sys.modules, 'matplotlib' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False False\n"
