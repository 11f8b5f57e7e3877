"""The built book and a browser, each made once for a run."""

import fcntl

import browser_checks
import pytest
import small_project
from browser import find_chromium
from build import build


@pytest.fixture(scope="session")
def build_record(tmp_path_factory, worker_id):
    """(status, output of the builder, folder of the pages) of one fresh, strict build."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "book-build"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:  # two workers share one build
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = folder / "record.txt"
        if not record.exists():
            status, text = build(output=folder)
            record.write_text(f"{status}\n{text}", encoding="utf-8")
        status, text = record.read_text(encoding="utf-8").split("\n", 1)
    return int(status), text, folder / "_build" / "html"


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The small project with stored outputs, built, no fault in it; to be copied before it is changed."""
    project = small_project.executed(tmp_path_factory.mktemp("small") / "project")
    status, text = build(project)
    assert status == 0, text
    return project


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


@pytest.fixture
def page(chromium, address):
    """An empty page of a desktop, which must end without an error in its console or a failed request."""
    found = chromium.new_page(viewport=browser_checks.DESKTOP)
    watch = browser_checks.Watch(found, address)
    yield found
    assert watch.take() == []
    found.close()
