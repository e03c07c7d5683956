#!/usr/bin/env python3
"""The tables of docs/networks.md that have figures, out of the program, the oracles and real runs.

    tables.py --prony BUILD/prony [--add FILE] [--cells STORE] [--check] [--docs FILE]

Parameters and MACs come from `prony list networks`; a definition, which nobody can compute, stays as
it is. Differences come from figures.jsonl beside this file: what the programs *_oracle.py append to
the file that PRONY_ORACLE_FIGURES names, taken up with --add. What became of cells comes from
cells.jsonl, which --cells adds the finished cells of a store of `prony run` to. --check writes nothing
and ends with status 1 when the documentation says something else. Standard library only.
"""
import argparse
import difflib
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing

FOLDER = os.path.dirname(os.path.abspath(__file__))
FIGURES = os.path.join(FOLDER, "figures.jsonl")
CELLS = os.path.join(FOLDER, "cells.jsonl")
DOCS = os.path.join(FOLDER, "..", "..", "docs", "networks.md")
NETWORKS_HEAD = "| name | definition | input | parameters | MACs |"
ORACLES_HEAD = "| network | against | in | evaluation | training | gradients | statistics |"
KINDS = ("evaluation", "logits", "gradient", "state")
STAGES = {"forward": ("native", "onnxruntime", "mxnet", "pytorch"),
          "forward-backward": ("native", "mxnet", "pytorch"),
          "train": ("native", "mxnet", "pytorch")}
CELLS_HEAD = "| network | " + " | ".join(
    f"{stage} {framework}" if framework == frameworks[0] else framework
    for stage, frameworks in STAGES.items() for framework in frameworks) + " |"
REASONS_HEAD = "| framework | stage | `unsupported`, because | networks |"


def read_figures(path):
    """(network, precision) -> row; of the same two the later one."""
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    return {(row["network"], row["precision"]): row for row in rows}


def number(value):
    """2.7e-15, 1.7e-6."""
    return re.sub("e([+-])0*", r"e\1", f"{value:.1e}")


def networks_table(listed, old):
    """`old`: the rows that there are, for their definitions."""
    definitions = {}
    for line in old:
        name, definition = [cell.strip() for cell in line.split("|")[1:3]]
        definitions[name.strip("`")] = definition
    return [f"| `{row['network']}` | {definitions.get(row['network'], row['summary'])} "
            f"| {row['input']} | {row['parameters']:,} | {row['macs']:,} |" for row in listed]


def oracles_table(listed, figures):
    rows = []
    for name in (row["network"] for row in listed):
        first = True
        for precision in ("float64", "float32"):
            row = figures.get((name, precision))
            if row:
                cells = [number(row[kind]) if kind in row else "" for kind in KINDS]
                start = [f"`{name}`", row["against"]] if first else ["", ""]
                rows.append("| " + " | ".join(start + [precision] + cells) + " |")
                first = False
        if first:
            raise SystemExit(f"{FIGURES} has no figures of {name}: no oracle has seen it")
    return [re.sub(r"\|  (?=\|)", "| ", row) for row in rows]


def read_cells(path):
    """(network, stage, framework) -> row."""
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    return {(row["network"], row["stage"], row["framework"]): row for row in rows}


def finished_cells(store):
    """The same out of a store: of each cell the newest that came to an end, in fp32 with momentum."""
    cells = {}
    query = ("select network, stage, framework, batch, status, reason, evidence from cell "
             "where status <> 'pending' and precision = 'fp32' "
             "and (optimiser = 'momentum' or stage <> 'train') order by id")
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as base:
        for network, stage, framework, batch, status, reason, evidence in base.execute(query):
            row = {"network": network.split("@")[0], "stage": stage, "framework": framework,
                   "batch": batch, "status": status}
            worst = (json.loads(evidence) if evidence else {}).get("worst")
            if worst and worst["value"] is not None:
                row["worst"] = float(f"{worst['value'] / worst['bound']:.2g}")
            if reason:
                row["reason"] = reason
            cells[row["network"], stage, framework] = row
    return cells


def cell_word(row):
    if not row:
        return ""
    if row["status"] == "ok":
        return f"{row['worst']:.2f}"
    return {"unsupported": "no"}.get(row["status"], f"**{row['status']}**")


def cells_table(names, cells):
    return [f"| `{name}` | " + " | ".join(
        cell_word(cells.get((name, stage, framework)))
        for stage, frameworks in STAGES.items() for framework in frameworks) + " |"
        for name in names]


def reasons_table(names, cells):
    """One row for each sentence. A stage that a framework has not is missing in every network; the
    nodes that another reason ends in differ from network to network."""
    found = {}
    for name in names:
        for (network, stage, framework), row in sorted(cells.items()):
            if network == name and row["status"] == "unsupported":
                sentence = re.sub(r": LRN .*|^stage [a-z-]*: ", "", row["reason"])
                whole = row["reason"].startswith("stage ")
                stages, networks = found.setdefault((framework, sentence), ([], []))
                stages.extend([] if stage in stages else [stage])
                networks.extend({"all" if whole else f"`{name}`"} - set(networks))
    return [f"| {framework} | {', '.join(stage for stage in STAGES if stage in stages)} | {sentence} "
            f"| {', '.join(networks)} |"
            for (framework, sentence), (stages, networks) in sorted(found.items())]


def replace_table(lines, head, make):
    """The rows below the line `head` and its rule become make(rows)."""
    if head not in lines:
        raise SystemExit(f"there is no table '{head}'")
    first = lines.index(head) + 2
    last = first
    while last < len(lines) and lines[last].startswith("|"):
        last += 1
    return lines[:first] + make(lines[first:last]) + lines[last:]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prony", required=True, help="the program")
    parser.add_argument("--add", metavar="FILE", help="figures of oracles to take up")
    parser.add_argument("--cells", metavar="STORE", help="cells of a store to take up")
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--docs", metavar="FILE", default=DOCS, help="instead of docs/networks.md")
    options = parser.parse_args()
    figures, cells = read_figures(FIGURES), read_cells(CELLS)
    listed = json.loads(subprocess.run([options.prony, "list", "networks", "--format", "json"],
                                       check=True, stdout=subprocess.PIPE).stdout)
    if options.add:
        figures.update(read_figures(options.add))
        order = [row["network"] for row in listed]
        with open(FIGURES, "w", encoding="utf-8") as file:
            for row in sorted(figures.values(), key=lambda row: (order.index(row["network"]),
                                                                 row["precision"] == "float32")):
                file.write(json.dumps(row) + "\n")
    if options.cells:
        cells.update(finished_cells(options.cells))
    names = [row["network"] for row in listed]
    names += sorted({network for network, _, _ in cells} - set(names))
    if options.cells:
        with open(CELLS, "w", encoding="utf-8") as file:
            for key in sorted(cells, key=lambda key: (names.index(key[0]), key)):
                file.write(json.dumps(cells[key]) + "\n")
    with open(options.docs, encoding="utf-8") as file:
        old = file.read().split("\n")
    new = replace_table(old, NETWORKS_HEAD, lambda rows: networks_table(listed, rows))
    new = replace_table(new, ORACLES_HEAD, lambda _: oracles_table(listed, figures))
    new = replace_table(new, CELLS_HEAD, lambda _: cells_table(names, cells))
    new = replace_table(new, REASONS_HEAD, lambda _: reasons_table(names, cells))
    if not options.check:
        with open(options.docs, "w", encoding="utf-8") as file:
            file.write("\n".join(new))
        return 0
    for line in difflib.unified_diff(old, new, options.docs, "figures", lineterm="", n=0):
        print(line)
    return 0 if old == new else 1


if __name__ == "__main__":
    sys.exit(main())
