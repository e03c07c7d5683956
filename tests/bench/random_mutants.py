#!/usr/bin/env python3
"""Counts the wrong implementations of random small networks that the parity gate rejects, with one program or
with two for comparison: `random_mutants.py [--mutants N] [--seed SEED] PRONY [PRONY]`. Every network is computed
by native, correctly and with each applicable mutation of mutant_worker.py.

Exit status: 0, or 1 if a correct one is rejected or the second program passes one that the first rejects.
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

from mutant_worker import MUTATIONS  # noqa: E402
from random_networks import network  # noqa: E402

EACH, BATCHES, STAGES = 6, (2, 3, 5, 8), ("forward", "train")
TRAINED = ("rate", "momentum")  # only training has them


def command_of(program):
    """The command line of native's worker."""
    done = subprocess.run([program, "run", "--dry-run", "--show-command", "-f", "native", "-n", "mlp",
                           "-s", "forward", "-d", "synthetic"], stdout=subprocess.PIPE, text=True,
                          check=True)
    words = done.stdout.splitlines()[1].split()
    while "=" in words[0]:
        words.pop(0)
    return " ".join(words)


def verdicts(program, numbers, stage, batch):
    """{(network, stage, mutation): (status, worst figure in units of its bound)}; "" is no mutation."""
    mutations = [name for name in MUTATIONS if stage == "train" or name not in TRAINED]
    with tempfile.TemporaryDirectory(prefix="prony-mutants-") as folder:
        paths = [os.path.join(folder, "n%s.onnx" % number) for number in numbers]
        for path, number in zip(paths, numbers):
            with open(path, "wb") as stream:
                stream.write(network(number)[0])
        command, words = command_of(program), []
        for name in mutations:
            words += ["--worker", "mutant-%s=python3 %s mutant-%s %s %s" % (
                name, os.path.join(HERE, "mutant_worker.py"), name, name, command)]
        done = subprocess.run(
            [program, "run", "--gate-only", *words, "-f",
             ",".join(["native", *("mutant-" + name for name in mutations)]), "-n", ",".join(paths),
             "-d", "synthetic", "-b", str(batch), "-s", stage, "--format", "json", "--store",
             os.path.join(folder, "store.db")],
            env={**os.environ, "XDG_CACHE_HOME": folder, "PRONY_LOCK": os.path.join(folder, "lock")},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit("%s: exit code %d: %s" % (program, done.returncode, done.stderr[-500:]))
    found = {}
    for cell in json.loads(done.stdout)["cells"]:
        worst = ((cell["parity"] or {}).get("evidence") or {}).get("worst") or {}
        value, bound = worst.get("value"), worst.get("bound")
        key = (cell["network"].partition("@")[0], stage, cell["framework"].partition("mutant-")[2])
        found[key] = (cell["status"], value / bound if value is not None and bound else None)
    return found


def judged(found):
    return [status for key, (status, _) in found.items()
            if key[2] and status in ("ok", "mismatch")]


def report(program, found):
    count = collections.Counter()
    for (_, stage, mutation), (status, _) in found.items():
        count[stage, mutation, status] += 1
    print(program)
    for (stage, mutation, status), number in sorted(count.items()):
        print("  %-8s %-10s %-12s %d" % (stage, mutation or "right", status, number))
    statuses = judged(found)
    print("  %d mutants, %d rejected" % (len(statuses), statuses.count("mismatch")))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", default="mutants")
    parser.add_argument("programs", nargs="+", metavar="PRONY")
    options = parser.parse_args()
    found, first, bad = [{} for _ in options.programs], 0, False
    while len(judged(found[0])) < options.mutants:
        numbers = ["%s-%d" % (options.seed, i) for i in range(first, first + EACH)]
        batch = random.Random(numbers[0]).choice(BATCHES)
        for stage in STAGES:
            for program, rows in zip(options.programs, found):
                rows.update(verdicts(program, numbers, stage, batch))
        first += EACH
    for program, rows in zip(options.programs, found):
        report(program, rows)
    for key, after in found[-1].items():
        if not key[2] and after[0] not in ("ok", "unsupported"):
            print("right, but", *key, *after)
            bad = True
        if key[2] and found[0][key][0] == "mismatch" and after[0] != "mismatch":
            print("no longer rejected:", *key, *found[0][key], *after)
            bad = True
    return bad


if __name__ == "__main__":
    sys.exit(main())
