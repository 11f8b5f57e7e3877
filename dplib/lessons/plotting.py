"""The figure style of the book: one look for every chapter.

`use_style()` sets it, `figure()` opens a figure of page width, `finish()` names
the axes, `label_line()` writes a curve's name beside it.

Curves differ by dash pattern and by brightness as well as by colour, so that a
figure survives greyscale print and colour-blind readers. Faces are opaque and
light, so that the same picture is readable on a light and on a dark page.

Matplotlib is imported inside the functions: `import dplib` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._base import validate as check

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 5.6  # inches; about 730 pixels at DPI, so text stays legible when scaled to a phone
DPI = 130
FACE = "#ffffff"
INK = "#1f2328"
GRID = "#d8dce1"

# (colour, dash pattern), ordered from the darkest to the lightest colour
CURVES = (
    ("#0b2f66", "solid"),
    ("#b3261e", (0, (6, 2))),
    ("#2f7d4f", (0, (1, 1.3))),
    ("#a3620a", (0, (6, 2, 1.2, 2))),
    ("#7a5ea8", (0, (3, 1.2, 1.2, 1.2, 1.2, 1.2))),
)


def use_style() -> None:
    """Set Matplotlib's defaults to the book's figure style."""
    import matplotlib
    from cycler import cycler

    colours = cycler(color=[colour for colour, _ in CURVES])
    dashes = cycler(linestyle=[dash for _, dash in CURVES])
    style = dict.fromkeys(("figure.facecolor", "savefig.facecolor", "axes.facecolor"), FACE)  # type: dict[str, Any]
    style |= dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "text.color", "xtick.color", "ytick.color"), INK)
    style |= dict.fromkeys(("axes.titlesize", "axes.labelsize", "font.size"), 10.5)
    style |= dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 9.5)
    style |= dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon", "savefig.transparent"), False)
    style |= dict.fromkeys(("figure.constrained_layout.use", "axes.grid", "axes.axisbelow"), True)
    style |= dict.fromkeys(("figure.dpi", "savefig.dpi"), DPI)
    style |= {
        "figure.figsize": (WIDTH, 0.66 * WIDTH),
        "axes.titlelocation": "left",
        "axes.prop_cycle": colours + dashes,
        "grid.color": GRID,
        "grid.linewidth": 0.7,
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "lines.linewidth": 1.9,
        "lines.markersize": 4.5,
        "legend.handlelength": 3.2,
    }
    matplotlib.rcParams.update(style)


def figure(rows: int = 1, columns: int = 1, *, height: float | None = None, **keywords: Any) -> tuple:
    """Open a figure of page width with a grid of panels.

    Parameters
    ----------
    rows, columns : int >= 1
        The grid of panels.
    height : float > 0, optional
        Height of the whole figure in inches; by default two thirds of the
        width for one row and a little over two inches for each of several.
    **keywords
        Passed to `matplotlib.pyplot.subplots` (for example `sharex=True`).

    Returns
    -------
    (Figure, Axes or array of Axes), as `matplotlib.pyplot.subplots` gives them.

    >>> from dplib.lessons import plotting
    >>> fig, axes = plotting.figure(1, 2)
    >>> len(axes)
    2
    """
    import matplotlib.pyplot as plt

    if height is None:
        height = 0.66 * WIDTH if rows == 1 else 2.3 * rows
    return plt.subplots(rows, columns, figsize=(WIDTH, height), **keywords)


def curve(index: int) -> dict:
    """Colour and dash pattern of the curve numbered `index`, as keyword arguments of `plot`."""
    colour, dash = CURVES[check.whole("index", index, at_least=0, at_most=len(CURVES) - 1)]
    return {"color": colour, "linestyle": dash}


def finish(
    ax: Axes, *, x: str | None = None, y: str | None = None, title: str = "",
    legend: str | None = None,
) -> None:
    """Name both axes (with units) and, where given, add a title and a legend.

    Parameters
    ----------
    x, y : axis labels. A label may be left out only where the panel shares that
        axis with another one, which then carries it.
    title : short text above the panel.
    legend : the legend's place in Matplotlib's words ("upper left", ...).

    Raises ValueError for a panel whose axis would have no name.
    """
    for name, text, shared in (
        ("x", x, ax.get_shared_x_axes()),
        ("y", y, ax.get_shared_y_axes()),
    ):
        if text is None and len(shared.get_siblings(ax)) > 1:
            continue
        if not isinstance(text, str) or not text.strip():
            raise ValueError(
                f"{name} must be a non-empty axis label (None only for a shared axis), got {text!r}"
            )
        ax.set(**{f"{name}label": text})
    if title:
        ax.set_title(title)
    if legend is not None:
        ax.legend(loc=legend)


def label_line(
    ax: Axes, x: float, y: float, text: str, *, color: str = INK,
    shift: tuple[float, float] = (4, 0), **keywords: Any,
) -> None:
    """Write `text` beside the data point (x, y), `shift` points away, in the curve's colour."""
    options: dict[str, Any] = {"va": "center", "ha": "left", "fontsize": 9.5, "annotation_clip": False} | keywords
    ax.annotate(text, (x, y), xytext=shift, textcoords="offset points", color=color, **options)
