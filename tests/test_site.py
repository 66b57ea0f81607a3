"""The check of the built site: it reports broken pages and accepts good ones."""

import runpy
from pathlib import Path

import pytest
from explorer_pages import BROWSER, in_a_browser

CHECK = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "check_site.py"))
GOOD = (
    '<h1 id="top">A page</h1><pre><code>short</code></pre><a href="b.html#there">b</a><a href="#top">up</a>'
)
OTHER = '<p id="there">The other page</p><a href="https://example.org/nowhere">out</a>'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    pages = tmp_path / "site"
    pages.mkdir()
    (pages / "a.html").write_text(GOOD)
    (pages / "b.html").write_text(OTHER)
    return pages


def test_links_to_missing_files_and_anchors(site: Path):
    assert CHECK["broken_links"](site) == []
    (site / "b.html").write_text('<a href="c.html">c</a><a href="a.html#bottom">a</a><img src="d.png">')
    assert CHECK["broken_links"](site) == [
        "a.html: no anchor for b.html#there",
        "b.html: no file for c.html",
        "b.html: no anchor for a.html#bottom",
        "b.html: no file for d.png",
    ]


@in_a_browser
def test_pages_that_do_not_fit(site: Path):
    assert CHECK["too_wide"](site, BROWSER) == []
    box = "display: block; width: 300px; overflow: auto"
    (site / "a.html").write_text(f'<pre><code style="{box}">{"x" * 200}</code></pre>')
    (site / "b.html").write_text('<div style="width: 800px">wide</div><img src="d.png">')
    found = CHECK["too_wide"](site, BROWSER)
    assert f"a.html at 1280 pixels: cut off: {'x' * 60}" in found
    assert any(line.startswith("b.html at 390 pixels: the page is 8") for line in found)
    assert any(line.startswith("b.html at 1280 pixels: no picture at ") for line in found)
    assert not any(line.startswith("a.html at 390") for line in found)
