#!/usr/bin/env python3
"""An experiment: contenders alive at once, all but one stopped, against one process after the other.

    duet.py record --prony BUILD/prony --library LIBDNNL [--minutes 5] [--sets FILE]
    duet.py evaluate [--sets FILE]

Both schemes measure the same program twice (LeNet train at batch 64 in native: any difference is noise), in turn:
`rounds` as prony does, each contender a process of its own with start-up, warm-up and one window; `duet` starts both,
warms both up, stops both (SIGSTOP), and continues them in turn, in random order, for short windows of which the first
step does not count; the ratio of a set is the trimmed mean over its windows. Both measure each contender for equally
long. What counts is the spread of the sets' ratios times the time that a set takes. Standard library only.
"""
import argparse
import json
import math
import os
import random
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import pool  # noqa: E402
from worker_driver import Bundle, Driver, lenet  # noqa: E402

WARM_UP_S, WINDOW_S, SHORT_S = 0.3, 0.8, 0.1
TRIMMED = 0.2  # of the windows of a set, at each end
SIDES = 2


class Contender:
    def __init__(self, options, bundle):
        self.driver = Driver([options.prony, "worker", "--adapter", "native", "--library", options.library])
        self.driver.prepare(bundle)
        self.driver.run(1)
        begin, steps = time.monotonic(), 0
        while steps < 2 or time.monotonic() - begin < WARM_UP_S:
            self.driver.run(1)
            steps += 1
        self.step_s = (time.monotonic() - begin) / steps

    def window(self, seconds):
        """Mean step in seconds of about so long, and what it took."""
        records = self.driver.run(max(3, round(seconds / self.step_s)))
        return (records[-1][1] - records[0][0]) / 1e9 / max(3, round(seconds / self.step_s))

    def stop(self):
        os.kill(self.driver.process.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.driver.process.pid, signal.SIGCONT)

    def end(self):
        self.driver.requests.close()
        self.driver.process.wait()


def in_rounds(options, bundle):
    """Log ratio of one pair."""
    logs = {}
    for side in random.sample(range(SIDES), SIDES):
        contender = Contender(options, bundle)
        logs[side] = math.log(contender.window(WINDOW_S))
        contender.end()
    return logs[1] - logs[0]


def in_duet(options, bundle):
    """Log ratio of two that are alive at once, and that of all their time."""
    contenders = []
    for _ in range(SIDES):
        contenders.append(Contender(options, bundle))
        contenders[-1].stop()
    ratios = []
    for _ in range(round(WINDOW_S / SHORT_S)):
        means = {}
        for side in random.sample(range(SIDES), SIDES):
            contenders[side].go_on()
            contenders[side].driver.run(1)
            means[side] = contenders[side].window(SHORT_S)
            contenders[side].stop()
        ratios.append(math.log(means[1] / means[0]))
    for contender in contenders:
        contender.go_on()
        contender.end()
    ratios.sort()
    cut = int(TRIMMED * len(ratios))
    kept = ratios[cut:len(ratios) - cut]
    return sum(kept) / len(kept)


SCHEMES = {"rounds": in_rounds, "duet": in_duet}


def record(options):
    sets = {name: [] for name in SCHEMES}
    if os.path.exists(options.sets):
        with open(options.sets, encoding="utf-8") as stream:
            sets = json.load(stream)
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="prony-duet-") as folder:
        bundle = Bundle(folder, lenet(64), threads=options.threads)
        while time.monotonic() < end:
            for name in random.sample(list(SCHEMES), len(SCHEMES)):
                begin = time.monotonic()
                ratio = SCHEMES[name](options, bundle)
                sets[name].append((ratio, time.monotonic() - begin))
            with open(options.sets + ".new", "w", encoding="utf-8") as stream:
                json.dump(sets, stream)
            os.replace(options.sets + ".new", options.sets)


def cost(sets):
    """Variance of a set's ratio times its seconds: what an interval's square costs."""
    mean = sum(ratio for ratio, _ in sets) / len(sets)
    variance = sum((ratio - mean) ** 2 for ratio, _ in sets) / (len(sets) - 1)
    return variance * sum(seconds for _, seconds in sets) / len(sets)


def evaluate(options):
    with open(options.sets, encoding="utf-8") as stream:
        sets = json.load(stream)
    print("| scheme | sets | seconds a set | SD of a set's ratio | A/A interval holds 1 (trials of 5) | wrong verdicts "
          "| +2 % SLOWER | FASTER |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, rows in sets.items():
        logs, seconds = zip(*rows)
        trials = pool.trials_of(logs, 5)
        holds = [abs(mean) <= width for mean, width in map(pool.interval, trials)]
        says = [pool.verdict(trial) for trial in trials]
        slower = [pool.verdict([x + math.log(1.02) for x in trial]) for trial in trials]
        mean = sum(logs) / len(logs)
        print("| %s | %d | %.1f | %.1f %% | %s | %s | %s | %s |" % (
            name, len(rows), sum(seconds) / len(rows),
            100 * math.sqrt(sum((x - mean) ** 2 for x in logs) / (len(logs) - 1)), pool.share_of(holds, True),
            pool.share_of(says, "SLOWER", "FASTER"), pool.share_of(slower, "SLOWER"),
            pool.share_of(slower, "FASTER")))
    chance, ratios = random.Random(1), []
    for _ in range(2000):
        drawn = {name: [chance.choice(rows) for _ in rows] for name, rows in sets.items()}
        ratios.append(math.sqrt(cost(drawn["duet"]) / cost(drawn["rounds"])))
    print("\nstandard error of duet / rounds in equal time: %.2f (95 %%: %.2f to %.2f)" % (
        math.sqrt(cost(sets["duet"]) / cost(sets["rounds"])), pool.percentile(ratios, 0.025),
        pool.percentile(ratios, 0.975)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "evaluate"))
    parser.add_argument("--sets", default="duet.json")
    parser.add_argument("--prony", default="build/prony")
    parser.add_argument("--library", help="oneDNN's, as `prony list frameworks` has it")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=5)
    options = parser.parse_args()
    (record if options.what == "record" else evaluate)(options)


if __name__ == "__main__":
    main()
