"""Build _build/site: exactly what is published.

    python -m tools publish [--version v0.1.0] [--previous FOLDER] [--keep-latest] [--without-python]

    index.html, 404.html, versions.html, sitemap.xml, robots.txt
    latest/     the book as it is, with old addresses leading to the new ones
    vX.Y.Z/     the book as it was under that tag

Published versions are taken from --previous (a copy of what is published now), or from the local branch
`gh-pages` where there is one, and are never built again. The pages compute: Python for them is fetched as by `make live`. A tag vX.Y.Z on the present commit, or --version,
adds a version.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

import build as builder
import live
import plain_pages
import policy

ROOT = builder.ROOT
sys.path.append(str(ROOT / "book" / "_ext"))
from publishing import address  # noqa: E402

BRANCH = "gh-pages"
VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)")


def git(root, *command):
    """Standard output of a git command, or None where it fails (no git, no such branch, no tag)."""
    try:
        return subprocess.run(["git", *command], cwd=root, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def tagged_version(root):
    """The version that the present commit is tagged with, or None."""
    tags = (git(root, "tag", "--points-at", "HEAD") or b"").decode().split()
    return max(filter(VERSION.fullmatch, tags), key=order, default=None)


def order(version):
    return tuple(map(int, VERSION.fullmatch(version).groups()))


def versions(folder):
    """Names of the versions in a folder, the newest first."""
    found = [path.name for path in Path(folder).iterdir() if path.is_dir() and VERSION.fullmatch(path.name)]
    return sorted(found, key=order, reverse=True)


def redirects(root):
    """{old: new} of book/_redirects.txt; ValueError names a line that is not of the form OLD NEW."""
    table = {}
    for number, line in enumerate(Path(root, "book", "_redirects.txt").read_text().splitlines(), start=1):
        parts = line.split()
        if not parts or line.startswith("#"):
            continue
        if len(parts) != 2 or not all(re.fullmatch(r"[\w./-]+\.html(?:#[\w.-]+)?", part) for part in parts):
            raise ValueError(f"book/_redirects.txt, line {number}: {line!r}; expected OLD.html NEW.html")
        if parts[0] in table or "#" in parts[0] or ".." in parts[0]:
            raise ValueError(f"book/_redirects.txt, line {number}: {parts[0]!r} cannot be redirected (twice?)")
        table[parts[0]] = parts[1]
    return table


def write_redirects(table, folder, base):
    """A page at each old address. ValueError if an old page is there still, or a new one is not."""
    for old, new in table.items():
        page, _, anchor = new.partition("#")
        if (folder / old).exists():
            raise ValueError(f"book/_redirects.txt: {old} is a page of the book")
        if not (folder / page).is_file() or page in table:
            raise ValueError(f"book/_redirects.txt: {old} leads to {page}, which is no page of the book")
        if anchor and f'id="{anchor}"' not in (folder / page).read_text(encoding="utf-8"):
            raise ValueError(f"book/_redirects.txt: {old} leads to {new}, and {page} has no such anchor")
        (folder / old).parent.mkdir(parents=True, exist_ok=True)
        relative = "../" * old.count("/") + new
        head = f'<link rel="canonical" href="{base}{page}">\n'
        if not anchor:  # what stands behind the # of an old link goes along; a refresh alone would lose it
            head += f"<script>if (location.hash) location.replace({json.dumps(relative)} + location.hash)</script>\n"
        (folder / old).write_text(plain_pages.redirect(relative, "This page has moved", head))


def write_versions(site, base):
    """The list of versions."""
    items = ['<li><a href="latest/index.html">The latest state</a></li>']
    items += [f'<li><a href="{name}/index.html">{name[1:]}</a></li>' for name in versions(site)]
    body = "<ul>\n" + "\n".join(items) + "\n</ul>\n<p>A published version never changes.</p>"
    canonical = f'<link rel="canonical" href="{base}versions.html">\n'
    (site / "versions.html").write_text(plain_pages.page("Versions of the book", body, canonical))


def write_not_found(site, base):
    """The page that a host shows for an address that does not exist, at whatever depth."""
    start = re.sub(r"^https?://[^/]+", "", base)
    body = f"""<p>There is no page at this address.</p>
<ul>
<li><a href="{start}latest/index.html">The first page of the book</a></li>
<li><a href="{start}latest/search.html">Search</a></li>
<li><a href="{start}versions.html">Other versions</a></li>
</ul>"""
    (site / "404.html").write_text(plain_pages.page("Not found", body))


def write_index(site):
    """The start page leads to the book's first page, and has its preview."""
    first = (site / "latest" / "index.html").read_text(encoding="utf-8")
    head = "".join(f"{tag}\n" for tag in builder.preview(first))
    title = re.search(r"<title>([^<]*)</title>", first).group(1)
    start = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', first).group(1)
    text = plain_pages.redirect(f"latest/{start}", builder.html.unescape(title), head)
    (site / "index.html").write_text(text, encoding="utf-8")


def write_sitemap(site, base):
    """The pages of the latest state, for search engines: those that name an address of their own."""
    lines = []
    for path in sorted((site / "latest").rglob("*.html")):
        location = f"{base}{path.relative_to(site)}"
        if f'<meta property="og:url" content="{location}"' in path.read_text(encoding="utf-8"):
            lines.append(f"<url><loc>{escape(location)}</loc></url>")
    urls = ['<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">', *lines, "</urlset>\n"]
    text = "\n".join(['<?xml version="1.0" encoding="utf-8"?>', *urls])
    (site / "sitemap.xml").write_text(text, encoding="utf-8")
    (site / "robots.txt").write_text(f"User-agent: *\nAllow: /\n\nSitemap: {base}sitemap.xml\n")


def assemble(pages, site, root=ROOT, previous=None, version=None, keep_latest=False):
    """Put the site together from the built pages and what is published; `site` is replaced in one move.

    keep_latest: the pages become the version alone, and latest/ stays as it is published.
    """
    if version is not None and not VERSION.fullmatch(version):
        raise ValueError(f"version is {version!r}; expected a form such as v0.1.0")
    if keep_latest and version is None:
        raise ValueError("to keep latest/ as it is published, name a version")
    base, site = address(root), Path(site)
    partial = site.with_name(f".{site.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        for name in versions(previous) if previous else []:
            shutil.copytree(Path(previous, name), partial / name)
        latest = partial / "latest"
        shutil.copytree(pages, latest)
        table = redirects(root)
        write_redirects(table, latest, f"{base}latest/")
        problems = policy.secure(latest / old for old in table)
        if version and (partial / version).exists():
            print(f"publish: {version} is published already and stays as it is")
        elif version:
            shutil.copytree(latest, partial / version)
        if keep_latest and previous and Path(previous, "latest").exists():
            shutil.rmtree(latest)
            shutil.copytree(Path(previous, "latest"), latest)
        write_versions(partial, base)
        write_not_found(partial, base)
        write_index(partial)
        problems += policy.secure(partial.glob("*.html"))
        if problems:
            raise ValueError("; ".join(problems))
        write_sitemap(partial, base)
        (partial / ".nojekyll").touch()  # the host would leave out folders that begin with _
        builder.replace(partial, site)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def book(without_python=False):
    """The folder of the built book, with Python for its pages; ValueError says why there is none."""
    status, text = builder.build()
    if status:
        raise ValueError("\n  ".join(["the book does not build", *builder.problems(text)]))
    pages = ROOT / "_build" / "html"
    if not without_python:
        try:
            live.add(pages)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise ValueError(f"Python for the pages could not be fetched (WITHOUT_PYTHON=1 leaves it out): {error}") from error
    return pages


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", help="the version to add; by default the tag of the present commit")
    parser.add_argument("--previous", type=Path, help="what is published now; by default the branch gh-pages")
    parser.add_argument("--keep-latest", action="store_true", help="add the version, leave latest/ as published")
    parser.add_argument("--without-python", action="store_true", help="no cell runs in these pages; nothing is fetched")
    arguments = parser.parse_args()
    version = arguments.version or tagged_version(ROOT)
    try:
        pages = book(arguments.without_python)
        with tempfile.TemporaryDirectory() as temporary:
            previous = arguments.previous
            archive = None if previous else git(ROOT, "archive", BRANCH)
            if archive is not None:
                previous = Path(temporary)
                subprocess.run(["tar", "-x", "-C", temporary], input=archive, check=True)
            site = ROOT / "_build" / "site"
            assemble(pages, site, ROOT, previous, version, arguments.keep_latest)
    except (OSError, ValueError) as error:
        print(f"publish: {error}", file=sys.stderr)
        return 1
    print(f"The site is in {site.relative_to(ROOT)}: latest, {', '.join(versions(site)) or 'no tagged version yet'}.")
    print("Look at it: make serve FOLDER=_build/site")
    return 0


if __name__ == "__main__":
    sys.exit(main())
