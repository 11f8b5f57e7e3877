"""What a chapter's cells show in the page against what its notebook stores, word by word, as nbval compares."""

import math
import re

import notebook_tools as tools

# The words of tables and prints of each cell on the page, as JavaScript.
SHOWN = """() => [...document.querySelectorAll('.page-output')].map(output =>
    [...output.querySelectorAll('td, th, pre')].map(part => part.textContent).join(' ').split(/\\s+/).filter(Boolean))"""
# What is estimated by sampling: {(chapter, number of a cell): {place of a word: (its standard error, unit of its last digit)}}. Samples lie along
# eigenvectors, whose signs, and whose turn where eigenvalues agree, every LAPACK chooses for itself: other draws of the same law, with the same
# standard error. One that is printed in percent comes from 32 blocks of draws, and has itself a relative standard error of 1 / sqrt(62).
LINES = {11: (3.5e-5, 1e-4), 14: (1.2e-6, 1e-5), 17: (5.2e-10, 1e-9), 20: (1.0e-11, 1e-11), 23: (9.3e-14, 1e-13)}
PERCENT = {12: 0.20, 15: 0.12, 18: 0.066, 21: 0.41, 24: 0.46}
SAMPLED = {
    ("12_mmcc_in_depth", 28): {10: (7.1e-4, 1e-4), 16: (2.0e-5, 1e-6), 22: (1.4e-6, 1e-6)},
    ("15_monte_carlo", 5): LINES | {place: (error / math.sqrt(62), 0.1) for place, error in PERCENT.items()},
    ("15_monte_carlo_in_depth", 31): {8: (3.8e-4, 1e-5), 17: (1.7e-4, 1e-5)},
}
STANDARD_ERRORS = 5  # of the difference of two such estimates, which is normal: more happens less than once in a million


def cells(name):
    """The cells of a chapter that its page shows."""
    found = tools.read(tools.ROOT / "notebooks" / f"{name}.ipynb")["cells"]
    return [cell for cell in found if cell["cell_type"] == "code" and "remove-cell" not in cell["metadata"].get("tags", [])]


def words(text):
    for name, sign in (("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(name, sign)
    return text.split()


def stored(cell):
    """The words of a cell's stored tables and prints."""
    text = ""
    for output in cell["outputs"]:
        data = output.get("data", {})
        text += "".join(output.get("text", data.get("text/html", "" if "image/png" in data else data.get("text/plain", ""))))
    return words(re.sub(r"<[^>]*>", " ", text))


def differences(name, shown):
    """What differs between the words that a page shows and those that are stored, as sentences."""
    expected, found = [stored(cell) for cell in cells(name)], []
    if len(expected) != len(shown):
        return [f"{len(shown)} cells on the page, {len(expected)} in the notebook"]
    for number, (got, wanted) in enumerate(zip(shown, expected), start=1):
        sampled = SAMPLED.get((name, number), {})
        if len(got) == len(wanted) and all(close(*pair, sampled.get(place)) for place, pair in enumerate(zip(got, wanted))):
            continue
        pairs = [f"{one} for {other}" for one, other in zip(got, wanted) if one != other] or [f"{len(got)} words for {len(wanted)}"]
        found.append(f"cell {number}: {', '.join(pairs[:5])}")
    return found


def close(one, other, sampled=None):
    """Whether two words are the same, or two roundings of estimates that have this standard error: sampled = (standard error, unit of the last digit)."""
    if one == other or sampled is None:
        return one == other
    try:
        first, second = (float(word.rstrip("%")) for word in (one, other))
    except ValueError:
        return False
    error, unit = sampled
    return abs(first - second) <= STANDARD_ERRORS * math.sqrt(2) * error + 1.01 * unit
