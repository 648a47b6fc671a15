"""The page in a real browser: it runs its own script alone, filters, sorts, and fits a phone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.html_report import page, subjects
from tests.html.test_html_page import HOSTILE, Reader, saying
from tests.support import chromium, pages

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE_WORDS = "".join(HOSTILE[:-2])

pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason="needs a browser: apt-get install chromium"
)

PAIRS = 40


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a session with many pairs, and one that tries to write into it."""
    folder = tmp_path_factory.mktemp("many")
    found = subjects.of_files([pages.write_pairs(folder, PAIRS, cases=2)])
    path = folder / "page.html"
    page.write(path, [*found, saying(HOSTILE_WORDS)])
    return path


def test_pairs_are_filtered_and_sorted_by_the_address(many: Path) -> None:
    opened = chromium.dump(many, "status=passed&sort=speedup&q=norm&theme=dark")
    assert opened.console == []
    listed = Reader("".join(re.findall("<li [^>]*data-order[^>]*>", opened.dom)), whole=False)
    assert len(listed.all("li")) == PAIRS + 1
    found = [attributes for attributes in listed.all("li") if "hidden" not in attributes]
    assert 2 < len(found) < PAIRS / 2
    assert {pair["data-status"] for pair in found} == {"passed"}
    assert all("norm" in str(pair["data-words"]) for pair in found)
    speedups = [float(str(pair["data-speedup"])) for pair in found]
    assert speedups == sorted(speedups, reverse=True)
    assert f"{len(found)} of {PAIRS + 1} pairs" in opened.dom
    assert 'data-theme="dark"' in opened.dom
    # Whatever candidates have written into it, there is one script and it is ours.
    assert len(re.findall("<script", opened.dom)) == 1
    assert not re.search(r"<img (?!class)", opened.dom)


def test_nothing_is_wider_than_a_phone(tmp_path: Path) -> None:
    asking = """
<script>
document.querySelectorAll("details").forEach((one) => { one.open = true; });
const root = document.documentElement;
parent.postMessage(`${root.scrollWidth} of ${root.clientWidth}`, "*");
</script>
</body>"""
    found = subjects.of_files([pages.write_pairs(tmp_path, 18, cases=2)])
    source = page.html([*found, saying(HOSTILE_WORDS), saying("x" * 5000)])
    # Our own page would not let it run.
    source = re.sub(r"<meta http-equiv.*>", "", source).replace("</body>", asking)
    (tmp_path / "asked.html").write_text(source, encoding="utf-8")
    # A window of the browser is at least 500 pixels wide, a frame may be as narrow as a phone.
    frame = tmp_path / "frame.html"
    frame.write_text(
        """<!DOCTYPE html>
<script>addEventListener("message", (event) => { document.title = event.data; });</script>
<iframe src="asked.html" width="400" height="800"></iframe>""",
        encoding="utf-8",
    )
    opened = chromium.dump(frame)
    assert re.findall("<title>(.*)</title>", opened.dom) == ["400 of 400"]
