"""What a chapter's cells show in the page against what its notebook stores, word by word, as nbval compares."""

import re

import notebook_tools as tools

# The words of tables and prints of each cell on the page, as JavaScript.
SHOWN = """() => [...document.querySelectorAll('.page-output')].map(output =>
    [...output.querySelectorAll('td, th, pre')].map(part => part.textContent).join(' ').split(/\\s+/).filter(Boolean))"""
# Cells of estimates by sampling. They draw along eigenvectors, whose signs, and whose turn where eigenvalues agree, every LAPACK
# chooses for itself: other draws of the same law. Their standard errors are about 1%.
SAMPLED = {("12_mmcc_in_depth", 28), ("15_monte_carlo", 5), ("15_monte_carlo_in_depth", 29)}
SAMPLED_TOLERANCE = 0.05


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
        if got == wanted or ((name, number) in SAMPLED and len(got) == len(wanted) and all(map(close, got, wanted))):
            continue
        pairs = [f"{one} for {other}" for one, other in zip(got, wanted) if one != other] or [f"{len(got)} words for {len(wanted)}"]
        found.append(f"cell {number}: {', '.join(pairs[:5])}")
    return found


def close(one, other):
    """Whether two words are the same, or numbers as near as two estimates, or as the last digit that is shown."""
    if one == other:
        return True
    try:
        first, second = (float(word.rstrip("%")) for word in (one, other))
    except ValueError:
        return False
    digit = 10.0 ** -len(other.rstrip("%").partition(".")[2])
    return abs(first - second) <= max(SAMPLED_TOLERANCE * abs(second), 1.01 * digit)
