"""Check the pages of the site that `make docs` builds: links, pictures, and how wide they are on two screens.

    python tools/check_site.py build/site

No page is wider than its screen (1280 and 390 pixels), and on the larger one, no code is cut off. This needs
chromium; without it, only links are checked.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

WIDTHS = (1280, 390)
NOT_FOUND = "404.html"  # its links are absolute, for a server

# Each page is loaded into a frame, one after the other. Code is cut off if it is wider than its box.
HARNESS = """<!doctype html><pre id="results"></pre><script>
const pages = PAGES, widths = WIDTHS, found = [];
const frame = document.createElement("iframe");
frame.style.border = 0;
frame.height = 900;
document.body.append(frame);
function measured(page, width) {
  const view = frame.contentDocument.documentElement;
  if (view.scrollWidth > width) found.push([page, width, `the page is ${view.scrollWidth} pixels wide`]);
  for (const picture of frame.contentDocument.images)
    if (!picture.naturalWidth) found.push([page, width, `no picture at ${picture.src}`]);
  if (width < 1000) return;
  for (const code of frame.contentDocument.querySelectorAll("pre code"))
    if (code.clientWidth && code.scrollWidth > code.clientWidth + 1)
      found.push([page, width, `cut off: ${code.textContent.trim().slice(0, 60)}`]);
}
function next(i) {
  if (i === pages.length * widths.length) {
    document.getElementById("results").textContent = JSON.stringify({ found, seen: i });
    return;
  }
  const page = pages[i % pages.length], width = widths[Math.floor(i / pages.length)];
  frame.width = width;
  frame.onload = () => { measured(page, width); next(i + 1); };
  frame.src = ROOT + page;
}
next(0);
</script>"""


class Page(HTMLParser):
    """The anchors of a page, and what it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Store anchors and links."""
        given = dict(attrs)
        self.anchors.update(filter(None, (given.get("id"), given.get("name"))))
        self.links += filter(None, (given.get("href"), given.get("src")))


def broken_links(site: Path) -> list[str]:
    """Return the broken links inside the site, one line each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    wrong = []
    for path, page in pages.items():
        if path.name == NOT_FOUND:
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"{path.relative_to(site)}: no file for {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{path.relative_to(site)}: no anchor for {link}")
    return wrong


def too_wide(site: Path, browser: str) -> list[str]:
    """Return what does not fit on the two screens, one line each."""
    pages = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    pages = [page for page in pages if page != NOT_FOUND]
    text = HARNESS.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(WIDTHS))
    with tempfile.TemporaryDirectory() as place:
        harness = Path(place) / "harness.html"
        harness.write_text(text.replace("ROOT", json.dumps(site.as_uri() + "/")), encoding="utf-8")
        shown = subprocess.run(
            [
                browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                "--allow-file-access-from-files", "--virtual-time-budget=600000", "--window-size=1400,1000",
                f"--user-data-dir={place}/browser", "--dump-dom", harness.as_uri(),
            ],
            check=True,
            capture_output=True,
            text=True,
            timeout=600,
        ).stdout  # fmt: skip
    results = re.search(r'<pre id="results">(.*?)</pre>', shown, re.DOTALL)
    if results is None or not results[1]:
        raise SystemExit("the browser ended before it had seen all pages")
    document = json.loads(html.unescape(results[1]))
    assert document["seen"] == len(pages) * len(WIDTHS)
    return [f"{page} at {width} pixels: {what}" for page, width, what in document["found"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("site", type=Path)
    site = parser.parse_args().site.resolve()
    wrong = broken_links(site)
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no chromium on the path: widths of pages are not checked")
    else:
        wrong += too_wide(site, browser)
    for line in wrong:
        print(line)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
