#!/usr/bin/env python3
"""Tests whether a quiet machine is as steady as prony says: ten launches of ResNet-50, with prony's diagnostics.

    tests/bench/launches.py [--prony build/prony] [--launches 10] [--network resnet50] [--batch 2] [--no-selftest]

Prints the coefficient of variation over the launches' steps (standard deviation of their logarithms), and each
diagnostic that was raised: warnings of doctor before, flags of processes and of the cell, findings from the spread, pauses. Then
`prony selftest`. Bounds: at most 1 % if nothing was raised; the sensors at most 0.5 % of a core. Exit status 1 if
one of them is missed; 0 also if diagnostics were raised. Takes about three minutes and the whole machine: end
other work first. Standard library only.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

CV_MAX, OBSERVER_MAX = 0.01, 0.005


def prony(options, *words, codes=(0,)):
    done = subprocess.run([options.prony, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode not in codes:
        sys.exit("launches.py: prony %s ended with %d: %s" % (" ".join(words), done.returncode, done.stderr[-800:]))
    return done.stdout


def doctor(options):
    """The warnings before anything is measured."""
    return ["doctor: %s: %s" % (row["check"], row["value"])
            for row in json.loads(prony(options, "doctor", "--format", "json", codes=(0, 1)))
            if row["level"] not in ("ok", "note")]


def raised(cell):
    """Each diagnostic of the launches, and how many had it."""
    launches = cell["processes"]
    flags = collections.Counter(flag for launch in launches for flag in (launch["flags"] or "").split(",") if flag)
    for flag, count in sorted(flags.items()):
        yield "%s: %d of %d launches" % (flag, count, len(launches))
    for flag in cell["flags"]:
        if flag not in flags:
            yield "%s: the cell" % flag
    for found in cell["diagnoses"]:
        yield "%s: %s" % (found["what"], found["text"])
    gap = (cell["undisturbed"] or {}).get("gap")
    if gap is not None and gap >= 0.05:
        yield "pauses: the typical step is %.1f %% above the undisturbed one" % (100 * gap)


def measure(options, store):
    words = ["run", "-f", options.framework, "-n", options.network, "-s", "train", "-b", str(options.batch),
             "--repeat", str(options.launches), "--steps", str(options.steps), "--warm-up", str(options.warm_up),
             "--store", store]
    prony(options, *words)
    (cell,) = json.loads(prony(options, "export", "--format", "json", "--store", store))["cells"]
    for launch in cell["processes"]:
        print("launch %d: %.3f ms a step, other programs took %s of its cores" % (
            launch["replicate"], launch["step_mean_ns"] / 1e6,
            "-" if launch["foreign_share"] is None else "%.1f %%" % (100 * launch["foreign_share"])))
    return cell


def check_selftest(options):
    found = json.loads(prony(options, "selftest", "--format", "json"))
    observer, noise = found["observer"], found["noise"]
    same = noise["same"]
    print("selftest: sensors take %.2f %% of a core; work is %+.2f %% slower with them (95 %%: at most %+.2f %%); noise "
          "floor %.1f %%%s; of the same twice %s of the intervals by 5 pairs hold 1" % (
              100 * observer["share_of_core"], 100 * (observer["slowdown"] - 1), 100 * (observer["high"] - 1),
              100 * noise["floor"], "" if noise["kept"] else " (not kept)",
              "-" if same["intervals_with_1"] is None else "%.0f %%" % (100 * same["intervals_with_1"])))
    return observer["share_of_core"] <= OBSERVER_MAX


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prony", default="build/prony")
    parser.add_argument("--launches", type=int, default=10)
    parser.add_argument("--framework", default="native")
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=4)
    parser.add_argument("--no-selftest", action="store_true")
    options = parser.parse_args()
    diagnostics = doctor(options)
    with tempfile.TemporaryDirectory(prefix="prony-launches-") as folder:
        cell = measure(options, os.path.join(folder, "store.db"))
    diagnostics += raised(cell)
    variation = cell["step"]["cv_between"]
    print("%s train at batch %d: coefficient of variation %.2f %% over %d of %d launches (those that count)" % (
        options.network, options.batch, 100 * variation, cell["step"]["processes"], len(cell["processes"])))
    for line in diagnostics or ["no diagnostic was raised"]:
        print("  " + line)
    good = bool(diagnostics) or variation <= CV_MAX
    if not good:
        print("missed: more than %.0f %%, and nothing says why" % (100 * CV_MAX))
    if not options.no_selftest and not check_selftest(options):
        print("missed: the sensors take more than %.1f %% of a core" % (100 * OBSERVER_MAX))
        good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
