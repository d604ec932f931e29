"""Draws how fast the collectives of build/bench/communication.json are, by size, against MPI's own.

Usage: plot.py RESULTS.json PICTURE.png
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

WAYS = {
    "ours": ("Reigen", "black"),
    "buffer": ("Reigen, memory of a Buffer", "tab:blue"),
    "mpi": ("MPI", "tab:orange"),
}


def collectives(results):
    """Microseconds by collective, way and bytes."""
    found = {}
    for row in results:
        parts = row["name"].removesuffix("/manual_time").split("/")
        if "mpi_us" not in row or len(parts) < 3:
            continue
        call, size = parts[0], int(parts[2])
        lines = found.setdefault(call, {way: {} for way in WAYS})
        lines["buffer" if len(parts) > 3 else "ours"][size] = row["median_us"]
        if len(parts) == 3:
            lines["mpi"][size] = row["mpi_us"]
    return found


def main(results, picture):
    with open(results, encoding="utf-8") as file:
        found = collectives(json.load(file)["benchmarks"])
    if not found:
        print(f"no row of {results} is a collective with a size: nothing to draw")
        return
    across = 2
    down = -(-len(found) // across)
    figure, grid = plt.subplots(down, across, figsize=(10, 3 * down), squeeze=False, layout="constrained")
    for axes in grid.flat[len(found):]:
        axes.set_visible(False)
    for axes, (call, lines) in zip(grid.flat, found.items()):
        for way, (label, colour) in WAYS.items():
            if lines[way]:
                axes.loglog(*zip(*sorted(lines[way].items())), marker="o", markersize=3, color=colour, label=label)
        axes.set_title(call, fontsize=9)
        axes.set_xlabel("bytes of the whole", fontsize=8)
        axes.set_ylabel("microseconds", fontsize=8)
        axes.grid(alpha=0.3)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), fontsize=9)
    figure.savefig(picture, dpi=150)


main(*sys.argv[1:])
