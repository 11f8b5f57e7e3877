"""No test judges by the clock: a busy machine is no failure. Run times are the benchmarks' business."""

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
CLOCKS = {"process_time", "perf_counter", "monotonic", "time_ns", "perf_counter_ns", "process_time_ns", "thread_time", "getrusage", "cpu_times"}


def clocks(text):
    """Lines on which a program reads a clock, `time.time()` included."""
    lines = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr.removesuffix("_ns") in CLOCKS or (owner == "time" and node.attr in ("time", "time_ns")):
                lines.append(node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module in ("time", "timeit"):
            lines += [node.lineno for name in node.names if name.name != "sleep"]
        elif isinstance(node, ast.Import):
            lines += [node.lineno for name in node.names if name.name == "timeit"]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "time.process_time()" in node.value:
            lines.append(node.lineno)
        elif isinstance(node, ast.keyword) and node.arg == "deadline" and getattr(node.value, "value", 0) is not None:
            lines.append(node.lineno)
    return lines


def test_no_test_reads_a_clock():
    found = {
        path.relative_to(TESTS).as_posix(): lines
        for path in sorted(TESTS.rglob("*.py"))
        if path != Path(__file__).resolve() and "oracle" not in path.parts and (lines := clocks(path.read_text(encoding="utf-8")))
    }
    assert not found, f"count work instead (calls, iterations, sizes), or move it to benchmarks/: {found}"
