"""The built book and a browser, each made once for a run."""

import fcntl

import browser_checks
import live_pages
import notebook_tools as tools
import pytest
import small_project
from browser import find_chromium
from build import build


def pytest_collection_modifyitems(items):
    """While one worker builds the book, the other runs what needs no built book; then the files with the most tests come first."""
    files = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    built = {path: any("build_record" in item.fixturenames for item in found) for path, found in files.items()}
    order = sorted(files, key=lambda path: (path.stem != "test_build", built[path], -len(files[path])))
    items[:] = [item for path in order for item in files[path]]


@pytest.fixture(scope="session")
def once(tmp_path_factory, worker_id):
    """once(name, make): the folder of that name and the text that `make` returned for it, made by the first worker that asks."""
    base = tmp_path_factory.getbasetemp()

    def made(name, make):
        folder = (base if worker_id == "master" else base.parent) / name
        folder.mkdir(exist_ok=True)
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            record = folder / "record.txt"
            if not record.exists():
                record.write_text(make(folder), encoding="utf-8")
        return folder, record.read_text(encoding="utf-8")

    return made


@pytest.fixture(scope="session")
def build_record(once):
    """(status, output of the builder, folder of the pages) of one fresh, strict build."""
    folder, record = once("book-build", lambda folder: "{}\n{}".format(*build(output=folder)))
    status, text = record.split("\n", 1)
    return int(status), text, folder / "_build" / "html"


@pytest.fixture(scope="session")
def small(once):
    """The small project with an address and stored outputs, built, no fault in it; to be copied before it is changed."""
    folder, record = once("small", lambda folder: "{}\n{}".format(*build(small_project.executed(folder / "project"))))
    assert record.startswith("0\n"), record
    return folder / "project"


@pytest.fixture(scope="session")
def html(build_record):
    """Folder of the built pages."""
    status, text, folder = build_record
    assert (folder / "index.html").exists(), text[-3000:]
    return folder


@pytest.fixture(scope="session")
def chromium():
    """A running Chromium."""
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    assert path, "no Chromium; make setup-test installs one"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        new_context, new_page = browser.new_context, browser.new_page

        def patient(page_or_context):  # on a busy machine pages load slowly
            page_or_context.set_default_timeout(180_000)
            return page_or_context

        browser.new_context = lambda **options: patient(new_context(**options))
        browser.new_page = lambda **options: patient(new_page(**options))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def address(html):
    with browser_checks.served(html) as where:
        yield where


@pytest.fixture(scope="module")
def tab(chromium):
    """One page for all tests of a file: opening a new one for each costs seconds."""
    page = chromium.new_page(viewport=browser_checks.DESKTOP)
    yield page
    page.close()


@pytest.fixture(scope="module")
def bare(chromium):
    """A page with the scripts that compute and draw, and nothing else."""
    page = chromium.new_page()
    for name in ("special", "round", "integrand", "accountant", "page", "moving", "sampling", "large_batches"):
        page.add_script_tag(path=tools.ROOT / "book" / "_live" / f"{name}.js")
    yield page
    page.close()


@pytest.fixture(scope="module")
def form(chromium, tmp_path_factory):
    """The wizard's form and scripts, and nothing else: each answer takes a third of the time that it takes in its chapter."""
    live = tools.ROOT / "book" / "_live"
    watch = '<script>window.thrown = []; addEventListener("error", (event) => window.thrown.push(event.message));</script>'
    scripts = "".join(f'<script src="{(live / name).as_uri()}"></script>' for name in live_pages.FORMS["calculator"])
    file = tmp_path_factory.mktemp("form") / "page.html"
    file.write_text(f'<!doctype html><meta charset="utf-8">{watch}\n{(live / "calculator.html").read_text(encoding="utf-8")}{scripts}', encoding="utf-8")
    page = chromium.new_page()
    page.goto(file.as_uri())
    yield page
    assert page.evaluate("window.thrown") == []
    page.close()


@pytest.fixture(scope="module")
def watch(tab, address):
    return browser_checks.Watch(tab, address)


@pytest.fixture
def page(tab, watch):
    """The same at desk width, for a test that must end without an error in the console or a failed request."""
    watch.take()
    tab.set_viewport_size(browser_checks.DESKTOP)
    yield tab
    assert watch.take() == []
