"""Draws the fraction of the peak, by size, that the rows of build/bench/kernels.json reach: ours and each peer's.

Usage: plot.py RESULTS.json PICTURE.png
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

PEERS = {"eigen": "Eigen", "openblas": "OpenBLAS", "onednn": "oneDNN", "torch": "PyTorch"}
COLOURS = {"ours": "black", "eigen": "tab:green", "openblas": "tab:orange", "onednn": "tab:blue", "torch": "tab:red"}


class Row:
    """One case: its family, its sizes, and who reaches which fraction of what bounds it."""

    def __init__(self, counters):
        kernel, kind, *sizes = counters["name"].removesuffix("/manual_time").split("/")
        streams = "fraction_of_bandwidth" in counters
        self.family = f"{kernel} {kind}" + (", of bandwidth" if streams else "")
        if sizes[-1].startswith("causal:"):
            self.family += ", causal" if sizes.pop() == "causal:1" else ""
        self.sizes = "\n".join(sizes)
        self.flops = counters["gflops"] * counters["real_time"]
        ours = counters["fraction_of_bandwidth" if streams else "fraction_of_peak"]
        self.fractions = {"ours": ours}
        self.fractions |= {peer: ours / counters[f"vs_{peer}"] for peer in PEERS if f"vs_{peer}" in counters}


def families(results):
    rows = [Row(counters) for counters in results if "fraction_of_peak" in counters]
    by_name = {}
    for row in sorted(rows, key=lambda row: row.flops):
        by_name.setdefault(row.family, []).append(row)
    return dict(sorted(by_name.items()))


def draw(axes, family, rows):
    for who, colour in COLOURS.items():
        points = [(place, row.fractions[who]) for place, row in enumerate(rows) if who in row.fractions]
        if points:
            label = "Reigen" if who == "ours" else PEERS[who]
            axes.plot(*zip(*points), marker="o", markersize=3, color=colour, label=label,
                      linewidth=2 if who == "ours" else 1)
    axes.set_title(family.replace("_", " "), fontsize=9)
    axes.set_xticks(range(len(rows)), [row.sizes for row in rows], fontsize=6)
    axes.set_ylim(0, 1.05)
    axes.grid(axis="y", alpha=0.3)


def main(results, picture):
    with open(results, encoding="utf-8") as file:
        contents = json.load(file)
    panels = families(contents["benchmarks"])
    if not panels:
        print(f"no row of {results} has a fraction of the peak: nothing to draw")
        return
    across = 2
    down = -(-len(panels) // across)
    figure, grid = plt.subplots(down, across, figsize=(12, 2.7 * down), squeeze=False, layout="constrained")
    for axes in grid.flat[len(panels):]:
        axes.set_visible(False)
    handles = {}
    for axes, (family, rows) in zip(grid.flat, panels.items()):
        draw(axes, family, rows)
        handles |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles), fontsize=9)
    figure.supylabel("fraction of the measured peak, on one core", fontsize=9)
    figure.savefig(picture, dpi=150)


main(*sys.argv[1:])
