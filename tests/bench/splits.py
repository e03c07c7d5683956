#!/usr/bin/env python3
"""How much narrower quick effort's intervals are than those of three long processes that take as long, on this machine.

    splits.py --prony BUILD/prony [--pairs 10] [--minutes 8] [--frameworks native,mxnet] [--stages train]
    splits.py --prony BUILD/prony --old OLD/build/prony --repeat 15 [...]

Pairs of runs in turn, which of the two goes first too: `--before 3x2.0` (processes x seconds of window, after
`--warm-up 0.5` seconds), as a suite whose steps a pilot has found, and `prony run --quick` as it is. Of both it takes what
the table prints: the half width of each step and of each ratio to native. Printed is now / before: half widths (geometric
mean over pairs with its 95 % interval; median; root mean square), wall time of the whole command, and the step itself,
which shows what a shorter warm-up leaves in it. Of few processes the deviation mostly comes out too small, so that the
geometric mean and the median lie above what Student's t alone says; beside them stands what each would be if processes
lay as far apart in both (drawn, fixed seed). Ten pairs of native and MXNet take five minutes for a stage; `--stages
train,forward --minutes 12` twice that. Gates run once, in the pilot. With `--old` what was before is another program's own
quick effort, and `--repeat` as many processes now as take as long; `--suite` is a file that both can read. Needs a machine that does nothing else; says how many
processes were disturbed. Standard library only.
"""
import argparse
import collections
import json
import math
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time

import pool

DRAWS = 20000
Half = collections.namedtuple("Half", "step ratio center")
Side = collections.namedtuple("Side", "program store words")


def fail(message):
    sys.exit("splits.py: " + message)


def prony(side, *words):
    command = [side.program] + list(words) + ["--store", side.store]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    # 1: a cell is unsupported, or disturbed cells have no rank.
    if done.returncode not in (0, 1):
        fail("%s: exit code %d: %s" % (" ".join(command), done.returncode, done.stderr[-500:]))
    return done.stdout


def measured(side):
    """Of the newest run: {(framework, stage): cell of `prony show --format json`}, processes, disturbed ones."""
    cells = {(cell["framework"], cell["stage"]): cell
             for cell in json.loads(prony(side, "show", "--format", "json"))["cells"] if cell["status"] == "ok"}
    with sqlite3.connect(side.store) as connection:
        counts = connection.execute(
            "SELECT COUNT(*), COALESCE(SUM(flags LIKE '%disturbed%'), 0) FROM process WHERE cell IN "
            "(SELECT id FROM cell WHERE run = (SELECT MAX(id) FROM run))").fetchone()
    connection.close()
    return cells, counts


def halves(cells):
    """{cell: Half}; of native the ratio is None."""
    found = {}
    for key, cell in cells.items():
        floor = cell["floor"] or {}
        width = floor.get("half_width") if key[0] != "native" else None
        found[key] = Half(math.log1p(cell["step"]["half_width"]), math.log1p(width) if width else None,
                          math.log(cell["step"]["center_ns"]))
    return found


def suite(options, cells, path):
    """The split before as a suite: steps and warm-up of each cell fill its seconds."""
    with open(path, "w", encoding="utf-8") as out:
        out.write("frameworks: [%s]\nnetworks: %s\nbatches: %d\nstages: [%s]\neffort: quick\nrepeat: %d\noverride:\n" % (
            options.frameworks, options.network, options.batch, options.stages, options.processes))
        for (framework, stage), cell in cells.items():
            step = cell["step"]["center_ns"] / 1e9
            out.write("  - {frameworks: %s, stages: %s, steps: %d, warm-up-steps: %d}\n" % (
                framework, stage, max(3, round(options.window / step)), max(1, round(options.warm_up / step))))


def expected(before, now):
    """(geometric mean, median, root mean square) of now's half width over before's if processes lie as far apart."""
    chance = random.Random(1)
    known = {}
    for n in (before, now):
        widths = [pool.interval([chance.gauss(0, 1) for _ in range(n)])[1] for _ in range(DRAWS)]
        known[n] = summary(widths)
    return tuple(a / b for a, b in zip(known[now], known[before]))


def summary(widths):
    return (math.exp(sum(map(math.log, widths)) / len(widths)), pool.percentile(widths, 0.5),
            math.sqrt(sum(x * x for x in widths) / len(widths)))


def between(logs):
    """Text: the geometric mean of ratios with its 95 % interval."""
    if len(logs) < 2:
        return "%.3f" % math.exp(logs[0])
    mean, width = pool.interval(logs)
    return "%.3f (%.3f to %.3f)" % (math.exp(mean), math.exp(mean - width), math.exp(mean + width))


def row(what, pairs, of):
    """A line of the table: half widths that `of` takes from the two Halves of each pair."""
    both = [(of(a), of(b)) for a, b in pairs]
    both = [(a, b) for a, b in both if a and b]
    if len(both) < 2:
        return
    before, now = (summary(list(widths)) for widths in zip(*both))
    print("| %s | %.1f %% | %.1f %% | %s | %.3f | %.3f |" % (
        what, 100 * math.expm1(before[1]), 100 * math.expm1(now[1]), between([math.log(b / a) for a, b in both]),
        now[1] / before[1], now[2] / before[2]))


def most_processes(cells):
    return max(cell["step"]["processes"] for cell in cells.values())


def evaluate(name, pairs, walls, processes):
    """processes: of before and now."""
    keys = sorted(set.intersection(*(set(side) for pair in pairs for side in pair)),
                  key=lambda key: (key[1], key[0] != "native", key[0]))
    print("\n%d pairs: %s, and --quick (%d processes)\n\n| half width of | %s, median | now, median | now / before: geometric "
          "mean (95 %%) | median | root mean square |\n| --- | ---: | ---: | ---: | ---: | ---: |" % (
              len(pairs), name, processes[1], name))
    for key in keys:
        of_cell = [(a[key], b[key]) for a, b in pairs]
        row("%s %s, step" % key, of_cell, lambda half: half.step)
        row("%s %s, ratio to native" % key, of_cell, lambda half: half.ratio)
    print("| if processes lie as far apart in both | | | %.3f | %.3f | %.3f |" % expected(*processes))
    # Cells of one run share its minutes: a pair is one case.
    for what, of in ("step", lambda half: half.step), ("ratio to native", lambda half: half.ratio):
        logs = []
        for a, b in pairs:
            both = [math.log(of(b[key]) / of(a[key])) for key in keys if of(a[key]) and of(b[key])]
            logs += [sum(both) / len(both)] if both else []
        if logs:
            print("\nall cells, half width of %s: now / before %s" % (what, between(logs)))
    print("\nwall time: %.1f s before, %.1f s now (medians); now / before %s" % (
        pool.percentile([a for a, _ in walls], 0.5), pool.percentile([b for _, b in walls], 0.5),
        between([math.log(b / a) for a, b in walls])))
    for key in keys:
        print("%s %s, the step itself: now / before %s" % (
            key + (between([b[key].center - a[key].center for a, b in pairs]),)))


def sides(options, folder):
    """What was before and what is now; gates and the pilot are behind them. A name of the first."""
    store = options.store or os.path.join(folder, "store.db")
    cells = [options.suite] if options.suite else [
        "-f", options.frameworks, "-n", options.network, "-b", str(options.batch), "-s", options.stages]
    quick = ["run"] + cells + ["--quick"]
    now = Side(options.prony, store, quick + (["--repeat", str(options.repeat)] if options.repeat else []))
    prony(now, *quick, "--repeat", "3")
    found, _ = measured(now)
    if not found:
        fail("no cell ended ok")
    if options.old:
        before = Side(options.old, store + ".old", quick)
        prony(before, *quick)
        return before, now, "another program's quick effort"
    path = os.path.join(folder, "before.yaml")
    suite(options, found, path)
    return Side(options.prony, store, ["run", path]), now, "%d x %.1f s" % (options.processes, options.window)


def compare(options, folder):
    before, now, name = sides(options, folder)
    both, end = (before, now), time.monotonic() + options.minutes * 60
    pairs, walls, most, disturbed, processes = [], [], [0, 0], 0, 0
    for pair in range(options.pairs):
        found, took = [None, None], [0.0, 0.0]
        for i in (0, 1) if pair % 2 == 0 else (1, 0):
            begin = time.monotonic()
            prony(both[i], *both[i].words)
            took[i] = time.monotonic() - begin
            cells, (ran, some) = measured(both[i])
            found[i] = halves(cells)
            processes, disturbed = processes + ran, disturbed + some
            most[i] = most_processes(cells)
        pairs.append(found)
        walls.append(took)
        print("pair %d of %d: %.1f s, %.1f s" % (pair + 1, options.pairs, *took), file=sys.stderr)
        if time.monotonic() + sum(took) > end:
            break
    evaluate(name, pairs, walls, most)
    print("%d of %d processes were disturbed" % (disturbed, processes))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prony", default="build/prony")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=8, help="no pair begins that would end later")
    parser.add_argument("--frameworks", default="native,mxnet")
    parser.add_argument("--stages", default="train")
    parser.add_argument("--network", default="lenet")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--store", help="keeps the runs there")
    parser.add_argument("--before", default="3x2.0", metavar="NxSECONDS")
    parser.add_argument("--warm-up", type=float, default=0.5, help="seconds, of the split before")
    parser.add_argument("--suite", metavar="FILE", help="its cells instead of those above")
    parser.add_argument("--old", metavar="PRONY", help="its quick effort is what was before")
    parser.add_argument("--repeat", type=int, help="processes of now")
    options = parser.parse_args()
    try:
        processes, window = options.before.split("x")
        options.processes, options.window = int(processes), float(window)
    except ValueError:
        fail("--before %s: processes x seconds are needed, as in 3x2.0" % options.before)
    if options.suite and not options.old:
        fail("--suite needs --old: the split before has the cells of --frameworks, --network, --batch and --stages")
    if options.processes < 2 or options.pairs < 1:
        fail("two processes and one pair are the least")
    with tempfile.TemporaryDirectory(prefix="prony-splits-") as folder:
        compare(options, folder)


if __name__ == "__main__":
    main()
