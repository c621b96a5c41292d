"""The page in a real browser, without a window: links, pictures, search, sorting, curves, keyboard, contrast, phone, print.

It needs Playwright and a Chromium: `make browser` brings both; Debian's package chromium, or chromium-headless-shell, does for
the latter.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ensemblepp.report.page import anchor

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: `make browser` brings it")

#: What Debian and others call it.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

#: Text whose contrast with its ground is below 4.5 (WCAG 2 AA), with the ground of the nearest ancestor that has one.
FAINT = """() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  let seen = 0;
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.getClientRects().length || element.closest("script, style")) continue;
    seen += 1;
    const [one, other] = [light(parse(getComputedStyle(element).color)), light(ground(element))].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (other + 0.05);
    if (contrast < 4.5) faint.push(`${element.outerHTML.slice(0, 120)}: ${contrast.toFixed(2)}`);
  }
  return [seen, faint];
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as started:
        found = next(filter(None, map(shutil.which, NAMES)), None)
        own = os.path.exists(started.chromium.executable_path)  # noqa: PTH110
        if not (own or found):
            pytest.skip("no Chromium: `make browser` brings one, or Debian's package chromium")
        launched = started.chromium.launch(executable_path=None if own else found)
        yield launched
        launched.close()


@pytest.fixture
def opened(browser, page, request) -> Iterator[playwright.Page]:
    """The page in a window of its own, as `request.param` has it; at its end nothing was said, asked for or run."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | getattr(request, "param", {}))
    tab = context.new_page()
    said, asked = [], []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda wanted: asked.append(wanted.url))
    tab.goto(page.as_uri())
    title = tab.title()
    yield tab
    assert said == []
    assert [url for url in asked if not url.startswith(("data:", page.as_uri()))] == []
    assert tab.title() == title == "Ensemble++ at scale smoke: does the paper hold?"
    context.close()


def shown(tab: playwright.Page) -> list[str]:
    """Heads of the articles that are to be seen."""
    return [head.inner_text() for head in tab.locator("article h4").all() if head.is_visible()]


def explore(tab: playwright.Page, study: str = "small") -> playwright.Locator:
    details = tab.locator(f'.explore[data-study="{study}"]')
    details.locator("summary").click()
    details.locator("canvas").wait_for()
    return details


def test_every_picture_is_drawn(opened):
    assert opened.evaluate("[...document.images].map((image) => image.naturalWidth)") == [60, 60, 60]


def test_every_link_within_the_page_leads_to_what_is_seen(opened):
    targets = opened.evaluate("[...document.querySelectorAll('a[href^=\"#\"]')].map((link) => link.getAttribute('href'))")
    assert len(targets) > 5
    for target in targets:
        opened.evaluate("(target) => { location.hash = target }", target)
        assert opened.locator(target).is_visible(), target


def test_every_other_link_leads_to_a_file(opened, page):
    targets = opened.evaluate("[...document.querySelectorAll('a:not([href^=\"#\"])')].map((link) => link.href)")
    assert len(targets) > 5
    for target in targets:
        assert Path(target.removeprefix("file://")).is_file()
        assert Path(target.removeprefix("file://")).is_relative_to(page.parent)


@pytest.mark.parametrize(
    ("words", "heads", "rows"),
    [
        ("Figure 2a", ["Figure 2a"], 1),
        ("fig. 2", ["Figure 2a", "Figure 2, table two"], 1),
        ("figure 2c", ["Figure 2a", "Figure 2, table two"], 1),
        ("Claim", [], 2),
        ("320", [], 1),
        ("nothing of the kind", [], 0),
    ],
)
def test_search(opened, words, heads, rows):
    everything = shown(opened)
    opened.locator("#words").fill(words)
    assert shown(opened) == heads
    assert opened.locator(".ledger tbody tr:visible").count() == rows
    opened.locator("#words").fill("")
    assert shown(opened) == everything


def test_a_jump_finds_what_a_search_has_hidden(opened):
    opened.locator("#words").fill("claim")
    target = f"#{anchor('small-one')}"
    assert not opened.locator(target).is_visible()
    opened.locator(f'.ledger a[href="{target}"]').click()
    opened.locator(target).wait_for(state="visible")
    assert opened.locator("#words").input_value() == ""


def test_a_table_is_sorted_by_number_and_by_name(opened):
    table = opened.locator(f"#{anchor('small-two')} table")
    column = "(table, at) => [...table.tBodies[0].rows].map((row) => row.cells[at].textContent.slice(0, 2))"
    button = table.get_by_role("button", name="value")
    button.press("Enter")
    assert table.evaluate(column, 0)[:2] == ["a", "b"], "a dash is behind all numbers"
    assert table.locator("th[aria-sort=ascending]").inner_text().startswith("value")
    button.press("Enter")
    assert table.evaluate(column, 0)[1:] == ["b", "a"]
    table.get_by_role("button", name="rounds").click()
    assert table.evaluate(column, 2) == ["9", "10", "10"]


def test_the_ledger_is_sorted_by_verdict(opened):
    rows = "() => [...document.querySelectorAll('.ledger tbody tr')].map((row) => row.id)"
    first = opened.evaluate(rows)
    opened.get_by_role("button", name="tuned").click()
    assert opened.evaluate(rows) == first[::-1], "computed holds, the other is not run"


def test_agents_are_switched_off_and_on(opened):
    details = explore(opened)
    ink = """(canvas) => { const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let sum = 0; for (let at = 3; at < data.length; at += 4) sum += data[at] > 0; return sum; }"""
    boxes = details.locator("fieldset").nth(1).get_by_role("checkbox")
    assert boxes.count() == 3
    whole = details.locator("canvas").evaluate(ink)
    boxes.nth(0).uncheck()
    fewer = details.locator("canvas").evaluate(ink)
    assert fewer < whole
    boxes.nth(0).check()
    assert details.locator("canvas").evaluate(ink) == whole
    details.get_by_role("checkbox", name="single seeds").check()
    assert details.locator("canvas").evaluate(ink) > whole


def test_axes_and_environments(opened):
    details = explore(opened)
    picture = details.locator("canvas").evaluate("(canvas) => canvas.toDataURL()")
    for name in ("log rounds", "log regret"):
        details.get_by_role("checkbox", name=name).check()
        changed = details.locator("canvas").evaluate("(canvas) => canvas.toDataURL()")
        assert changed != picture
        picture = changed
    details.get_by_role("combobox").select_option("Hill")
    assert details.get_by_role("slider").get_attribute("aria-label") == "regret by round, Hill"


def test_curves_are_read_by_mouse_and_by_keys(opened):
    chart = explore(opened).get_by_role("slider")
    assert chart.get_attribute("aria-valuenow") == "100"
    chart.press("Home")
    assert chart.get_attribute("aria-valuenow") == "1"
    chart.press("ArrowRight")
    assert chart.get_attribute("aria-valuenow") == "2"
    assert chart.get_attribute("aria-valuetext").startswith("round 2: Ensemble++, M = 8 ")
    box = chart.bounding_box()
    opened.mouse.move(box["x"] + box["width"] - 40, box["y"] + box["height"] / 2)
    assert chart.get_attribute("aria-valuenow") == "100"
    value = opened.locator(".values").first
    assert value.inner_text().split()[0].startswith(("4", "5"))


def test_all_that_can_be_used_is_reached_by_keys_and_says_what_it_is(opened):
    explore(opened)
    usable = "a[href], button, input, select, summary, [tabindex='0']"
    wanted = opened.evaluate(
        "(usable) => [...document.querySelectorAll(usable)].filter((element) => element.checkVisibility()).length", usable
    )
    reached = 1
    opened.locator(".skip").focus()
    opened.keyboard.press("Tab")
    while opened.evaluate("document.activeElement !== document.body") and reached <= wanted:
        reached += 1
        at = opened.locator("*:focus")
        assert at.evaluate("(at) => getComputedStyle(at).outlineStyle") == "solid", at.evaluate("(at) => at.outerHTML")
        assert at.evaluate("(at) => at.ariaLabel || at.labels?.[0]?.textContent || at.textContent.trim()")
        opened.keyboard.press("Tab")
    assert reached == wanted


@pytest.mark.parametrize("opened", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True, ids=["light", "dark"])
def test_contrast(opened):
    explore(opened)
    opened.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true })")
    opened.locator("#words").fill("e")
    seen, faint = opened.evaluate(FAINT)
    assert seen > 50
    assert faint == []


@pytest.mark.parametrize("opened", [{"viewport": {"width": 390, "height": 844}}], indirect=True, ids=["phone"])
def test_on_a_phone_nothing_is_wider_than_the_screen(opened):
    explore(opened)
    opened.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true })")
    assert opened.evaluate("document.documentElement.scrollWidth") == 390


def test_on_paper_all_is_unfolded_and_nothing_is_for_the_mouse(opened):
    opened.emulate_media(media="print")
    assert opened.pdf().startswith(b"%PDF")
    assert opened.locator(".ledger details:not([open])").count() == 0
    assert not opened.locator("#search").is_visible()
    assert opened.locator(".explore:visible").count() == 0
