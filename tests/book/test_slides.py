"""Slides are made from the lessons: every core lesson has a deck with its question, picture, theorem and answer."""

import re

import accessibility_checks as accessibility
import browser_checks as checks
import html_checks
import notebook_tools as tools
import policy
import pytest
import slides
import yaml

TOC = yaml.safe_load((tools.ROOT / "_toc.yml").read_text(encoding="utf-8"))
CORE = [page["file"].split("/")[1] for page in TOC["parts"][0]["chapters"] if page["file"].startswith("notebooks/")]
LESSONS = [path.stem for path in tools.chapters() if not path.stem.endswith("_in_depth") and path.stem not in slides.NO_LESSONS]
WITHOUT_A_BOX = {"00_tour", "18_which_accountant", "19_common_mistakes", "21_one_axis"}  # lessons that prove nothing themselves

PAGE = (tools.ROOT / "tests" / "book" / "small" / "lesson.html").read_text(encoding="utf-8")


def test_parts_of_a_page_become_slides():
    deck = slides.Deck(PAGE, "01_first")
    assert deck.kinds() == ["question", "answer", "picture", "statement", "expect", "assumptions", "takeaway"]
    assert deck.problems() == []
    text = deck.page()
    assert "How much?" in text and "<td>42</td>" in text and text.count("Theorem") == 1
    assert "Words that no slide has" not in text and "A quotation" not in text and "Not this" not in text
    assert text.count("<td>7</td>") == 1  # once, folded
    assert 'href="../notebooks/02_second.html#there"' in text and 'href="../notebooks/01_first.html#below"' in text
    assert 'src="../_images/one.png"' in text and "headerlink" not in text
    assert re.findall(r'id="([^"]*)"', text) == [f"slide-{number}" for number in range(1, 8)]
    assert policy.secured(text)[1] == []


def test_a_lesson_without_an_answer_fails_the_build(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_static").mkdir()
    (tmp_path / "notebooks" / "01_first.html").write_text(PAGE.replace("The answer.", "An answer."))
    (tmp_path / "notebooks" / "02_second.html").write_text(PAGE)
    (tmp_path / "notebooks" / "02_second_in_depth.html").write_text(PAGE)
    assert slides.write(tmp_path) == ["01_first: no paragraph begins with The question. and The answer."]
    assert [path.name for path in (tmp_path / "slides").iterdir()] == ["02_second.html"]


# --- the built book ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("stem", LESSONS)
def test_every_lesson_has_a_deck_with_its_parts(html, stem):
    """Question, answer, pictures and statements of the notebook itself, in its words and numbers."""
    deck = html_checks.soup(html / "slides" / f"{stem}.html")
    notebook = tools.read(tools.ROOT / "notebooks" / f"{stem}.ipynb")
    head = tools.source(notebook["cells"][0])
    shown = deck.select(".slide")
    title, answer = shown[0].get_text(" "), shown[1].get_text(" ")
    assert head.splitlines()[0].removeprefix("# ") in title and "The question." in title and "The answer." in answer
    question = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head.split("**The question.** ")[1].split("\n")[0])  # links as their text
    plain = re.sub(r"[*`]", "", question.split("$")[0]).split()
    assert len(plain) >= 3 and "".join(plain) in re.sub("[’“”]", lambda mark: "'" if mark.group() == "’" else '"', "".join(title.split()))
    pictures = sum("figure" in cell["metadata"].get("mystnb", {}) for cell in tools.code_cells(notebook))
    assert len(deck.select(".slide.picture img")) == pictures >= 1
    for image in deck.find_all("img"):
        assert (html / "slides" / image["src"]).resolve().is_file()
    text = "\n".join(tools.source(cell) for cell in tools.markdown_cells(notebook)).split("\n## Exercises")[0]
    boxes = re.findall(r"^> \*\*((?:Theorem|Lemma|Proposition|Corollary|Definition|Algorithm)\b.*)$", text, re.MULTILINE)
    stated = "".join("".join(slide.get_text() for slide in deck.select(".slide.statement")).split())
    for box in boxes:  # its kind and its tag; two boxes without a word between them share a slide
        [kind], tag = re.findall(r"^\w+", box), re.search(r"\[([A-Z]{1,2}-[\w.:-]+)", box).group(1)
        assert re.search(rf"{kind}.{{0,120}}?\[{re.escape(tag)}", stated), box
    assert len(deck.select(".slide.statement")) <= len(boxes)
    assert (not boxes) == (stem in WITHOUT_A_BOX)
    assert len(deck.select(".slide.takeaway")) == 1 and (boxes or deck.select(".assumptions table"))
    table = next((output for cell in tools.code_cells(notebook) for output in cell["outputs"] if "text/html" in output.get("data", {})), None)
    if table and deck.select(".answer table"):
        numbers = re.findall(r"\d\.\d{2,}", "".join(table["data"]["text/html"]))
        assert all(number in answer for number in numbers)


@pytest.mark.slow
def test_core_lessons_are_all_there(html):
    assert len(CORE) == 10 and set(CORE) <= set(LESSONS)
    assert sorted(path.stem for path in (html / "slides").glob("*.html")) == LESSONS
    guide = html_checks.soup(html / "book" / "teaching.html")
    links = {node["href"] for node in guide.select("a[href^='../slides/']")}
    assert links == {f"../slides/{stem}.html" for stem in LESSONS}


@pytest.mark.slow
@pytest.mark.browser
def test_a_deck_turns_its_slides(address, chromium):
    """By keys, buttons and address; formulas are set; nothing is wider than the screen; without scripts all are there."""
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{address}/slides/05_group_privacy.html")
    page.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
    page.evaluate("() => MathJax.startup.promise")
    shown = lambda: page.eval_on_selector_all(".slide.shown", "all => all.map(one => one.id)")
    assert shown() == ["slide-1"] and page.locator("mjx-container").count() > 10
    page.keyboard.press("ArrowRight")
    assert shown() == ["slide-2"] and page.url.endswith("#slide-2")
    page.keyboard.press("End")
    last = page.locator(".slide").count()
    assert shown() == [f"slide-{last}"] and page.get_by_role("button", name="Next").is_disabled()
    page.get_by_role("button", name="Back").click()
    assert shown() == [f"slide-{last - 1}"]
    page.keyboard.press("Home")
    for number in range(1, last + 1):
        assert shown() == [f"slide-{number}"]
        wide = page.evaluate("() => { const one = document.querySelector('.slide.shown'); return one.scrollWidth - one.clientWidth }")
        assert wide <= 1, f"slide {number} is {wide} pixels wider than the screen"
        page.keyboard.press("PageDown")
    assert not errors
    page.close()
    plain = chromium.new_context(java_script_enabled=False).new_page()
    plain.goto(f"{address}/slides/05_group_privacy.html")
    assert all(plain.locator(".slide").nth(place).is_visible() for place in range(last))
    plain.context.close()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("stem", ["00_tour", "07_renyi", "12_mmcc"])
def test_a_deck_has_no_serious_finding(address, chromium, stem):
    """Of axe-core, on its slides with question, table and last words; nothing that it needs is refused or missing."""
    page = chromium.new_page(viewport=checks.DESKTOP)
    refused = []
    page.on("console", lambda message: refused.append(message.text) if message.type == "error" else None)
    page.goto(f"{address}/slides/{stem}.html")
    page.evaluate("() => MathJax.startup.promise")
    for key in ("Home", "ArrowRight", "End"):
        page.keyboard.press(key)
        assert accessibility.axe_problems(page) + accessibility.colour_problems(page) == []
    assert refused == []
    page.close()
