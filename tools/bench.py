"""Run the benchmarks one after another; each writes its result to benchmarks/results/."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main():
    folder = ROOT / "benchmarks"
    names = sys.argv[1:]
    scripts = [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]
    if names:
        scripts = [path for path in scripts if path.stem in names]
    if not scripts:
        print("bench: no such benchmark" if names else "bench: benchmarks/ holds no script", file=sys.stderr)
        return 1
    failed = []
    for path in scripts:
        print(f"bench: {path.name}", flush=True)
        if subprocess.run([sys.executable, str(path)], cwd=ROOT).returncode:
            failed.append(path.name)
    if failed:
        print(f"bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
