"""Draw the picture that a shared link shows: book/_static/social_card.png, 1200 by 630 pixels.

    python -m tools social-card

It shows what the book is about in numbers: epsilon of DP-SGD for a group, against the size of the group, and what
the black-box lemma says instead. The numbers are stored in the picture, and a test computes them again.
"""

import json
from pathlib import Path

import dplib
from dplib.lessons import baselines, plotting

TARGET = Path(__file__).resolve().parent.parent / "book" / "_static" / "social_card.png"
SETTING = {"noise_multiplier": 1.0, "sampling_probability": 0.01, "steps": 2000}
DELTA = 1e-6
SIZES = (1, 2, 4, 6, 8, 10, 12, 14, 16)
LEMMA_SIZES = (2, 3, 4, 5, 6)


def numbers():
    """Upper ends of epsilon for groups, the larger direction, with six digits."""
    single = dplib.PoissonDPSGD(**SETTING)
    certified = [dplib.PoissonDPSGD(**SETTING, group_size=size).epsilon(DELTA).upper for size in SIZES]
    lemma = [baselines.group_lemma(single, DELTA, size) for size in LEMMA_SIZES]
    return {"certified": [float(f"{x:.6g}") for x in certified], "lemma": [float(f"{x:.6g}") for x in lemma]}


def draw(target=TARGET):
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    values = numbers()
    plotting.use_style()
    figure = plt.figure(figsize=(12, 6.3), dpi=100, layout="none")
    ax = figure.add_axes((0.09, 0.14, 0.86, 0.54))
    figure.text(0.05, 0.875, "Privacy Amplification,", fontsize=38, weight="bold")
    figure.text(0.05, 0.765, "Derived and Verified", fontsize=38, weight="bold")
    for index, (sizes, name) in enumerate(((SIZES, "certified"), (LEMMA_SIZES, "lemma"))):
        ax.plot(sizes, values[name], **plotting.curve(index), linewidth=4, marker="o", markersize=10)
    ax.set_ylim(0, 1.35 * max(values["certified"]))
    ax.set_xticks(SIZES)
    ax.tick_params(labelsize=16)
    ax.set_xlabel("records in the group", fontsize=18)
    ax.set_ylabel("ε at δ = 10⁻⁶", fontsize=18)
    place = {"fontsize": 18, "textcoords": "offset points"}
    ax.annotate("certified upper bound", (SIZES[-3], values["certified"][-3]), xytext=(10, -34), **place)
    ax.annotate("black-box lemma", (LEMMA_SIZES[-2], values["lemma"][-2]), xytext=(22, 4), **place)
    figure.savefig(target, dpi=100, metadata={"Description": json.dumps(values), "Software": None})
    plt.close(figure)


if __name__ == "__main__":
    draw()
    print(TARGET.name, "written")
