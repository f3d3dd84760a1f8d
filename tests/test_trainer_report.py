"""Records are read by kind and in order, bad ones refused by line; tables show what they hold."""

import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tests.conftest import ROOT
from trainer.records import processor
from trainer.report import Table, latest, machine, on_gpu, read, sources

RESULTS = ROOT / "benchmarks" / "results"
VERSIONS = {"python": "3.11.7", "torch": "2.13.0", "sacrebleu": "2.6.0", "numpy": "2.4.6"}
CPU = {"cpu": "EPYC", "cores": 2, "threads": 1, "gpu": []}


def record(what: str = "bench", day: int = 1, **more) -> dict:
    head = {
        "what": what,
        "date": f"2026-11-{day:02}T10:00:00+00:00",
        "command": "python -m benchmarks training",
        "hardware": CPU,
        "versions": VERSIONS,
    }
    return head | more


def write(path: Path, *records: dict) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")


def test_records_of_a_kind_come_oldest_first_from_all_files(tmp_path):
    write(tmp_path / "a.jsonl", record(day=3), record("evaluate", day=1))
    write(tmp_path / "b.jsonl", record(day=2))
    assert [one["date"][8:10] for one in read("bench", tmp_path)] == ["02", "03"]
    assert read("ablation", tmp_path) == []


def test_a_line_that_is_no_record_is_refused_by_file_and_line(tmp_path):
    write(tmp_path / "a.jsonl", record(), {"what": "bench", "date": "2026"})
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2 lacks command, hardware, versions"):
        read("bench", tmp_path)
    (tmp_path / "a.jsonl").write_text('{"what": \n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.jsonl, line 1 is no JSON"):
        read("bench", tmp_path)


def test_a_kind_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="'evaluation' is none of evaluate, bench, ablation"):
        read("evaluation", RESULTS)


def test_what_is_committed_can_be_read():
    kinds = ("evaluate", "bench", "ablation")
    count = sum(len(path.read_text("utf-8").splitlines()) for path in RESULTS.glob("*.jsonl"))
    assert sum(len(read(kind, RESULTS)) for kind in kinds) == count
    for kind in kinds:
        for one in read(kind, RESULTS):
            assert machine(one)
            assert sources([one]).rows


def test_of_equal_measurements_the_last_counts():
    records = [record(day=1, run="a"), record(day=2, run="b"), record(day=3, run="a")]
    assert [one["date"][8:10] for one in latest(records, "run")] == ["03", "02"]
    assert latest(records, "run", "date") == records


def test_the_machine_is_what_did_the_work():
    gpus = CPU | {"gpu": ["H100", "H100"]}
    assert machine(record()) == "EPYC, 1 thread"
    assert machine(record(hardware=CPU | {"threads": 2})) == "EPYC, 2 threads"
    assert machine(record(hardware=gpus)) == "EPYC, 1 thread"
    assert machine(record(hardware=gpus, device="cuda")) == "2 x H100"
    assert machine(record(hardware=CPU | {"gpu": ["H100"]}, device="cuda:0")) == "H100"
    assert on_gpu([record(), record(day=2, device="cuda")]) == [record(day=2, device="cuda")]


def test_processors_of_one_name_are_told_apart(tmp_path: Path):
    told = tmp_path / "cpuinfo"
    for model in (17, 68):
        one = f"processor\t: 0\nmodel\t\t: {model}\ncpu family\t: 26\nmodel name\t: EPYC\n"
        told.write_text(f"{one}\n{one}", encoding="utf-8")
        assert processor(told) == f"EPYC (family 26, model {model})"
    told.write_text("model name\t: Neoverse-N1\n", encoding="utf-8")
    assert processor(told) == "Neoverse-N1"
    told.write_text("Features\t: fp asimd\n", encoding="utf-8")
    assert processor(told) == processor(tmp_path / "none") != ""


def test_sources_name_each_command_once():
    table = sources([record(), record(), record(day=2)])
    assert [row[0] for row in table.rows] == ["2026-11-01", "2026-11-02"]
    assert table.rows[0][1:] == (
        "EPYC, 1 thread",
        "python 3.11.7, torch 2.13.0, sacrebleu 2.6.0",
        "python -m benchmarks training",
    )


def test_fields_of_fields_tell_measurements_apart():
    records = [record(day=day, training={"device": "cpu"}) for day in (1, 2)]
    records.append(record(day=3))
    assert latest(records, "training.device") == records[1:]


def test_a_table_reads_the_same_as_text_and_as_html():
    table = Table(("model", "BLEU"), [("a < b", "9.5"), ("c", "41.0"), ("d", "")], "two & more")
    assert repr(table) == "two & more\nmodel  BLEU\na < b   9.5\nc      41.0\nd"
    page = BeautifulSoup(table._repr_html_(), "html.parser")
    cells = [[cell.text for cell in row.find_all(["th", "td"])] for row in page.find_all("tr")]
    assert cells == [list(row) for row in (table.head, *table.rows)]
    assert [caption.text for caption in page.find_all("p")] == ["two & more"]


@pytest.mark.parametrize("cell", ["41.02", "1,900", "97%", "", "41.5 (41.2 to 41.9)", "9 to 11"])
def test_columns_of_numbers_stand_to_the_right(cell):
    for other, side in (("7", "text-right"), ("2 + 2 layers", "text-left")):
        html = Table(("head",), [(cell,), (other,)])._repr_html_()
        classes = [tag["class"] for tag in BeautifulSoup(html, "html.parser").find_all("td")]
        assert classes == [[side], [side]]


def test_a_table_without_rows_has_its_head():
    assert repr(Table(("model", "BLEU"), [])) == "model  BLEU"
    assert "<th" in Table(("model", "BLEU"), [])._repr_html_()
