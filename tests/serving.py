"""A Jupyter server with formgrader, in a course's root; and a server of plain files."""

import json
import os
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Ask = Callable[..., str]
ROOT = Path(__file__).parents[1]
TOKEN = "t"
PATIENCE = 120  # times half a second
HEADERS = {"Authorization": f"token {TOKEN}"}


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(root: Path, python: str = sys.executable) -> Iterator[tuple[int, Ask]]:
    """Start a server; gives its port, and a function that asks it for a path.

    Args:
        root: of the course.
        python: runs it, with the packages that are installed for this one.
    """
    port = free_port()
    command = [
        *(python, "-m", "jupyter_server", "--no-browser", "--allow-root", f"--port={port}"),
        *(f"--IdentityProvider.token={TOKEN}", "--ServerApp.ip=127.0.0.1"),
    ]
    environment = os.environ | {"JUPYTER_RUNTIME_DIR": str(root / "runtime")}
    if python != sys.executable:
        environment |= {
            "PYTHONPATH": os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")]),
            "JUPYTER_CONFIG_PATH": f"{sys.prefix}/etc/jupyter",
            "JUPYTER_PATH": f"{sys.prefix}/share/jupyter",
        }

    def ask(path: str, method: str = "GET", content: dict | None = None) -> str:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/{path}",
            headers=HEADERS | {"Content-Type": "application/json"},
            method=method,
            data=None if content is None else json.dumps(content).encode(),
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read().decode()

    with (root / "server.log").open("w") as log:
        process = subprocess.Popen(command, cwd=root, stdout=log, stderr=log, env=environment)
        try:
            for _ in range(PATIENCE):
                with suppress(urllib.error.URLError, ConnectionError):
                    ask("api/status")
                    break
                time.sleep(0.5)
            else:
                raise TimeoutError(f"no server came up: {(root / 'server.log').read_text()}")
            yield port, ask
        finally:
            process.terminate()
            process.wait(30)


class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder, without a line in the terminal for each."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(root: Path) -> Iterator[str]:
    """Serve a folder on a free port; gives its address."""
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *asked: Quiet(*asked, directory=str(root))
    ) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
