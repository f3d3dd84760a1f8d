"""Take README's pictures from the built book and the graded demo class (make pictures).

Needs a Chromium on the PATH; the pictures are committed, so nobody else does.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "book" / "images"
HTML = ROOT / "book" / "_build" / "html"
BRIGHT = ("index", "03_attention", "05_layer_norm")
DARK = ("08_teacher_forcing", "12_language_model", "13_pictures")
SEEN, SHOWN, GAP = (1240, 1500), (400, 484), 12  # of a page, and on the sheet
FEEDBACK_PAGE = ROOT / "build" / "demo" / "feedback" / "lena" / "03_attention" / "03_attention.html"


def photograph(
    page: Path, size: tuple[int, int], browser: str, *, dark: bool = False
) -> Image.Image:
    """What a browser without any network shows of a page, `size` in CSS pixels."""
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        command = [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"),
            *(f"--user-data-dir={folder}/profile", "--window-size={},{}".format(*size)),
            *(["--blink-settings=preferredColorScheme=0"] if dark else []),
            *(f"--screenshot={shot}", page.as_uri()),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        return Image.open(shot).convert("RGB")


def sheet(browser: str) -> Image.Image:
    """Pages side by side: a row in the light and one in the dark."""
    wide, tall = (SHOWN[0] + GAP) * len(BRIGHT) - GAP, 2 * SHOWN[1] + GAP
    whole = Image.new("RGB", (wide, tall), "white")
    for row, names in enumerate((BRIGHT, DARK)):
        for column, name in enumerate(names):
            taken = photograph(HTML / f"{name}.html", SEEN, browser, dark=bool(row))
            place = column * (SHOWN[0] + GAP), row * (SHOWN[1] + GAP)
            whole.paste(taken.resize(SHOWN, Image.Resampling.LANCZOS), place)
    return whole


def save(picture: Image.Image, name: str) -> None:
    """Write a picture in few colours: text stays sharp and the file small."""
    IMAGES.mkdir(exist_ok=True)
    few = picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(IMAGES / name, optimize=True)
    print(f"{(IMAGES / name).relative_to(ROOT)}: {(IMAGES / name).stat().st_size // 1024} kB")


def main() -> int:
    """Take both pictures."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("error: no Chromium found; install one to take the pictures", file=sys.stderr)
        return 2
    save(sheet(browser), "pages.png")
    save(photograph(FEEDBACK_PAGE, (1000, 820), browser), "feedback-page.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
