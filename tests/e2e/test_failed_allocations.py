#!/usr/bin/env python3
"""Each allocation of a command fails once: the answer is the right one, or the command says that it failed.

$FAIL_ALLOC_SWEEP=1 tries every allocation to 300 of each command, then in steps of a tenth, until none fails (minutes); otherwise a
fixed sample is tried. With FAIL_ALLOC_KEEP=1 all that come after it fail as well.

$PRONY names the program, $FAIL_ALLOC the library that fails (tests/fail_alloc.c).
"""
import json
import os
import subprocess
import sys

import counted
from prony_program import PRONY, ProgramTest

LIBRARY = os.environ.get("FAIL_ALLOC", "build/tests/libfail_alloc.so")
SWEEP = os.environ.get("FAIL_ALLOC_SWEEP") == "1"
EVERY_TO = 300
GROWTH = 1.1
# Of thousands; primes, so that no period of the program's own is met each time.
SAMPLE = (1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 37, 47, 59, 73, 89, 113, 149, 199, 263, 347, 461, 613, 821, 1087,
          1447, 1931, 2579, 3433)
RUN_SAMPLE = (3, 17, 61, 211, 1009, 4001)
MODEL, SHOWN = "model.onnx", "shown.db"
RUN = ("run", "-n", "mlp", "-f", "fake", "-b", "4", "-s", "forward", "-d", "synthetic", "--quick", "--steps", "2", "--warm-up", "1",
       "--repeat", "1", "--store", "store.db", "--format", "json")
# Command -> its words, and the process whose allocations fail.
COMMANDS = {
    "list networks": (("list", "networks"), "main"),
    "list frameworks": (("list", "frameworks", "--format", "json"), "main"),
    "network": (("network", "lenet"), "main"),
    "dry run": (("run", "quickstart", "--dry-run", "--format", "json"), "main"),
    "onnx": (("network", MODEL, "--format", "json"), "main"),
    "show": (("show", "--store", SHOWN), "main"),
    "run": (RUN, "main"),
    "run, worker": (RUN, "worker"),
}


def answer(name, done):
    """What a command's output says, without what differs each time."""
    if name not in ("run", "run, worker"):
        return done.stdout
    cells = json.loads(done.stdout)["cells"]
    return [(cell["framework"], cell["status"], cell["gate"]["status"] if isinstance(cell.get("gate"), dict)
             else cell.get("gate"), cell["processes"] if "processes" in cell else cell.get("n")) for cell in cells]


def every():
    number = 1
    while True:
        yield number
        number = number + 1 if number < EVERY_TO else int(number * GROWTH)


class FailedAllocationTest(ProgramTest):
    def setUp(self):
        super().setUp()
        model = os.path.join(self.folder, MODEL)
        self.prony("network", "mlp", "--onnx", model, "-b", "4", expect=0)
        self.prony(*(os.path.join(self.folder, SHOWN) if word == "store.db" else word for word in RUN), expect=0)
        self.log = os.path.join(self.folder, "failed")

    def attempt(self, words, role, number):
        """One try with allocation `number` failing, and whether one did."""
        for name in (self.log, *(os.path.join(self.folder, "store.db" + end) for end in ("", "-wal", "-shm"))):
            if os.path.exists(name):
                os.remove(name)
        environment = dict(self.environment)
        if number:
            environment.update({"LD_PRELOAD": os.path.abspath(LIBRARY), "FAIL_ALLOC_AT": str(number),
                                "FAIL_ALLOC_IN": role, "FAIL_ALLOC_LOG": self.log})
        done = subprocess.run([os.path.abspath(PRONY), *words], env=environment, cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120, errors="replace",
                              check=False)
        return done, os.path.exists(self.log)

    def judge(self, name, number, done, right):
        where = f"{name}, allocation {number}: exit status {done.returncode}\n{done.stderr[-2000:]}"
        self.assertGreaterEqual(done.returncode, 0, "ended by a signal: " + where)
        if done.returncode == 0:
            self.assertEqual(answer(name, done), right, "another answer: " + where)
        else:
            self.assertTrue(done.stderr.strip() or name.startswith("run"), "not a word: " + where)

    def hold(self, name, numbers):
        words, role = COMMANDS[name]
        done, _ = self.attempt(words, role, 0)
        self.assertEqual(done.returncode, 0, done.stderr)
        right = answer(name, done)
        tried = failed = 0
        for number in every() if SWEEP else numbers:
            done, reached = self.attempt(words, role, number)
            tried += 1
            if not reached:
                break
            with self.subTest(name=name, number=number):
                self.judge(name, number, done, right)
            failed += done.returncode != 0
        return tried, failed

    def test_commands(self):
        for name in ("list networks", "network", "onnx"):
            _, failed = self.hold(name, SAMPLE)
            self.assertGreater(failed, 5, f"{name}: no failed allocation was noticed")

    def test_list_frameworks_and_plan(self):
        for name in ("list frameworks", "dry run", "show"):
            self.hold(name, SAMPLE[::3])

    def test_run(self):
        for name in ("run", "run, worker"):
            self.hold(name, RUN_SAMPLE)


if __name__ == "__main__":
    sys.exit(counted.main())
