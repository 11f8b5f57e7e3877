"""Compare dplib with other libraries on common ground; write benchmarks/results/peers.json and book/peers.md.

    python -m tools peers                    every question
    python -m tools peers poisson renyi      these questions anew; the others keep their rows

Each library lives in an environment of its own, made on first use; each call is a process of its own, with one thread,
a limit on CPU time and one on memory. A call that fails, or does not end, is a row like any other.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "benchmarks" / "peers"
RESULTS = ROOT / "benchmarks" / "results"
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "benchmarks"), str(PEERS)]

import one_move  # noqa: E402
import peers_page  # noqa: E402
from _environments import environment  # noqa: E402
from questions import LIBRARIES, QUESTIONS  # noqa: E402

MEGABYTES = 6000  # address space of a call
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
VERSION = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"


def pythons():
    """The interpreter of every library; makes the environments that are missing."""
    found = {}
    for name, (_, _, venv, requirements) in LIBRARIES.items():
        found[name] = sys.executable if requirements is None else environment(venv, PEERS / requirements)
    return found


def version(python, name):
    if name == "dplib":
        import dplib

        return dplib.__version__
    if LIBRARIES[name][3] is None:
        return LIBRARIES[name][0]  # a paper, written down in benchmarks/peers
    done = subprocess.run([str(python), "-c", VERSION, LIBRARIES[name][0]], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def answers(python, library, question):
    """The rows of a library for a question: answers, or in words why there is none."""
    accountants = [accountant for name, accountant in question.answers if name == library]
    wanted = [(accountant, setting) for setting in question.settings for accountant in accountants]
    calls = [(f"{who}_{question.name}", setting, question.seconds, MEGABYTES) for who, setting in wanted]
    command = [str(python), str(PEERS / "_child.py"), LIBRARIES[library][1]]
    rows = []
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=os.environ | ONE_THREAD, **pipes) as process:
        process.stdin.write(json.dumps(calls))
        process.stdin.close()
        for (accountant, setting), told in zip(wanted, process.stdout):
            told = json.loads(told)
            row = {"question": question.name, "library": library, "accountant": accountant, "setting": setting}
            rows.append(row | outcome(told["status"], told["out"], told["err"], question.seconds))
            print(f"  {rows[-1]}", flush=True)
    if process.returncode or len(rows) < len(wanted):
        raise SystemExit(f"peers: {library} cannot be asked: its process ended with status {process.returncode}")
    return rows


def outcome(status, out, err, seconds):
    """What a finished process says: value, direction, CPU seconds and megabytes, or `failure`."""
    if status in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM):
        return {"failure": f"no answer in {seconds} s"}
    if status:
        last = (err.strip().splitlines() or [f"exit status {status}"])[-1]
        memory = "MemoryError" in last or "Out of memory" in last  # Python's words, XLA's
        return {"failure": "memory limit reached" if memory else last[:200]}
    told = json.loads(out.strip().splitlines()[-1])
    answer = told["answer"]
    if not isinstance(answer["value"], float) or answer["value"] != answer["value"]:
        return {"failure": f"answered {answer['value']}"}
    if answer["value"] == float("inf"):
        answer["value"] = "infinite"
    # Ten digits: a bracket's ends must stay apart from a neighbour's by less than what is judged.
    rounded = {key: float(f"{value:.10g}") if isinstance(value, float) else value for key, value in answer.items()}
    return rounded | {"cpu_s": float(f"{told['cpu_s']:.3g}"), "peak_mb": round(told["peak_mb"])}


def rows_of(question, interpreters, jobs):
    """The rows of a question, in the order of its settings; so many libraries at a time."""
    print(f"peers: {question.title}, {len(question.settings) * len(question.answers)} calls", flush=True)
    libraries = list(dict.fromkeys(library for library, _ in question.answers))
    with ThreadPoolExecutor(jobs) as pool:
        found = pool.map(lambda library: answers(interpreters[library], library, question), libraries)
        rows = [row for rows in found for row in rows]
    order = [(setting, *answer) for setting in question.settings for answer in question.answers]
    return sorted(rows, key=lambda row: order.index((row["setting"], row["library"], row["accountant"])))


def stored():
    path = RESULTS / "peers.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"rows": []}


def write(rows, versions):
    """The results, the questions in their order."""
    order = [question.name for question in QUESTIONS]
    record = {
        "about": "cpu_s: CPU seconds of one call, one thread, imports not counted; peak_mb: memory of its process, what imports hold included",
        "versions": versions,
        "limit_mb": MEGABYTES,
        "rows": sorted(rows, key=lambda row: order.index(row["question"])),
    }
    one_move.write_text(RESULTS / "peers.json", json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [question.name for question in QUESTIONS]
    parser.add_argument("questions", nargs="*", choices=[[], *names], metavar="QUESTION", help=", ".join(names))
    parser.add_argument("--jobs", type=int, default=1, help="libraries at a time")
    options = parser.parse_args(arguments)
    wanted = [question for question in QUESTIONS if not options.questions or question.name in options.questions]
    interpreters = pythons()
    versions = {name: version(python, name) for name, python in interpreters.items()}
    for question in wanted:  # stored one by one: what is done stays when the next is interrupted
        rows = rows_of(question, interpreters, options.jobs)
        write([row for row in stored()["rows"] if row["question"] != question.name] + rows, versions)
    try:
        peers_page.write(stored())
    except ValueError as error:  # a question without results, a page without a block
        raise SystemExit(f"peers: the page stays as it was: {error}") from None
    return 0


if __name__ == "__main__":
    sys.exit(main())
