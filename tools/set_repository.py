"""Write the repository's address everywhere it stands.

    python -m tools set-repository https://github.com/OWNER/NAME

`_config.yml` says what the address is now; every text file that contains it is rewritten, the bootstrap
cells of the notebooks included. Outputs stay as they are: the bootstrap cell is no part of a notebook's stamp.
"""

import argparse
import re
import subprocess
from pathlib import Path

from bootstrap_cell import ROOT, repository

TEXT = (".cff", ".cfg", ".css", ".html", ".ipynb", ".json", ".md", ".py", ".toml", ".txt", ".yaml", ".yml", ".bib", ".svg")
COLAB = "https://colab.research.google.com/github/"
ADDRESS = re.compile(r"https://github\.com/([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([A-Za-z0-9._-]+)")


def clean_address(text):
    """The address in its one accepted form; ValueError says what is wrong."""
    address = text.strip().rstrip("/").removesuffix(".git")
    address = re.sub(r"^git@github\.com:", "https://github.com/", address)
    if ADDRESS.fullmatch(address) is None:
        raise ValueError(f"URL is {text!r}; expected https://github.com/OWNER/NAME (the Colab buttons work with GitHub alone)")
    return address


def text_files(root):
    """Text files that belong to the project: those git knows of, or all where there is no git."""
    root = Path(root)
    if (root / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode()
        paths = [root / name for name in listed.split("\0") if name]
    else:
        paths = [path for path in root.rglob("*") if not re.search(r"(^|/)(\.venv|_build/|__pycache__/)", str(path.relative_to(root)))]
    return sorted(path for path in paths if (path.suffix in TEXT or path.name in ("Makefile", "LICENSE", "LICENSE-text")) and path.is_file())


def set_repository(root, address):
    """Replace the present address by another; return the files changed."""
    old, new = repository(root)[0], clean_address(address)
    whole = re.compile(re.escape(old) + r"(?![A-Za-z0-9-]|[._](?=[A-Za-z0-9]))")
    whole_git = re.compile(re.escape(old) + r"\.git(?![A-Za-z0-9-])")
    colab_old, colab_new = (f"{COLAB}{address.removeprefix('https://github.com/')}/blob/" for address in (old, new))
    changed = []
    for path in text_files(root):
        text = path.read_bytes().decode("utf-8")
        replaced = whole.sub(lambda _: new, whole_git.sub(lambda _: new + ".git", text))
        replaced = replaced.replace(colab_old, colab_new)
        if replaced != text:
            path.write_bytes(replaced.encode("utf-8"))
            changed.append(path)
    return changed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="such as https://github.com/OWNER/NAME")
    try:
        changed = set_repository(ROOT, parser.parse_args().url)
    except ValueError as error:
        parser.error(str(error))
    for path in changed:
        print(f"set-repository: {path.relative_to(ROOT)}")
    print(f"set-repository: {len(changed)} files changed")


if __name__ == "__main__":
    main()
