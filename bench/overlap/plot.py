"""Draws how long the steps of build/bench/overlap.json take: overlapped, plain, and their computing alone.

Usage: plot.py RESULTS.json PICTURE.png
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

WAYS = {"computing": "computing alone", "time": "overlapped", "plain": "one after the other"}
COLOURS = {"computing": "tab:gray", "time": "tab:blue", "plain": "tab:orange"}


def main(results, picture):
    with open(results, encoding="utf-8") as file:
        rows = [row for row in json.load(file)["benchmarks"] if "exposed" in row]
    if not rows:
        print(f"no row of {results} is a step: nothing to draw")
        return
    figure, axes = plt.subplots(figsize=(10, 1 + 1.1 * len(rows)), layout="constrained")
    for place, row in enumerate(rows):
        for offset, (way, label) in enumerate(WAYS.items()):
            relative = row[way] / row["computing"]
            axes.barh(place + 0.27 * (offset - 1), relative, 0.25, color=COLOURS[way], label=None if place else label)
            axes.text(relative, place + 0.27 * (offset - 1), f" {1e3 * row[way]:.4g} ms", va="center", fontsize=7)
    names = [row["name"].removesuffix("/manual_time").replace("/tokens", "\ntokens").replace("/N", "\nN") for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=7)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("time of a step, of that of its computing")
    figure.legend(loc="outside upper center", ncols=len(WAYS), fontsize=9)
    figure.savefig(picture, dpi=150)


main(*sys.argv[1:])
