#!/usr/bin/env python3
"""Measures how often prony's verdicts on two contenders are true, and which split of a minute tells most, on this machine.

    pool.py record --prony BUILD/prony [--rounds 300] [--minutes 60] [--pool pool.json]    goes on where it ended
    pool.py evaluate [--pool pool.json]                                     tables; measures nothing

A pool is rounds of four arms in random order, each a process of the same cell (LeNet train with native unless
--framework and --network say otherwise), with the warm-up and window of quick effort, or of --window seconds, in blocks
of 0.1 s: A, A again, and two whose times are lengthened by 2 and 5 % in the evaluation: a slower program meets the same
noise in proportion.
Trials of disjoint rounds are taken from the pool: how often the paired interval holds 1 (A/A; the other two arms as they were
measured are a second pair of the same), verdicts that are wrong, how often a slowdown is found, for the typical step
(mean of the blocks) and the undisturbed one (their 10th percentile); the same with as many rounds as default effort
takes (5 to 12, until both half widths are 2 %); a slowdown of twice the floor; with how many rounds the tool itself would
find 2 %, and whether it does then; and half widths of splits of the same wall time, start-up and warm-up included. Needs
a machine that does nothing else, or one with the noise under test. A pool may be compressed (NAME.gz). Standard library
only.
"""
import argparse
import gzip
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
# stats/noise.h: pairs of a comparison, and in how many of these a slowdown of twice the floor is found.
FLOOR_PAIRS, FLOOR_FOUND = 5, 0.9
# stats/contrast.c: a claim needs 99 % where the interval is wider than twice the threshold, 99.9 % of fewer processes; one
# round of so many is cut at each end.
NARROW_MAX, FEW, TRIMMED_OF = 0.10, 5, 8
# Default effort: processes at least, at most, until both half widths are so small (stats/effort.c).
EFFORT_MIN, EFFORT_MAX, EFFORT_HALF_WIDTH = 5, 12, 0.02
# What more processes than these would decide is not tried; random draws for rates of what few disjoint trials show.
NEEDED_MAX, DRAWS = 40, 1000
# (processes, seconds of window): the compared splits of quick effort.
SPLITS = (3, 2.0), (4, 1.6), (5, 1.2), (7, 0.8), (9, 0.5), (11, 0.4)


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


def trimmed(logs):
    """(mean, standard error, degrees of freedom) of rounds, as contrast_trimmed of stats/contrast.c has them."""
    n, ordered = len(logs), sorted(logs)
    cut = n // TRIMMED_OF
    kept = ordered[cut:n - cut]
    winsorised = [kept[0]] * cut + kept + [kept[-1]] * cut
    center = sum(winsorised) / n
    squares = sum((x - center) ** 2 for x in winsorised)
    return sum(kept) / len(kept), math.sqrt(squares / (len(kept) * (len(kept) - 1))), len(kept) - 1


def interval_of_rounds(logs):
    """As interval(), of log ratios round by round."""
    mean, error, df = trimmed(logs)
    return mean, student_t_known(0.975, df) * error


def claim_p(half_width, processes, delta):
    """The quantile required for a claim of FASTER or SLOWER (contrast_discoveries there)."""
    if processes < FEW:
        return 0.9995
    return 0.995 if half_width > math.log1p(min(2 * delta, NARROW_MAX)) else 0.975


def verdict(logs):
    """As `prony compare --force` gives it for one cell (contrast_claim of stats/contrast.c)."""
    mean, error, df = trimmed(logs)
    width = student_t_known(0.975, df) * error
    limit = math.log1p(DELTA)
    if -limit <= mean - width and mean + width <= limit:
        return "SAME"
    width = student_t_known(claim_p(width, len(logs), DELTA), df) * error
    if mean - width > limit:
        return "SLOWER"
    return "FASTER" if mean + width < -limit else "INCONCLUSIVE"


def slowdown_found(spread, delta):
    """Logarithm of what FLOOR_PAIRS pairs call SLOWER in FLOOR_FOUND of all cases (contrast_finds there), by Simpson's
    rule over what the standard deviation comes out as, a part of the true one."""
    df, parts = FLOOR_PAIRS - 1, 600
    error = spread / math.sqrt(FLOOR_PAIRS)
    scale = math.log(2) + df / 2 * math.log(df / 2) - math.lgamma(df / 2)

    def found(away):
        total = 0.0
        for i in range(1, parts + 1):
            part = 6.0 * i / parts
            t = student_t_known(claim_p(student_t_known(0.975, df) * part * error, FLOOR_PAIRS, delta), df)
            density = math.exp(scale + (df - 1) * math.log(part) - df * part * part / 2)
            total += (2 + 2 * (i % 2)) * density * 0.5 * math.erfc((t * part - away) / math.sqrt(2))
        return total * 6.0 / parts / 3

    low, high = 0.0, 30.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if found(middle) < FLOOR_FOUND else (low, middle)
    return math.log1p(delta) + high * error


def run(options, store, steps):
    """One process: {"blocks": ns per step of each, "process_ns", "window_ns"}."""
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
            "process_intervals ON process = id WHERE status = 'ok' AND id = (SELECT MAX(id) FROM process)").fetchone()
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
    # One store for all: a passed gate is not repeated.
    with tempfile.TemporaryDirectory(prefix="prony-pool-") as folder:
        record_rounds(options, os.path.join(folder, "store.db"), pool)


def record_rounds(options, store, pool):
    steps, end = None, time.monotonic() + options.minutes * 60
    if options.window:
        pilot = run(options, store, None)
        step_s = sum(pilot["blocks"]) / len(pilot["blocks"]) / 1e9
        steps = max(5, round(options.window / step_s)), max(1, round(options.warm_up / step_s))
    while len(pool["rounds"]) < options.rounds and time.monotonic() < end:
        order = random.sample(list(ARMS), len(ARMS))
        done = {arm: run(options, store, steps) for arm in order}
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


def plain(rounds, arm):
    """Logarithms of an arm's typical steps as they were measured."""
    return [math.log(typical(r[arm]["blocks"])) for r in rounds]


def default_effort(pairs):
    """Trials of as many rounds each as default effort takes, from (log A, log B) of each round, one after the other."""
    trials, begin = [], 0
    while begin + EFFORT_MIN <= len(pairs):
        size = EFFORT_MIN
        while size < EFFORT_MAX and begin + size < len(pairs) and any(
                math.expm1(interval(logs)[1]) > EFFORT_HALF_WIDTH for logs in zip(*pairs[begin:begin + size])):
            size += 1
        trials.append([b - a for a, b in pairs[begin:begin + size]])
        begin += size
    return trials


def needed(mean, spread):
    """What the tool says beside INCONCLUSIVE (contrast_needed of stats/contrast.c) of a difference beyond the threshold:
    pairs with which a verdict comes in 80 of 100 comparisons; infinite for more than NEEDED_MAX."""
    distance = abs(mean) - math.log1p(DELTA)
    for n in range(2, NEEDED_MAX + 1):
        error, df = spread / math.sqrt(n), n - 1 - 2 * (n // TRIMMED_OF)
        p = claim_p(student_t_known(0.975, df) * error, n, DELTA)
        if (student_t_known(p, df) + student_t_known(0.8, df)) * error <= distance:
            return n
    return math.inf


def student_t_known(p, df, known={}):
    if (p, df) not in known:
        known[p, df] = student_t(p, df)
    return known[p, df]


def trials_of(rounds, size):
    return [rounds[i:i + size] for i in range(0, len(rounds) - size + 1, size)]


def percentile(values, p):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(p * len(ordered)))]


def evaluate_verdicts(rounds, statistic):
    print("| rounds a trial | trials | A/A holds 1 | A/A floor | A/A SLOWER or FASTER | +2 % SLOWER | +2 % FASTER "
          "| +5 % SLOWER |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for size in (3, 5, 7, 10, 20, 40):
        trials = trials_of(rounds, size)
        if len(trials) < 3:
            continue
        found = {arm: [log_ratios(trial, arm, statistic) for trial in trials] for arm in ARMS if arm != "A"}
        holds = sum(abs(m) <= w for m, w in map(interval_of_rounds, found["A again"]))
        says = {arm: [verdict(logs) for logs in found[arm]] for arm in found}
        floor = percentile([abs(interval_of_rounds(logs)[0]) for logs in found["A again"]], 0.95)
        share = lambda arm, *words: "%.0f %%" % (100 * sum(w in words for w in says[arm]) / len(trials))  # noqa: E731
        print("| %d | %d | %.0f %% | %.1f %% | %s | %s | %s | %s |" % (
            size, len(trials), 100 * holds / len(trials), 100 * math.expm1(floor),
            share("A again", "SLOWER", "FASTER"), share("+2 %", "SLOWER"), share("+2 %", "FASTER"),
            share("+5 %", "SLOWER")))


def share_of(words, *wanted):
    return "%.0f %% of %d" % (100 * sum(word in wanted for word in words) / max(len(words), 1), len(words))


def evaluate_default(rounds):
    """The tool's own number of rounds; two pairs of the same: A and A again, and the two others unchanged."""
    pairs = [list(zip(plain(rounds, one), plain(rounds, other))) for one, other in (("A", "A again"), ("+2 %", "+5 %"))]
    same = [trial for rows in pairs for trial in default_effort(rows)]
    every = [b - a for rows in pairs for a, b in rows]
    three = [trial for rows in pairs for trial in trials_of([b - a for a, b in rows], 3)]
    print("\n%d disjoint trials of three rounds of the same: the interval holds 1 in %d; SLOWER or FASTER, wrongly, %d" % (
        len(three), sum(abs(m) <= w for m, w in map(interval_of_rounds, three)),
        sum(verdict(trial) in ("SLOWER", "FASTER") for trial in three)))
    spread = math.sqrt(sum(x * x for x in every) / len(every))
    apart = max(DELTA, math.expm1(student_t(0.975, len(every)) * spread / math.sqrt(FLOOR_PAIRS)))
    floor = max(DELTA, math.expm1(slowdown_found(spread, apart)) / 2)
    sizes = sorted(len(trial) for trial in same)
    says = [verdict(trial) for trial in same]
    slower = [verdict([x + math.log1p(2 * floor) for x in trial]) for trial in same]
    two = [verdict([x + math.log1p(0.02) for x in trial]) for trial in same]
    print("default effort (%d to %d rounds, median %d), %d disjoint trials of the same: the interval holds 1 in %s; "
          "SLOWER or FASTER, wrongly, %s" % (
              sizes[0], sizes[-1], sizes[len(sizes) // 2], len(same),
              share_of([abs(m) <= w for m, w in map(interval_of_rounds, same)], True), share_of(says, "SLOWER", "FASTER")))
    print("%d pairs of the same lie apart by less than %.1f %% in 95 of 100 cases; floor: %.1f %%; twice that is SLOWER in %s, "
          "FASTER in %s" % (FLOOR_PAIRS, 100 * apart, 100 * floor, share_of(slower, "SLOWER"), share_of(slower, "FASTER")))
    print("+2 %% at default effort: SLOWER %s, FASTER %s, SAME %s, INCONCLUSIVE %s" % tuple(
        share_of(two, word) for word in ("SLOWER", "FASTER", "SAME", "INCONCLUSIVE")))
    n = needed(math.log1p(0.02), trimmed(every)[1] * math.sqrt(len(every)))
    print("2 %% needs %s pairs at this spread" % ("more than %d" % NEEDED_MAX if n == math.inf else "%d" % n))
    if n < math.inf:
        chance = random.Random(1)
        found = [verdict([x + math.log1p(0.02) for x in chance.sample(every, n)]) for _ in range(DRAWS)]
        print("with so many, drawn from all rounds: SLOWER %s, FASTER %s" % (
            share_of(found, "SLOWER"), share_of(found, "FASTER")))


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
        pairs = [interval_of_rounds(log_ratios(trial, "A again", typical, blocks)) for trial in trials]
        print("| %d x %.1f s | %.1f | %.1f %% | %.1f %% | %.0f %% |" % (
            processes, seconds, processes * (fixed_s + seconds), 100 * math.expm1(percentile(own, 0.5)),
            100 * math.expm1(percentile([w for _, w in pairs], 0.5)),
            100 * sum(abs(m) <= w for m, w in pairs) / len(pairs)))


def evaluate(options):
    try:
        opened = gzip.open if options.pool.endswith(".gz") else open
        with opened(options.pool, "rt", encoding="utf-8") as stream:
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
    evaluate_default(rounds)
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
