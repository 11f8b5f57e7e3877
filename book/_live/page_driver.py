"""Runs the cells of a page, and sends what they show to it. It is part of the page's runtime, not of the library.

Matplotlib gets a backend of three lines, whose figures go to the page as pictures.
"""

import ast
import base64
import builtins
import io
import json
import linecache
import sys
import traceback
import warnings
import zipfile

PACKED = "/usr/local/lib/python315.zip"
BACKEND = """\
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas
from page_driver import show
"""
KEYBOARD = "input() asks for the keyboard, and a cell in a page has none: write the value into the cell."
# Kind of failure, part of its message, a sentence for the reader, below the traceback.
TOO_MUCH = "The page gives Python at most 1 GB of memory, and this needs more. Use a smaller array; what was computed before is still there."
OUTSIDE = "A cell in a page sees neither your files nor the network; it may write files below /tmp, and they last as long as the page."
REASONS = [
    (MemoryError, "", TOO_MUCH),
    (ValueError, "array is too big", TOO_MUCH),
    (AttributeError, "_socket", OUTSIDE),
    (RuntimeError, "can't start new thread", "A page runs one thing at a time: write the code without threads."),
    (RecursionError, "", "A function called itself too often without coming to an end. The page is as it was before this cell."),
    (ModuleNotFoundError, "", "The page has NumPy, SciPy, Matplotlib, mpmath and dplib; other packages need a kernel: download the notebook."),
    (EOFError, KEYBOARD, KEYBOARD),
    (OSError, "", OUTSIDE),
]


def send(kind, **content):
    with open("/page/messages", "w", encoding="utf-8") as box:
        box.write(json.dumps({"kind": kind, **content}) + "\n")


def prepare():
    """Unpack what must be files, put the library on the path, close the doors that lead nowhere."""
    for packed, folder in (("/book/data.zip", f"{PACKED}/matplotlib/mpl-data"), ("/book/dplib.zip", "/tmp/site")):
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(folder)
    with open("/tmp/site/page_figures.py", "w", encoding="utf-8") as backend:
        backend.write(BACKEND)
    for folder in ("/tmp/site", "/book"):
        if folder not in sys.path:
            sys.path.append(folder)
    sys.path_importer_cache.clear()  # a folder without times looks as it did before
    warnings.filterwarnings("ignore", message="tqdm:disabling monitor")  # there are no threads
    sys.stdout.isatty = sys.stderr.isatty = lambda: False  # no bars of progress, which a terminal would draw over
    builtins.input = _no_keyboard
    sys.modules["__main__"].__dict__.setdefault("__name__", "__main__")


def _no_keyboard(prompt=""):
    raise EOFError(KEYBOARD)


def _show(value):
    if value is None:
        return
    html = getattr(value, "_repr_html_", None)
    html = html() if callable(html) else None
    if html:
        send("html", html=html)
    else:
        send("text", text=repr(value))


def _figures():
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        for number in pyplot.get_fignums():
            picture = io.BytesIO()
            pyplot.figure(number).savefig(picture, format="png", bbox_inches="tight")
            send("figure", png=base64.b64encode(picture.getvalue()).decode())
        pyplot.close("all")


def _reason(error):
    return next((sentence for kind, part, sentence in REASONS if isinstance(error, kind) and part in str(error)), "")


def run(code, name):
    """Run a cell in the main module; on failure send the traceback and end with status 1."""
    names = sys.modules["__main__"].__dict__
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";") else None
        exec(compile(tree, name, "exec"), names)
        if last is not None:
            _show(eval(compile(ast.Expression(last.value), name, "eval"), names))
        _figures()
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        _fail(error)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _fail(error):
    if isinstance(error, SystemExit):
        send("error", text="", reason="The cell asked Python to end. It goes on, with everything that was computed.")
    else:
        steps = error.__traceback__
        while steps is not None and steps.tb_frame.f_code.co_filename.endswith(("page_driver.py", "ast.py")):
            steps = steps.tb_next
        told = traceback.TracebackException(type(error), error, steps, limit=-12)
        send("error", text="".join(told.format()), reason=_reason(error))
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


def show(*arguments, **options):
    """What `plt.show()` does in a page."""
    _figures()
