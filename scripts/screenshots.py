"""Makes the pictures of the docs: every page of the site that the demo's store becomes with
shown_site.py, in light and dark, wide and narrow, in headless Chromium.

python -m scripts.screenshots [--out docs/images] [--whole]

The demo is run anew: pictures show what the code publishes now. They are named
page-width-scheme.png; those of pages that are no longer there are removed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from scripts.shown_site import AFTERWARDS, PAGES, lose_a_log, make_site, question_page

SCHEMES = ("light", "dark")
WIDTHS: Mapping[str, tuple[int, int]] = {"wide": (1280, 800), "narrow": (390, 844)}
COLOURS = 96  # enough for a page, its letters smooth, at a third of the bytes
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def main() -> None:
    """Make the site, and take each page as it opens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--whole", action="store_true", help="down to the foot of each page")
    told = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no Chromium: apt-get install chromium")
    told.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        demo, folder = Path(name) / "demo-store", Path(name) / "demo"
        subprocess.run([sys.executable, "-m", "ragmetrics", "demo", "--dir", demo], check=True)
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        site = make_site(demo, folder)
        pages = {**PAGES, **question_page(site)}
        taken = take_all(browser, site, pages, told.out, told.whole)
        lose_a_log(folder)
        taken += take_all(browser, site, AFTERWARDS, told.out, told.whole)
        browser.close()
    remove_others(told.out, taken)


def take_all(
    browser: Browser, site: Path, pages: Mapping[str, str], out: Path, whole: bool
) -> list[Path]:
    """Take pages in both schemes and widths; return the pictures."""
    taken = []
    for scheme in SCHEMES:
        for size, (width, height) in WIDTHS.items():
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page = context.new_page()
            for name, address in pages.items():
                picture = out / f"{name}-{size}-{scheme}.png"
                take(page, f"{site.resolve().as_uri()}/{address}", picture, whole)
                taken.append(picture)
            context.close()
    return taken


def take(page: Page, address: str, picture: Path, whole: bool) -> None:
    """Take one page, its charts drawn."""
    page.goto(address, wait_until="load")
    if page.locator(".plot").count():
        page.wait_for_selector("html.drawn")
    taken = Image.open(BytesIO(page.screenshot(full_page=whole))).convert("RGB")
    taken.quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)
    print(picture)


def remove_others(folder: Path, taken: Iterable[Path]) -> None:
    """Remove pictures of this script's naming that were not taken now."""
    kept = set(taken)
    for size in WIDTHS:
        for scheme in SCHEMES:
            for picture in set(folder.glob(f"*-{size}-{scheme}.png")) - kept:
                picture.unlink()


if __name__ == "__main__":
    main()
