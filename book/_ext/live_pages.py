"""Parts of the pages that compute in the browser, and the scripts that each needs.

The scripts lie in `book/_live` and are copied to `_static/live`. In a folder of `html_static_path` they would be
added to every page; here each page gets those of its parts. A part is found by its address in the page: the form of a
live page, or a chapter's figure that readers can move. Notebooks stay plain Markdown: `IN_CHAPTERS` says after which
of their figures the form of a live page stands as well, and the wizard stands in the place of chapter 18's sentence on it.
"""

import json
import re
import shutil
from pathlib import Path

from docutils import nodes

WIZARD = "notebooks/18_which_accountant"
PLACE = "In the book,"  # so begins the paragraph in whose place the form stands
GAUSSIAN = ["page.js", "special.js"]
ACCOUNTANT = [*GAUSSIAN, "round.js", "integrand.js", "accountant.js"]
# The address of a part -> its scripts, in the order in which they run.
FORMS = {
    "sampling": ["page.js", "sampling.js"],
    "calculator": [*ACCOUNTANT, "endings.js", "calculator.js"],
    "batches": [*ACCOUNTANT, "moving.js", "large_batches.js"],
}
STUDY = "dplib/lessons/studies/training.json"
SCHEMES = ("no amplification", "DP-SGD, Poisson", "buffered, bins")  # of the first figure of chapter 17
TRAINING = "training_encoders.js"  # made by the build: `training_encoders`
# The address of a figure that moves -> the scripts that its lesson needs, and where the lesson stands.
FIGURES = {
    "fig-0-four-schemes": (ACCOUNTANT, "lessons.js"),
    "fig-1-hockey-stick": (GAUSSIAN, "lessons.js"),
    "fig-2-losses": (ACCOUNTANT, "lessons.js"),
    "fig-3-secret": (GAUSSIAN, "lessons.js"),
    "fig-4-one-crossing": (GAUSSIAN, "lessons.js"),
    "fig-5-growth": (ACCOUNTANT, "lessons.js"),
    "fig-19-mistakes": (ACCOUNTANT, "lessons.js"),
    "fig-21-one-axis": (ACCOUNTANT, "lessons.js"),
    "fig-6-forgets": (ACCOUNTANT, "lessons_alone.js"),
    "fig-7-pick-an-order": (ACCOUNTANT, "lessons_alone.js"),
    "fig-9-slow-growth": (GAUSSIAN, "lessons_alone.js"),
    "fig-22-noise": (ACCOUNTANT, "lessons_alone.js"),
    "fig-10-noise-fades": (GAUSSIAN, "lessons_correlated.js"),
    "fig-11-posterior": (GAUSSIAN, "lessons_correlated.js"),
    "fig-12-belief": (GAUSSIAN, "lessons_correlated.js"),
    "fig-13-levels": (GAUSSIAN, "lessons_correlated.js"),
    "fig-14-two-batches": (GAUSSIAN, "lessons_bins.js"),
    "fig-15-clouds": (GAUSSIAN, "lessons_bins.js"),
    "fig-16-two-batches": (GAUSSIAN, "lessons_bins.js"),
    "fig-17-noise": ([TRAINING, *GAUSSIAN], "lessons_bins.js"),
}
# Figure of a chapter -> the form that follows it, its live page, and what the reader is told.
IN_CHAPTERS = {
    "fig-3-six-schemes": (
        "sampling",
        "live_sampling",
        "Draw other rounds, records and schemes. Bars above are the sizes of the batches, bars on the right how often each record takes part.",
    ),
    "fig-8-rate": (
        "batches",
        "live_large_batches",
        "Choose another guarantee and other numbers of rounds, and see from which q on amplification pays for the smaller batch.",
    ),
}


def place_wizard(app, doctree):
    if app.env.docname == WIZARD:
        form = Path(app.srcdir, "book", "_live", "calculator.html")
        app.env.note_dependency(str(form))
        place = next(node for node in doctree.findall(nodes.paragraph) if node.astext().startswith(PLACE))
        place.replace_self(nodes.raw("", form.read_text(encoding="utf-8"), format="html"))


def with_forms(body, folder):
    """The text of a page, with the forms of live pages after its figures."""
    for figure, (name, page, words) in IN_CHAPTERS.items():
        place = re.search(rf'<figure[^>]* id="{figure}">.*?</figure>', body, re.DOTALL)
        if place:
            form = (folder / f"{name}.html").read_text(encoding="utf-8").replace("<form ", "<form data-inside ", 1)
            link = f'<a class="reference internal" href="../book/{page}.html">On a page of its own.</a>'
            body = f'{body[: place.end()]}\n<p class="live"><strong>Try it.</strong> {words} {link}</p>\n{form}{body[place.end() :]}'
    return body


def scripts_of(body):
    """The scripts that a page needs, each once and in order."""
    lists = [scripts for name, scripts in FORMS.items() if re.search(rf'<form[^>]* id="{name}"', body)]
    lists += [[*scripts, "moving.js", "formulas.js", lesson] for name, (scripts, lesson) in FIGURES.items() if f'id="{name}"' in body]
    return list(dict.fromkeys(script for scripts in lists for script in scripts))


def enliven(app, pagename, templatename, context, doctree):
    if doctree is None or app.builder.format != "html":
        return
    context["body"] = with_forms(context["body"], Path(app.srcdir, "book", "_live"))
    for place, script in enumerate(scripts_of(context["body"])):
        app.add_js_file(f"live/{script}", priority=900 + place, loading_method="defer")


def training_encoders(study):
    """The script with the encoders of the study of chapter 17: scheme -> epsilon -> {coefficients, noise}."""
    table = {}
    for row in json.loads(study.read_text(encoding="utf-8"))["encoders"]:
        if row["scheme"] in SCHEMES:
            shown = {"coefficients": row["coefficients"], "noise": row["noise_multiplier"]}
            table.setdefault(row["scheme"], {})[f"{row['epsilon']:g}"] = shown
    return f"window.TrainingEncoders = {json.dumps(table, separators=(',', ':'))};\n"


def copy_scripts(app, exception):
    if exception or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "live"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for script in sorted(Path(app.srcdir, "book", "_live").glob("*.js")):
        shutil.copy2(script, target / script.name)
    study = Path(app.srcdir, STUDY)
    if study.is_file():  # not in the small project of a test
        (target / TRAINING).write_text(training_encoders(study), encoding="utf-8")


def setup(app):
    app.connect("doctree-read", place_wizard)
    app.connect("html-page-context", enliven)
    app.connect("build-finished", copy_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
