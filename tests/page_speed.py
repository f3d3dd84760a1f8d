"""Measure the translator of the pages in a real browser: `python -m tests.page_speed`."""

import json
import sys
import tempfile
from pathlib import Path

from lab.page import writing
from tests.browsing import BROWSER, browsing
from tests.test_lab_page import BOOKS

MEASURE = """(() => {
  const { Model, greedy, beam, content } = courseTranslator;
  const ms = (act) => {
    const start = performance.now();
    const found = act();
    return [performance.now() - start, found];
  };
  const [unpacking, model] = ms(() => new Model(content()));
  const time = (search) => {
    for (const sentence of content().examples) search(sentence); // warm
    const five = Array(5).fill(content().examples).flat();
    const runs = five.map((sentence) => {
      const [spent, found] = ms(() => search(sentence));
      return spent / (found.ids.length + 1);
    }).sort((a, b) => a - b);
    return { median: runs[Math.floor(runs.length / 2)], most: runs.at(-1) };
  };
  return JSON.stringify({
    unpacking,
    greedy: time((one) => greedy(model, one)),
    beam: time((one) => beam(model, one, 4)),
  });
})()"""


def main() -> int:
    """Print milliseconds a token, greedy and with a beam of 4."""
    if BROWSER is None:
        print("there is no Chromium on this machine", file=sys.stderr)
        return 1
    scripts = writing.code_script(), BOOKS.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        page = Path(name) / "page.html"
        body = "".join(f"<script>{script}</script>" for script in scripts)
        page.write_text(f"<meta charset=utf-8>{body}", encoding="utf-8")
        with browsing(Path(name) / "profile", {}) as window:
            ready = "globalThis.courseTranslator?.content()"
            found = json.loads(window.show(page.as_uri(), ready, MEASURE))
    print(f"the model's numbers unpacked in {found['unpacking']:.0f} ms")
    for search in ("greedy", "beam"):
        print(
            f"{search:7} {found[search]['median']:.2f} ms a token (median), "
            f"{found[search]['most']:.2f} at most"
        )
    print(
        *(
            f"{len(text.encode()):,} bytes, {writing.gzipped(text):,} compressed"
            for text in scripts
        ),
        sep="\n",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
