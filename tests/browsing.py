"""A real browser that is asked by its own protocol, for pages that fetch what they show."""

import asyncio
import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
# for what is asked of all of a page: what is off the screen is laid out, too
WHOLE = """{
  const whole = new CSSStyleSheet();
  whole.replaceSync("section { content-visibility: visible !important }");
  document.adoptedStyleSheets.push(whole);
}"""
PATIENCE = 240  # seconds until a page that never shows what is waited for has failed


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
        async with talking(self._socket) as talk:
            await talk.ask("Network.enable")
            await talk.ask("Network.setExtraHTTPHeaders", headers=self._headers)
            await talk.ask("Emulation.setCPUThrottlingRate", rate=self.slowness)
            await talk.be_wide(widths[0])
            await talk.ask("Page.enable")
            await talk.ask("Page.addScriptToEvaluateOnNewDocument", source=self.first)
            await talk.ask("Page.navigate", url=address)
            seen = []
            for width in widths:
                await talk.be_wide(width)
                if not await talk.becomes(f"({until}) && innerWidth == {width}"):
                    raise TimeoutError(f"{address} never came to {until}")
                seen.append(await talk.value(then))
            return seen

    def walk(self, address: str, steps: Sequence[tuple[str, str]], width: int = 1280) -> None:
        """Go to an address; then do one thing after the other, each when the last is true."""
        asyncio.run(self._walk(address, steps, width))

    async def _walk(self, address: str, steps: Sequence[tuple[str, str]], width: int) -> None:
        async with talking(self._socket) as talk:
            await talk.ask("Page.enable")
            await talk.be_wide(width)
            await talk.ask("Page.addScriptToEvaluateOnNewDocument", source=self.first)
            await talk.ask("Page.navigate", url="about:blank")  # else another # would load nothing
            await talk.ask("Page.navigate", url=address)
            for act, until in steps:
                await talk.value(act)
                if not await talk.becomes(until):
                    raise TimeoutError(f"{act or address} never led to {until}")

    def look(self, address: str, asked: Sequence[tuple[int, str]]) -> tuple[list[str], list[Any]]:
        """Let seconds of the page's own time pass, then evaluate expressions in windows so wide.

        That time passes as fast as the page allows, and stands still in between: a page that has
        been looked at is for no other way to show one. Also gives what its console said.
        """
        return asyncio.run(self._look(address, asked))

    async def _look(
        self, address: str, asked: Sequence[tuple[int, str]]
    ) -> tuple[list[str], list[Any]]:
        async with talking(self._socket) as talk:
            for domain in ("Page", "Runtime", "Log"):
                await talk.ask(f"{domain}.enable")
            await talk.be_wide(asked[0][0])
            await talk.ask("Page.addScriptToEvaluateOnNewDocument", source=self.first)
            talk.told.clear()  # of the page before
            await talk.ask("Page.navigate", url=address)
            await talk.let_pass(5000)
            seen, wide = [], asked[0][0]
            for width, expression in asked:
                if width != wide:
                    await talk.be_wide(wide := width)
                    await talk.let_pass(1000)
                seen.append(await talk.value(expression))
            return talk.said(), seen


class Talk:
    """A connection to a page of a browser, by its protocol."""

    def __init__(self, connection: WebSocketClientConnection):
        self._connection = connection
        self._numbers = itertools.count(1)
        self.told: list[dict[str, Any]] = []  # what the browser says by itself

    async def _hear(self) -> dict[str, Any]:
        told = json.loads(await self._connection.read_message() or '{"id": 0}')
        if "id" not in told:
            self.told.append(told)
        return told

    async def ask(self, method: str, **parameters: Any) -> Any:
        """Have the browser do something; what came of it."""
        number = next(self._numbers)
        asked = {"id": number, "method": method, "params": parameters}
        await self._connection.write_message(json.dumps(asked))
        while (told := await self._hear()).get("id") != number:
            pass
        return told["result"]

    async def value(self, expression: str) -> Any:
        """What a JavaScript expression is in the page."""
        return (await self.ask("Runtime.evaluate", expression=expression))["result"].get("value")

    async def becomes(self, expression: str) -> bool:
        """Whether an expression becomes true before patience ends."""
        for _ in range(5 * PATIENCE):
            await asyncio.sleep(0.2)
            if await self.value(f"Boolean({expression})"):
                return True
        return False

    async def be_wide(self, width: int) -> None:
        """Have the page in a window of this width."""
        window = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        await self.ask("Emulation.setDeviceMetricsOverride", **window)

    async def let_pass(self, milliseconds: int) -> None:
        """Until so much of the page's own time has passed."""
        over = "Emulation.virtualTimeBudgetExpired"
        self.told = [one for one in self.told if one["method"] != over]
        policy = {"policy": "pauseIfNetworkFetchesPending", "budget": milliseconds}
        await self.ask("Emulation.setVirtualTimePolicy", **policy)
        async with asyncio.timeout(2 * PATIENCE):
            while not any(one["method"] == over for one in self.told):
                await self._hear()

    def said(self) -> list[str]:
        """What the page's console said, whoever made it say it."""
        found = []
        for one in self.told:
            told = one["params"]
            if one["method"] == "Runtime.consoleAPICalled":
                words = [str(each.get("value", each.get("description"))) for each in told["args"]]
                found.append(" ".join(words))
            elif one["method"] == "Runtime.exceptionThrown":
                details = told["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif one["method"] == "Log.entryAdded":
                found.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
        return found


@asynccontextmanager
async def talking(socket: str) -> AsyncIterator[Talk]:
    """A connection to the page with this address; closed by both ends after that."""
    connection = await websocket_connect(socket, max_message_size=50_000_000)
    try:
        yield Talk(connection)
    finally:
        connection.close()
        while await connection.read_message() is not None:
            pass


@contextmanager
def browsing(profile: Path, headers: Mapping[str, str], *more: str) -> Iterator[Page]:
    """Start a browser with a profile of its own, and more options; gives its first page."""
    own = ["--remote-debugging-port=0", f"--user-data-dir={profile}", *more]
    command = [str(BROWSER), *OPTIONS, *own]
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
