"""A module in a sub-folder of the library is seen by everything that asks for its files."""

import shutil

import library_files

PLANTED = '"""Nothing."""\n\n\ndef planted():\n    """Nothing."""\n'


def test_public_modules_are_listed(tmp_path, monkeypatch):
    shutil.copytree(library_files.ROOT / "dplib", tmp_path / "dplib", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(library_files, "ROOT", tmp_path)
    before = library_files.public_modules()
    assert before[0] == "dplib" and "dplib.lessons.studies" in before and "dplib.gaussian" in before
    assert not any("_" in part[0] for name in before for part in name.split("."))
    for file in ("lessons/planted.py", "rooms/__init__.py", "rooms/inner.py", "_hidden/__init__.py", "_hidden/planted.py"):
        path = tmp_path / "dplib" / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(PLANTED)
    assert set(library_files.public_modules()) - set(before) == {"dplib.rooms", "dplib.lessons.planted"}
