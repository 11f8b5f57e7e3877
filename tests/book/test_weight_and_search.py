"""The front page is light, and the search finds every theorem, symbol and function."""

import gzip
import json
import re
from pathlib import Path

import browser_checks as checks
import index_checks
import notebook_tools as tools
import pytest

import dplib

pytestmark = [pytest.mark.slow, pytest.mark.browser]
LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "varepsilon": "ε", "eta": "η", "theta": "θ",
    "lambda": "λ", "mu": "μ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "chi": "χ", "psi": "ψ",
    "omega": "ω", "xi": "ξ", "Gamma": "Γ", "Phi": "Φ", "Psi": "Ψ", "ell": "ℓ",
}  # fmt: skip


def plain(text):
    """The words of a cell, without formulas, links and marks."""
    text = re.sub(r"\$[^$]*\$|\{[\w:]+\}`[^`]*`|\([^)]*\)", " ", text)
    return re.findall(r"[^\W\d_]{3,}", re.sub(r"[`*\[\]]", " ", text))


# --- front page -----------------------------------------------------------------------------------------


def test_front_page(html, chromium, address):
    """One screen holds a number, its scheme and three doors; four screens hold all; it is light."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    watch, bodies = checks.Watch(page, address), {}
    page.on("response", lambda response: bodies.update({response.url: response.body() if response.ok else b""}))
    checks.open_page(page, f"{address}/book/intro.html")
    checks.load_images(page)
    assert 2e5 < sum(min(len(body), len(gzip.compress(body))) for body in bodies.values()) < 6e5
    for door in page.locator(".doors .sd-card").all():
        box = door.bounding_box()
        assert box["y"] + box["height"] < 800
    assert page.evaluate("document.scrollingElement.scrollHeight") <= 4 * 800
    answer = page.locator("#front-answer")
    for scheme, words, mechanism in (
        ("fixed", "fixed size", dplib.FixedBatchDPSGD(1, batch_size=500, dataset_size=49_999, steps=2000)),
        ("poisson", "Poisson sampling", dplib.PoissonDPSGD(1, sampling_probability=0.01, steps=2000)),
    ):
        page.select_option("#front-scheme", scheme)
        page.wait_for_function("words => document.querySelector('#front-answer').textContent.includes(words)", arg=words)
        epsilon = float(re.search(r"ε ≤ ([\d.]+)", answer.inner_text()).group(1))
        upper = mechanism.epsilon(1e-6).upper
        assert upper <= epsilon < upper * (1 + 1e-5)
    assert f"<strong>ε ≤ {epsilon}</strong>" in (html / "book" / "intro.html").read_text()  # before any script
    page.fill("#front-steps", "0")
    page.wait_for_function("() => document.querySelector('#front-answer').textContent.includes('must be positive')")
    page.fill("#front-steps", "4000")
    page.wait_for_function("() => document.querySelector('#front-answer').textContent.includes('ε ≤')")
    shown = re.search(r"ε ≤ [\d.]+", answer.inner_text()).group()
    page.locator(".doors .sd-card").first.click()  # the link covers the card
    page.wait_for_function("shown => document.querySelector('#calculator-answer').textContent.includes(shown)", arg=shown)
    assert watch.take() == []
    page.close()


# --- search -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def search(chromium, address):
    """The search of the book: words -> the entries that it shows, in order, by the same code as the search page runs."""
    page = chromium.new_page()
    checks.search_results(page, address, "privacy")
    yield lambda words: page.evaluate("words => BookSearch(words)", words)
    page.close()


def found(search, words, start):
    return any(entry["address"].startswith(start) for entry in search(words))


# What a reader may ask, and where the first entry leads.
QUERIES = json.loads(Path(__file__).with_name("queries.json").read_text(encoding="utf-8"))


def test_what_readers_ask(search):
    first = {words: search(words)[0]["address"] for words in QUERIES}
    report([f"{words}: {first[words]}" for words, start in QUERIES.items() if not first[words].startswith(start)])
    theorems = {entry["address"].partition("#thm-")[2]: entry["page"] for entry in search("Theorem 5.2")[:3]}
    assert "Räisä et al. 2024, Theorem 5.2" in theorems["r-5-2"] and "MMCC, Theorem 5.2" in theorems["m-5-2"]
    excerpts = [entry["excerpt"] + entry["title"] for words in QUERIES for entry in search(words)]
    assert not [text for text in excerpts if re.search(r"\\\\|[$^_{}]{2}|\\[a-z]|‖", text)]


def test_search_page(html, chromium, address):
    """The entries name their page; the search from the disk, where no script may read the index, finds pages."""
    page = chromium.new_page(viewport=checks.PHONE)
    watch = checks.Watch(page, address)
    assert checks.search_results(page, address, "Theorem 5.2")[:2] == ["book/theorems.html", "book/theorems.html"]
    assert "Räisä et al. 2024" in page.locator("#search-results .search-place").nth(1).inner_text()
    assert checks.overflow_problems(page) == [] and watch.take() == []
    from_disk = checks.search_results(page, html.as_uri(), "group privacy")
    assert any(name.endswith("notebooks/05_group_privacy.html") for name in from_disk)
    page.close()


def report(problems):
    assert not problems, f"{len(problems)} not found:\n" + "\n".join(problems[:30])


def test_every_theorem_is_found_by_tag_and_words(search):
    index = index_checks.rows((tools.ROOT / "book" / "theorems.md").read_text(encoding="utf-8"))
    assert len(index) > 50
    problems = [row.tag for row in index if not search(row.tag)[0]["title"].startswith(f"[{row.tag}]")]
    for row in index:
        words = " ".join(plain(row.statement)[:4])
        if words and not found(search, words, "book/theorems"):
            problems.append(f"{row.tag}: {words}")
    report(problems)


def test_every_symbol_is_found_by_meaning_letter_and_name(search):
    text = (tools.ROOT / "book" / "notation.md").read_text(encoding="utf-8")
    table = [cells for _, header, cells in index_checks.table_rows(text) if header[0] == "Symbol"]
    assert len(table) > 100
    problems = []
    for row in table:
        queries = [" ".join(plain(row[1])[:4]), *re.findall(r"`([\w.]+)`", row[2])]
        queries += [LETTERS[name] for name in re.findall(r"\\([A-Za-z]+)", row[0]) if name in LETTERS]
        problems += [
            f"{row[0]}: {query}" for query in queries if query and not found(search, query, "book/notation")
        ]
    report(problems)


def test_every_function_is_found(search, html):
    """Those of the library page, and first of all its docstring for every one that has one."""
    text = (tools.ROOT / "book" / "library.md").read_text(encoding="utf-8")
    names = sorted(set(re.findall(r"`(dplib(?:\.\w+)+)", text)))
    assert len(names) > 100
    report([name for name in names if not search(name)])
    text = (html / "book" / "docstrings.html").read_text(encoding="utf-8")
    names = re.findall(r"<h3><code[^>]*><span class=\"pre\">(dplib[\w.]+)</span>", text)
    assert len(names) > 100
    report([name for name in names if not any(entry["title"] == name for entry in search(name)[:3])])


def test_a_missing_word_is_not_found(search):
    assert search("qqqzzzxxx") == []
    assert search("noise qqqzzzxxx") == []
