"""The published site: versions kept, old addresses alive, addresses that resolve, previews, how to cite."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from xml.etree import ElementTree

import html_checks
import notebook_tools as tools
import publish
import pytest
import social_card
import yaml
from bootstrap_cell import repository
from bs4 import BeautifulSoup
from publishing import address, as_bibtex, as_text, citation
from test_build import page_names

pytestmark = pytest.mark.slow
BASE = address(tools.ROOT)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """What an earlier run published: one version."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "v0.0.9").mkdir()
    (folder / "v0.0.9" / "index.html").write_text("as it was")
    (folder / "latest").mkdir()
    (folder / "latest" / "gone.html").write_text("of yesterday")
    return folder


@pytest.fixture(scope="module")
def site(html, published, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "site"
    publish.assemble(html, folder, previous=published, version="v0.1.0")
    return folder


def local(site, where):
    """The file that the site serves for one of its own absolute addresses."""
    assert where.startswith(BASE), where
    return site / where.removeprefix(BASE).split("#")[0]


def part(path, start, end):
    """A part of a page, parsed; whole pages take a while."""
    text = path.read_text(encoding="utf-8")
    return BeautifulSoup(text[text.index(start) : text.index(end, text.index(start))], "html.parser")


# --- addresses --------------------------------------------------------------------------------------


def test_the_book_is_at_latest_and_under_its_version(site, html):
    for folder in ("latest", "v0.1.0"):
        for name in (*page_names(), "search.html", "_static/book.css"):
            assert (site / folder / name).read_bytes() == (html / name).read_bytes(), f"{folder}/{name}"
    assert (site / ".nojekyll").exists()


def test_published_versions_are_kept_and_the_old_latest_is_not(site):
    assert publish.versions(site) == ["v0.1.0", "v0.0.9"]
    assert (site / "v0.0.9" / "index.html").read_text() == "as it was"
    assert not (site / "latest" / "gone.html").exists()
    listed = [node["href"] for node in html_checks.soup(site / "versions.html").select("li a")]
    assert listed == ["latest/index.html", "v0.1.0/index.html", "v0.0.9/index.html"]
    assert all((site / where).is_file() for where in listed)


def test_a_tag_on_the_commit_names_the_version(tmp_path):
    def git(*command):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", *command], cwd=tmp_path, check=True)

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    assert publish.tagged_version(tmp_path) is None
    for tag in ("v0.9.0", "v0.10.0", "draft"):
        git("tag", tag)
    assert publish.tagged_version(tmp_path) == "v0.10.0"


def test_the_sitemap_names_the_pages_of_the_book(site):
    names = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
    listed = [node.text for node in ElementTree.parse(site / "sitemap.xml").iterfind("s:url/s:loc", names)]
    assert sorted(listed) == sorted(f"{BASE}latest/{name}" for name in page_names())
    assert f"Sitemap: {BASE}sitemap.xml" in (site / "robots.txt").read_text().splitlines()


def test_every_address_of_our_own_resolves(site):
    """Canonical addresses, previews, and the links to other versions, wherever they stand."""
    pages = [*site.glob("*.html"), *(site / "latest").rglob("*.html")]
    found = set()
    for path in pages:
        found |= set(re.findall(rf'{re.escape(BASE)}[^"\s<}}]*', path.read_text(encoding="utf-8")))
    found -= {BASE}
    assert found > {f"{BASE}versions.html", f"{BASE}latest/_static/social_card.png"}
    assert [where for where in found if not local(site, where).is_file()] == []


def test_the_page_for_wrong_addresses_stands_alone(site):
    document = html_checks.soup(site / "404.html")
    assert document.find_all(["script", "img"]) == []
    assert [node["href"] for node in document.find_all("link")] == ["data:,"]  # no icon is asked for
    path = "/" + BASE.split("/", 3)[3]
    for node in document.find_all("a"):
        assert (site / node["href"].removeprefix(path)).is_file(), node["href"]


# --- the branch that the host serves ---------------------------------------------------------------


@pytest.fixture
def remote(tmp_path):
    folder = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    return folder


def push(site, remote):
    names = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"), "x")
    command = ["sh", str(tools.ROOT / "tools" / "push_site.sh"), str(site), str(remote)]
    return subprocess.run(command, env=os.environ | names, capture_output=True, text=True)


def on_branch(remote):
    """{path: text} of what the host would serve."""

    def git(*command):
        return subprocess.run(
            ["git", *command], cwd=remote, capture_output=True, text=True, check=True
        ).stdout

    names = git("ls-tree", "-r", "--name-only", "gh-pages").split()
    return {name: git("show", f"gh-pages:{name}") for name in names}


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_publishing_keeps_versions_and_drops_what_is_gone(tmp_path, remote):
    first = {"index.html": "1", "latest/a.html": "1", "v0.1.0/a.html": "1", ".nojekyll": ""}
    assert push(write(tmp_path / "first", first), remote).returncode == 0
    assert on_branch(remote) == first
    second = first | {"latest/b.html": "2", "v0.2.0/b.html": "2"}
    del second["latest/a.html"]
    assert push(write(tmp_path / "second", second), remote).returncode == 0
    assert on_branch(remote) == second
    assert "nothing has changed" in push(tmp_path / "second", remote).stdout


@pytest.mark.parametrize("change", [{}, {"v0.1.0/a.html": "other"}], ids=["missing", "changed"])
def test_a_published_version_is_not_lost(tmp_path, remote, change):
    first = {"index.html": "1", "v0.1.0/a.html": "1"}
    push(write(tmp_path / "first", first), remote)
    done = push(write(tmp_path / "second", {"index.html": "2"} | change), remote)
    assert done.returncode == 1 and "v0.1.0 is published and not the same" in done.stderr
    assert on_branch(remote) == first


# --- old addresses ----------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path):
    """A source with an address and an empty table of old addresses."""
    folder = tmp_path / "root"
    (folder / "book").mkdir(parents=True)
    shutil.copy2(tools.ROOT / "_config.yml", folder)
    (folder / "book" / "_redirects.txt").write_text("# nothing yet\n")
    return folder


@pytest.fixture
def few_pages(html, tmp_path):
    folder = tmp_path / "pages"
    for name in ("index.html", "book/intro.html", "book/theorems.html"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(html / name, folder / name)
    return folder


def test_a_version_is_added_once_and_without_touching_latest(root, few_pages, published, tmp_path):
    """For a tag on a commit that main has left behind."""
    site = tmp_path / "site"
    shutil.copy2(few_pages / "index.html", published / "latest")
    for version in ("v0.1.0", "v0.0.9"):
        publish.assemble(few_pages, site, root, published, version=version, keep_latest=True)
        assert (site / "latest" / "gone.html").read_text() == "of yesterday"
        same = (site / version / "index.html").read_bytes() == (few_pages / "index.html").read_bytes()
        assert same == (version == "v0.1.0")
    assert (site / "v0.0.9" / "index.html").read_text() == "as it was"
    with pytest.raises(ValueError, match="name a version"):
        publish.assemble(few_pages, site, root, published, keep_latest=True)


def test_an_old_address_leads_to_the_new_page(root, few_pages, tmp_path, chromium):
    (root / "book" / "_redirects.txt").write_text("old/deep/start.html book/intro.html#main-content\nold.html book/intro.html\n")
    site = tmp_path / "site"
    publish.assemble(few_pages, site, root)
    old = site / "latest" / "old" / "deep" / "start.html"
    document = html_checks.soup(old)
    assert document.find("link", rel="canonical")["href"] == f"{BASE}latest/book/intro.html"
    target = document.find("a")["href"]
    assert (old.parent / target.split("#")[0]).resolve() == site / "latest" / "book" / "intro.html"
    page = chromium.new_page()
    page.goto(old.as_uri())
    page.wait_for_url("**/latest/book/intro.html#main-content", timeout=120_000)
    page.goto((site / "latest" / "old.html").as_uri() + "#sigma=2")
    page.wait_for_url("**/latest/book/intro.html#sigma=2", timeout=120_000)
    page.close()


@pytest.mark.parametrize(
    "line, message",
    [
        ("old.html", "expected OLD.html NEW.html"),
        ("old.html https://elsewhere.example/x.html", "expected OLD.html NEW.html"),
        ("a.html book/intro.html\na.html book/theorems.html", "cannot be redirected"),
        ("../a.html book/intro.html", "cannot be redirected"),
        ("old.html book/none.html", "no page of the book"),
        ("old.html book/intro.html#none", "no such anchor"),
        ("book/intro.html book/theorems.html", "is a page of the book"),
        ("a.html b.html\nb.html book/intro.html", "no page of the book"),
    ],
)
def test_a_wrong_line_is_refused_and_the_old_site_stays(root, few_pages, tmp_path, line, message):
    site = tmp_path / "site"
    publish.assemble(few_pages, site, root)
    before = {path: path.read_bytes() for path in site.rglob("*.html")}
    (root / "book" / "_redirects.txt").write_text(line + "\n")
    with pytest.raises(ValueError, match=message):
        publish.assemble(few_pages, site, root)
    assert {path: path.read_bytes() for path in site.rglob("*.html")} == before
    assert list(tmp_path.glob(".site*")) == []


def lost_pages(root):
    """Addresses that a commit renamed or removed, that no page has now, and that the table does not name."""
    command = "git log -M --diff-filter=DR --name-status --format= -- book notebooks".split()
    log = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    old = {line.split("\t")[1] for line in log.splitlines() if line}
    pages = {name for name in old if re.fullmatch(r"book/\w+\.md|notebooks/[\w/]+\.ipynb", name)}
    gone = {re.sub(r"\.\w+$", ".html", name) for name in pages if not (root / name).exists()}
    return sorted(gone - set(publish.redirects(root)))


def test_every_page_that_ever_was_is_still_reached():
    assert lost_pages(tools.ROOT) == []


# --- previews and citation --------------------------------------------------------------------------


def test_every_page_says_what_a_shared_link_shows(site):
    problems = []
    for name in [*page_names(), "index.html"]:
        document = part(site / "latest" / name, "<head>", "</head>")
        tags = {node["property"]: node["content"] for node in document.select('meta[property^="og:"]')}
        page = page_names()[0] if name == "index.html" else name
        expected = {
            "og:url": f"{BASE}latest/{page}",
            "og:image": f"{BASE}latest/_static/social_card.png",
            "og:site_name": yaml.safe_load((tools.ROOT / "_config.yml").read_text())["title"],
        }
        problems += [
            f"{name}: {key} is {tags.get(key)!r}" for key, value in expected.items() if tags.get(key) != value
        ]
        short = [key for key in ("og:title", "og:description", "og:image:alt") if len(tags.get(key, "")) < 5]
        problems += [f"{name}: no {key}" for key in short]
        if document.select_one('meta[name="twitter:card"][content="summary_large_image"]') is None:
            problems.append(f"{name}: no twitter:card")
        canonical = [node["href"] for node in document.find_all("link", rel="canonical")]
        if canonical != [expected["og:url"]]:
            problems.append(f"{name}: canonical addresses {canonical}")
    assert not problems, "\n".join(problems)


def test_the_card_shows_what_the_library_computes():
    from PIL import Image

    with Image.open(social_card.TARGET) as image:
        assert image.size == (1200, 630)
        stored = json.loads(image.text["Description"])
    computed = social_card.numbers()
    assert list(stored) == list(computed)
    for name, values in computed.items():
        assert stored[name] == pytest.approx(values, rel=2e-6), name


def test_the_citation_is_complete_and_agrees_with_the_library():
    fields = citation(tools.ROOT)
    project = tomllib.loads((tools.ROOT / "pyproject.toml").read_text())["project"]
    assert fields["version"] == project["version"]
    assert fields["repository-code"] == repository()[0]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(fields["date-released"]))
    assert fields["cff-version"] == "1.2.0" and fields["message"]


def test_bibtex_reads_back_what_the_citation_says():
    from pybtex.database import parse_string

    fields = citation(tools.ROOT) | {
        "authors": [
            {"name": "The Authors of Something and More"},
            {"family-names": "Doe", "given-names": "Jo"},
        ]
    }
    entry = parse_string(as_bibtex(fields, BASE), "bibtex").entries["privacy_amplification_book"]
    organisation, person = entry.persons["author"]
    assert str(organisation) == "{The Authors of Something and More}"
    assert (person.last_names, person.first_names) == (["Doe"], ["Jo"])
    assert entry.fields["title"].strip("{}") == fields["title"]
    assert entry.fields["version"] == fields["version"] and entry.fields["url"] == BASE
    assert entry.fields["year"] == str(fields["date-released"])[:4]


def test_the_page_how_to_cite_shows_it(html):
    text = html_checks.soup(html / "book" / "how_to_cite.html").find("article").get_text()
    fields = citation(tools.ROOT)
    for expected in (as_text(fields, BASE), as_bibtex(fields, BASE)):
        assert " ".join(expected.split()) in " ".join(text.split())


def test_every_page_names_its_version_and_leads_to_the_others(html):
    for name in page_names():
        footer = part(html / name, '<div class="extra_footer">', "</div>")
        assert f"Version {citation(tools.ROOT)['version']}" in footer.get_text(), name
        links = [node["href"] for node in footer.find_all("a")]
        assert links[0] == f"{BASE}versions.html" and re.search(r"how_to_cite\.html$|^#$", links[1]), name
