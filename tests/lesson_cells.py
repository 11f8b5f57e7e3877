"""A lesson's code without a kernel: its cells with other numbers, run in order in one namespace."""

import contextlib
import io

import matplotlib
import matplotlib.pyplot as plt
import notebook_tools as tools


def cells_of(name):
    """The code cells of `notebooks/NAME.ipynb`, as text, but for the one that installs dplib."""
    notebook = tools.read(tools.ROOT / "notebooks" / f"{name}.ipynb")
    return [tools.source(cell) for cell in tools.code_cells(notebook) if not tools.is_bootstrap(cell)]


def edited(cells, pairs):
    """The cells with every old text replaced by the new one; each must stand in one place, counted before any edit."""
    for old, _ in pairs:
        places = sum(cell.count(old) for cell in cells)
        assert places == 1, f"{old!r} stands {places} times in the lesson's code"
    for old, new in pairs:
        cells = [cell.replace(old, new) for cell in cells]
    return cells


def run(cells):
    """Run the cells as a reader would, without windows: (names, what was printed)."""
    names, printed, backend = {}, io.StringIO(), matplotlib.get_backend()
    show, plt.show = plt.show, lambda: None
    matplotlib.use("Agg")
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            with matplotlib.rc_context():
                for number, cell in enumerate(cells, start=1):
                    exec(compile(cell, f"code cell {number}", "exec"), names)  # an assertion that pins a number ends here
    finally:
        plt.show = show
        plt.close("all")
        matplotlib.use(backend)
    return names, printed.getvalue()
