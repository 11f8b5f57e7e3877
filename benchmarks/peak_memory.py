"""Claim: none of the other benchmarks' computations takes more than 300 MB, each in its own process."""

import sys

from _common import Report, in_fresh_process

WORKLOADS = {
    "import dplib": ("peak_memory", "only_import"),
    "all reference values": ("reference_values", "run_workload"),
    "epsilon, the grid": ("epsilon_speed", "run_workload"),
    "lattice, the grid": ("lattice_speed", "run_workload"),
    "calibration": ("calibration_speed", "run_workload"),
    "points of both figures": ("figure_points", "run_workload"),
}
MEGABYTES = 300


def only_import():
    import dplib

    return len(dplib.__all__)


def main():
    report = Report("peak_memory", "Peak resident memory")
    rows = []
    for name, (module, function) in WORKLOADS.items():
        done = in_fresh_process(module, function)
        if "failure" in done:
            report.wrong(f"{name}: {done['failure']}")
            continue
        rows.append(
            {"workload": name, "computations": done["answer"], "peak MB": done["peak_mb"], "s": done["wall"]}
        )
    report.table("One process each", rows)
    report.say("")
    report.claim("largest peak", max(r["peak MB"] for r in rows), at_most=MEGABYTES, unit="MB")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
