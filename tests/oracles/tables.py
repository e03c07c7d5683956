#!/usr/bin/env python3
"""The tables of docs/networks.md that have figures, out of the program and the oracles.

    tables.py --prony BUILD/prony [--add FILE] [--check] [--docs FILE]

Parameters and MACs come from `prony list networks`; a definition, which nobody can compute, stays as
it is. Differences come from figures.jsonl beside this file: what the programs *_oracle.py append to
the file that PRONY_ORACLE_FIGURES names, taken up with --add. --check writes nothing and ends with
status 1 when the documentation says something else. Standard library only.
"""
import argparse
import difflib
import json
import os
import re
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
FIGURES = os.path.join(FOLDER, "figures.jsonl")
DOCS = os.path.join(FOLDER, "..", "..", "docs", "networks.md")
NETWORKS_HEAD = "| name | definition | input | parameters | MACs |"
ORACLES_HEAD = "| network | against | in | evaluation | training | gradients | statistics |"
KINDS = ("evaluation", "logits", "gradient", "state")


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
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--docs", metavar="FILE", default=DOCS, help="instead of docs/networks.md")
    options = parser.parse_args()
    figures = read_figures(FIGURES)
    listed = json.loads(subprocess.run([options.prony, "list", "networks", "--format", "json"],
                                       check=True, stdout=subprocess.PIPE).stdout)
    if options.add:
        figures.update(read_figures(options.add))
        order = [row["network"] for row in listed]
        with open(FIGURES, "w", encoding="utf-8") as file:
            for row in sorted(figures.values(), key=lambda row: (order.index(row["network"]),
                                                                 row["precision"] == "float32")):
                file.write(json.dumps(row) + "\n")
    with open(options.docs, encoding="utf-8") as file:
        old = file.read().split("\n")
    new = replace_table(old, NETWORKS_HEAD, lambda rows: networks_table(listed, rows))
    new = replace_table(new, ORACLES_HEAD, lambda _: oracles_table(listed, figures))
    if not options.check:
        with open(options.docs, "w", encoding="utf-8") as file:
            file.write("\n".join(new))
        return 0
    for line in difflib.unified_diff(old, new, options.docs, "figures", lineterm="", n=0):
        print(line)
    return 0 if old == new else 1


if __name__ == "__main__":
    sys.exit(main())
