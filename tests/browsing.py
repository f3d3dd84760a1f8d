"""A real browser that is asked by its own protocol, for pages that fetch what they show."""

import asyncio
import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
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
# for what is asked of all of a page: what is off the screen is laid out, too
WHOLE = """{
  const whole = new CSSStyleSheet();
  whole.replaceSync("section { content-visibility: visible !important }");
  document.adoptedStyleSheets.push(whole);
}"""
PATIENCE = 60  # seconds until a page that never shows what is waited for has failed


class Page:
    """A page of a running browser."""

    def __init__(self, socket: str, headers: Mapping[str, str]):
        """Take the page with this address of its protocol; it asks servers with these headers."""
        self._socket = socket
        self._headers = dict(headers)
        self.slowness = 1  # how many times slower than the machine's the page's processor is
        self.first = ""  # a script that runs in each page before anything of its own

    def show(
        self, address: str, until: str, then: str = "document.body.outerHTML", width: int = 1280
    ) -> Any:
        """Go to an address, wait until a JavaScript expression is true, and evaluate another."""
        return self.show_in(address, until, then, [width])[0]

    def show_in(self, address: str, until: str, then: str, widths: Sequence[int]) -> list[Any]:
        """The same in windows of several widths, one after the other, the page loaded once."""
        return asyncio.run(self._show(address, until, then, widths))

    async def _show(self, address: str, until: str, then: str, widths: Sequence[int]) -> list[Any]:
        connection = await websocket_connect(self._socket, max_message_size=50_000_000)
        numbers = itertools.count(1)

        async def ask(method: str, **parameters: Any) -> Any:
            number = next(numbers)
            asked = {"id": number, "method": method, "params": parameters}
            await connection.write_message(json.dumps(asked))
            while True:
                told = json.loads(await connection.read_message() or "{}")
                if told.get("id") == number:
                    return told["result"]

        async def be_wide(width: int) -> None:
            window = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            await ask("Emulation.setDeviceMetricsOverride", **window)

        async def become(expression: str) -> None:
            for _ in range(5 * PATIENCE):
                await asyncio.sleep(0.2)
                found = await ask("Runtime.evaluate", expression=f"Boolean({expression})")
                if found["result"].get("value"):
                    return
            raise TimeoutError(f"{address} never came to {expression}")

        try:
            await ask("Network.enable")
            await ask("Network.setExtraHTTPHeaders", headers=self._headers)
            await ask("Emulation.setCPUThrottlingRate", rate=self.slowness)
            await be_wide(widths[0])
            await ask("Page.enable")
            await ask("Page.addScriptToEvaluateOnNewDocument", source=self.first)
            await ask("Page.navigate", url=address)
            seen = []
            for width in widths:
                await be_wide(width)
                await become(f"({until}) && innerWidth == {width}")
                found = await ask("Runtime.evaluate", expression=then)
                seen.append(found["result"]["value"])
            return seen
        finally:
            connection.close()
            while await connection.read_message() is not None:
                pass  # until both ends have closed it


@contextmanager
def browsing(profile: Path, headers: Mapping[str, str], *more: str) -> Iterator[Page]:
    """Start a browser with a profile of its own, and more options; gives its first page."""
    options = [option for option in OPTIONS if not option.startswith(LEFT_OUT)]
    options += [NO_OTHER_HOST, "--remote-debugging-port=0", f"--user-data-dir={profile}", *more]
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
