"""A real browser that is asked by its own protocol, for pages that fetch what they show."""

import asyncio
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tornado.websocket import websocket_connect

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=5000",
    "--dump-dom",
]
LEFT_OUT = ("--dump-dom", "--virtual-time-budget", "--host-resolver-rules")
NO_OTHER_HOST = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
PATIENCE = 60  # seconds until a page that never shows what is waited for has failed


class Page:
    """A page of a running browser."""

    def __init__(self, socket: str, headers: Mapping[str, str]):
        """Take the page with this address of its protocol; it asks servers with these headers."""
        self._socket = socket
        self._headers = dict(headers)

    def show(
        self, address: str, until: str, then: str = "document.body.outerHTML", width: int = 1280
    ) -> Any:
        """Go to an address, wait until a JavaScript expression is true, and evaluate another."""
        return asyncio.run(self._show(address, until, then, width))

    async def _show(self, address: str, until: str, then: str, width: int) -> Any:
        connection = await websocket_connect(self._socket, max_message_size=50_000_000)

        async def ask(number: int, method: str, **parameters: Any) -> Any:
            asked = {"id": number, "method": method, "params": parameters}
            await connection.write_message(json.dumps(asked))
            while True:
                told = json.loads(await connection.read_message() or "{}")
                if told.get("id") == number:
                    return told["result"]

        try:
            await ask(1, "Network.enable")
            await ask(2, "Network.setExtraHTTPHeaders", headers=self._headers)
            window = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            await ask(3, "Emulation.setDeviceMetricsOverride", **window)
            await ask(4, "Page.navigate", url=address)
            for number in range(5, 5 + 5 * PATIENCE):
                await asyncio.sleep(0.2)
                found = await ask(number, "Runtime.evaluate", expression=f"Boolean({until})")
                if found["result"].get("value"):
                    break
            else:
                raise TimeoutError(f"{address} never came to {until}")
            found = await ask(0, "Runtime.evaluate", expression=then)
            return found["result"]["value"]
        finally:
            connection.close()
            while await connection.read_message() is not None:
                pass  # until both ends have closed it


@contextmanager
def browsing(profile: Path, headers: Mapping[str, str]) -> Iterator[Page]:
    """Start a browser with a profile of its own; gives its first page, arguments as there."""
    options = [option for option in OPTIONS if not option.startswith(LEFT_OUT)]
    options += [NO_OTHER_HOST, "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    command = [str(BROWSER), *options]
    with subprocess.Popen(
        [*command, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield Page(_first_page(profile / "DevToolsActivePort"), headers)
        finally:
            process.terminate()


def _first_page(told: Path) -> str:
    for _ in range(5 * PATIENCE):
        if told.is_file() and (lines := told.read_text().split()):
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json/list") as answer:
                for page in json.loads(answer.read()):
                    if page["type"] == "page":
                        return page["webSocketDebuggerUrl"]
        time.sleep(0.2)
    raise TimeoutError("the browser did not start")
