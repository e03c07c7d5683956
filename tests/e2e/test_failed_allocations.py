#!/usr/bin/env python3
"""Each allocation of a command fails once: the answer is the right one, or the command says that it failed.

    test_failed_allocations.py               a fixed sample, for CI
    test_failed_allocations.py --sweep [COMMAND...]   every allocation to 300, then in steps of a tenth, until none fails;
                                             with FAIL_ALLOC_KEEP=1 all that come after it fail as well

$PRONY names the program, $FAIL_ALLOC the library that fails (tests/fail_alloc.c). The sweep takes minutes.
"""
import json
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import counted  # noqa: E402
from prony_program import PRONY, ProgramTest  # noqa: E402

LIBRARY = os.environ.get("FAIL_ALLOC", "build/tests/libfail_alloc.so")
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
    "list devices": (("list", "devices", "--format", "json"), "main"),
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
        for number in numbers:
            done, reached = self.attempt(words, role, number)
            tried += 1
            if not reached:
                break
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


def every():
    number = 1
    while True:
        yield number
        number = number + 1 if number < EVERY_TO else int(number * GROWTH)


class Sweep(FailedAllocationTest):
    """By hand; goes on after a wrong answer, so that all are seen."""

    def sweep(self, name):
        words, role = COMMANDS[name]
        done, _ = self.attempt(words, role, 0)
        right = answer(name, done)
        tried, wrong, codes = 0, [], {}
        for number in every():
            done, reached = self.attempt(words, role, number)
            if not reached:
                break
            tried += 1
            codes[done.returncode] = codes.get(done.returncode, 0) + 1
            try:
                self.judge(name, number, done, right)
            except (AssertionError, ValueError, KeyError) as error:
                wrong.append(number)
                print(f"WRONG {str(error)[-1500:]}", flush=True)
        print(f"{name}: {tried} tried, the last at {number}; exit codes {codes}; wrong: {wrong}", flush=True)
        return not wrong


def sweep(names):
    case = Sweep()
    case.setUp()
    try:
        return 0 if all([case.sweep(name) for name in names or COMMANDS]) else 1
    finally:
        case.doCleanups()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sweep"]:
        sys.exit(sweep(sys.argv[2:]))
    del Sweep
    sys.exit(counted.main())
