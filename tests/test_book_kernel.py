"""The kernel that runs a page's cells: what a cell prints comes in one piece."""

import os
from types import SimpleNamespace

import pytest
from jupyter_client.manager import start_new_kernel

from tests.book_code import kernel

CODE = "import time\nprint('one', end=' ')\ntime.sleep(0.6)\nprint('line')"


@pytest.fixture
def profile(tmp_path, monkeypatch) -> None:
    """The profile that a build makes."""
    monkeypatch.setenv("IPYTHONDIR", "somebody's own")
    kernel.use_settings_of_the_book(SimpleNamespace(outdir=tmp_path / "html"))


@pytest.mark.usefixtures("profile")
def test_what_a_cell_prints_is_not_cut_by_the_clock(capfd):
    manager, client = start_new_kernel(env=dict(os.environ))
    try:
        printed = []
        client.execute_interactive(CODE, output_hook=printed.append)
        names = []
        client.execute_interactive("print('sys' in globals())", output_hook=names.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    streams = [m["content"]["text"] for m in printed if m["msg_type"] == "stream"]
    assert streams == ["one line\n"]
    assert [m["content"]["text"] for m in names if m["msg_type"] == "stream"] == ["False\n"]
    assert "WARNING" not in capfd.readouterr().err
