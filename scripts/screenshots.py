"""Makes the pictures of the docs from the demo's store, in headless Chromium.

python scripts/screenshots.py [--store demo-store/store] [--out docs/images]
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

BAD_NIGHT = "2026-11-17"
PAGES = {"overview": "index.html", "night": f"{BAD_NIGHT}/index.html"}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def main() -> None:
    """Take each page in light and dark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("demo-store/store"))
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    told = parser.parse_args()
    site = told.store / "dashboard"
    if not (site / "index.html").is_file():
        sys.exit(f"{site}: no dashboard there; run `make demo` first")
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no Chromium: apt-get install chromium")
    told.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name, page in PAGES.items():
            for scheme in ("light", "dark"):
                take(browser, site / page, told.out / f"{name}-{scheme}.png", scheme)
        browser.close()


def take(browser: Browser, page_path: Path, picture: Path, scheme: str) -> None:
    """Take one page as it opens."""
    page = browser.new_page(
        viewport={"width": 1280, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page.goto(page_path.resolve().as_uri(), wait_until="networkidle")
    page.screenshot(path=picture)
    page.close()
    print(picture)


if __name__ == "__main__":
    main()
