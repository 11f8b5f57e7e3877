"""Claims: none of the other benchmarks' computations takes more than 300 MB, each in its own process; the import takes 0.5 s."""

import sys

from _common import Report, in_fresh_process

WORKLOADS = {
    "import dplib": ("peak_memory", "only_import"),
    "reference values, group and figures": ("reference_values", "run_workload", "group", "group_figures"),
    "reference values, oracle": ("reference_values", "run_workload", "oracle"),
    "epsilon, the grid": ("epsilon_speed", "run_workload"),
    "calibration": ("calibration_speed", "run_workload"),
}
MEGABYTES = 300


def only_import():
    import dplib

    return len(dplib.__all__)


def main():
    report = Report("peak_memory", "Peak resident memory")
    rows = []
    for name, (module, function, *arguments) in WORKLOADS.items():
        done = in_fresh_process(module, function, *arguments)
        if "failure" in done:
            report.wrong(f"{name}: {done['failure']}")
            continue
        rows.append(
            {"workload": name, "answered": done["answer"], "peak MB": done["peak_mb"], "s": done["seconds"]}
        )
    report.table("One process each", rows)
    report.say("")
    for row in rows:
        report.claim(row["workload"], row["peak MB"], at_most=MEGABYTES, unit="MB")
    for row in rows:
        if row["workload"] == "import dplib":
            report.claim("import dplib, seconds", row["s"], at_most=0.5, unit="s")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
