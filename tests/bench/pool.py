#!/usr/bin/env python3
"""How much of what prony says of two contenders is true, and what split of a minute says most, on this machine.

    pool.py record --prony BUILD/prony [--rounds 300] [--minutes 60] [--pool pool.json]    goes on where it ended
    pool.py evaluate [--pool pool.json]                                     tables; measures nothing

A pool is rounds of four arms in random order, each a process of the same cell (LeNet train with native unless
--framework and --network say otherwise), with the warm-up and window of quick effort, or of --window seconds, in blocks
of 0.1 s: A, A again, and two whose times are lengthened by 2 and 5 % in the evaluation: a slower program meets the same
noise in proportion.
From it trials of disjoint rounds are taken: how often the paired interval holds 1 (A/A), verdicts that are wrong,
how often a slowdown is found, for the typical step (mean of the blocks) and the undisturbed one (their 10th
percentile); and half widths of splits of the same wall time, start-up and warm-up included. Needs a machine that does
nothing else, or the noise that is to be told of. Standard library only.
"""
import argparse
import json
import math
import os
import random
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

ARMS = {"A": 1.0, "A again": 1.0, "+2 %": 1.02, "+5 %": 1.05}
DELTA = 0.01
BLOCK_S = 0.1
# (processes, seconds of window): the splits of quick effort that are compared.
SPLITS = (3, 2.0), (4, 1.6), (5, 1.2), (7, 0.8), (9, 0.5)


def fail(message):
    sys.exit("pool.py: " + message)


def student_t(p, df):
    """Quantile by bisection on Simpson's integral of the density."""
    constant = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)

    def below(t, parts=2000):
        step = t / parts
        heights = [(1 + (step * i) ** 2 / df) ** (-(df + 1) / 2) for i in range(parts + 1)]
        inner = 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])
        return 0.5 + constant * step / 3 * (heights[0] + heights[-1] + inner)

    low, high = 0.0, 1000.0 if df < 2 else 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < p else (low, middle)
    return low


def interval(logs, known={}):
    """(mean, half width of its 95 % interval) of logarithms."""
    n = len(logs)
    mean = sum(logs) / n
    if n - 1 not in known:
        known[n - 1] = student_t(0.975, n - 1)
    spread = math.sqrt(sum((x - mean) ** 2 for x in logs) / (n - 1))
    return mean, known[n - 1] * spread / math.sqrt(n)


def verdict(logs):
    mean, width = interval(logs)
    limit = math.log1p(DELTA)
    if mean - width > limit:
        return "SLOWER"
    if mean + width < -limit:
        return "FASTER"
    return "SAME" if -limit <= mean - width and mean + width <= limit else "INCONCLUSIVE"


def run(options, steps):
    """One process: {"blocks": ns per step of each, "process_ns", "window_ns"}."""
    with tempfile.TemporaryDirectory(prefix="prony-pool-") as folder:
        store = os.path.join(folder, "store.db")
        words = [options.prony, "run", "-f", options.framework, "-n", options.network, "-s", options.stage, "-b",
                 str(options.batch), "--quick", "--repeat", "1", "--store", store]
        if steps:
            words += ["--steps", str(steps[0]), "--warm-up", str(steps[1])]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            fail("%s: exit code %d: %s" % (" ".join(words), done.returncode, done.stdout[-500:]))
        with sqlite3.connect(store) as connection:
            row = connection.execute(
                "SELECT block_steps, intervals, total_ns, window_ns, foreign_share FROM process JOIN "
                "process_intervals ON process = id WHERE status = 'ok'").fetchone()
        connection.close()
    if not row:
        fail("no process ended ok: " + done.stdout[-500:])
    times = struct.unpack("<%dq" % (len(row[1]) // 8), row[1])
    blocks = [(end - begin) / row[0] for begin, end in zip(times[::2], times[1::2])]
    return {"blocks": blocks, "process_ns": row[2], "window_ns": row[3], "foreign": row[4]}


def record(options):
    pool = {"cell": [options.framework, options.network, options.stage, options.batch], "rounds": []}
    if os.path.exists(options.pool):
        with open(options.pool, encoding="utf-8") as stream:
            pool = json.load(stream)
    steps, end = None, time.monotonic() + options.minutes * 60
    if options.window:
        pilot = run(options, None)
        step_s = sum(pilot["blocks"]) / len(pilot["blocks"]) / 1e9
        steps = max(5, round(options.window / step_s)), max(1, round(options.warm_up / step_s))
    while len(pool["rounds"]) < options.rounds and time.monotonic() < end:
        order = random.sample(list(ARMS), len(ARMS))
        done = {arm: run(options, steps) for arm in order}
        pool["rounds"].append(done)
        with open(options.pool + ".new", "w", encoding="utf-8") as stream:
            json.dump(pool, stream)
        os.replace(options.pool + ".new", options.pool)
        print("round %d of %d" % (len(pool["rounds"]), options.rounds), file=sys.stderr)


def typical(blocks):
    return sum(blocks) / len(blocks)


def undisturbed(blocks):
    ordered = sorted(blocks)
    at = 0.1 * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def log_ratios(rounds, arm, statistic, blocks=None):
    """Of the arm to A, round by round; `blocks`: of the beginning of each window."""
    return [math.log(ARMS[arm] * statistic(r[arm]["blocks"][:blocks]) / statistic(r["A"]["blocks"][:blocks]))
            for r in rounds]


def trials_of(rounds, size):
    return [rounds[i:i + size] for i in range(0, len(rounds) - size + 1, size)]


def percentile(values, p):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(p * len(ordered)))]


def evaluate_verdicts(rounds, statistic):
    print("| rounds a trial | trials | A/A holds 1 | A/A floor | A/A SLOWER or FASTER | +2 % SLOWER | +2 % FASTER "
          "| +5 % SLOWER |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for size in (3, 5, 7, 10, 20):
        trials = trials_of(rounds, size)
        if len(trials) < 3:
            continue
        found = {arm: [log_ratios(trial, arm, statistic) for trial in trials] for arm in ARMS if arm != "A"}
        holds = sum(abs(m) <= w for m, w in map(interval, found["A again"]))
        says = {arm: [verdict(logs) for logs in found[arm]] for arm in found}
        floor = percentile([abs(interval(logs)[0]) for logs in found["A again"]], 0.95)
        share = lambda arm, *words: "%.0f %%" % (100 * sum(w in words for w in says[arm]) / len(trials))  # noqa: E731
        print("| %d | %d | %.0f %% | %.1f %% | %s | %s | %s | %s |" % (
            size, len(trials), 100 * holds / len(trials), 100 * math.expm1(floor),
            share("A again", "SLOWER", "FASTER"), share("+2 %", "SLOWER"), share("+2 %", "FASTER"),
            share("+5 %", "SLOWER")))


def evaluate_splits(rounds):
    """Half widths of A's own interval and of A/A's ratio; windows shorter than those of the pool are their beginnings."""
    window_s = sum(r["A"]["window_ns"] for r in rounds) / len(rounds) / 1e9
    fixed_s = sum(r["A"]["process_ns"] for r in rounds) / len(rounds) / 1e9 - window_s
    print("\n| split | wall time, s | half width of a step | of a ratio (A/A) | the interval holds 1 |\n"
          "| --- | --- | --- | --- | --- |")
    for processes, seconds in SPLITS:
        if seconds > window_s * 1.05 or processes * 3 > len(rounds):
            continue
        blocks = max(1, round(seconds / BLOCK_S))
        trials = trials_of(rounds, processes)
        own = [interval([math.log(typical(r["A"]["blocks"][:blocks])) for r in trial])[1] for trial in trials]
        pairs = [interval(log_ratios(trial, "A again", typical, blocks)) for trial in trials]
        print("| %d x %.1f s | %.1f | %.1f %% | %.1f %% | %.0f %% |" % (
            processes, seconds, processes * (fixed_s + seconds), 100 * math.expm1(percentile(own, 0.5)),
            100 * math.expm1(percentile([w for _, w in pairs], 0.5)),
            100 * sum(abs(m) <= w for m, w in pairs) / len(pairs)))


def evaluate(options):
    try:
        with open(options.pool, encoding="utf-8") as stream:
            rounds = json.load(stream)["rounds"]
    except (OSError, ValueError, KeyError) as problem:
        fail("%s: %s; 'pool.py record' makes it" % (options.pool, problem))
    if len(rounds) < 9:
        fail("%d rounds in %s: nine are the least" % (len(rounds), options.pool))
    gaps = [typical(r["A"]["blocks"]) / undisturbed(r["A"]["blocks"]) - 1 for r in rounds]
    shares = [r[arm]["foreign"] or 0 for r in rounds for arm in ARMS]
    print("%d rounds; gap of typical over undisturbed: median %.1f %%, 95th percentile %.1f %%; other programs took "
          "%.0f %% of the machine (mean), at most %.0f %%" % (
              len(rounds), 100 * percentile(gaps, 0.5), 100 * percentile(gaps, 0.95),
              100 * sum(shares) / len(shares), 100 * max(shares)))
    for statistic in (typical, undisturbed):
        print("\n%s step, verdicts at a threshold of %.0f %%:\n" % (statistic.__name__, 100 * DELTA))
        evaluate_verdicts(rounds, statistic)
    evaluate_splits(rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "evaluate"))
    parser.add_argument("--pool", default="pool.json")
    parser.add_argument("--prony", default="build/prony")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=1440, help="end the recording then")
    parser.add_argument("--window", type=float, help="seconds; without it windows are those of quick effort")
    parser.add_argument("--warm-up", type=float, default=0.5, help="seconds")
    parser.add_argument("--framework", default="native")
    parser.add_argument("--network", default="lenet")
    parser.add_argument("--stage", default="train")
    parser.add_argument("--batch", type=int, default=64)
    options = parser.parse_args()
    (record if options.what == "record" else evaluate)(options)


if __name__ == "__main__":
    main()
