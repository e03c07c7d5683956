#!/usr/bin/env python3
"""A framework that fails in every way it can: the right status each, the other cells unharmed.

$PRONY names the program.
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import counted  # noqa: E402
from prony_program import PATIENCE_S, PRONY, ProgramTest  # noqa: E402

# Three processes with a fixed number of steps. Quick effort does not wait between processes.
SHORT = ("-n", "mlp", "-d", "mnist-sample", "-b", "8", "-s", "train", "--repeat", "3",
         "--quick", "--steps", "12", "--warm-up", "3")
# What hangs is waited for; what does not may take its time on a machine under load.
HANG_S = "8"
# A process of a test's own size, so that exhausting it takes no second.
LIMIT_MIB = "400"

# Option of fake -> the status of its cell, and a word of its reason.
FAULTS = {
    "crash-at=build": ("crashed", "signal 11"),
    "crash": ("crashed", "signal 11"),
    "exit=3": ("crashed", "exit code 3"),
    "hang": ("timeout", f"{HANG_S} s"),
    "garbage-reply": ("crashed", "reply"),
    "long-line": ("crashed", "longer than 1 MiB"),
    "half-reply": ("crashed", ""),
    "wrong-id": ("crashed", "id"),
    "oom": ("out-of-memory", ""),
    "oom-reply": ("out-of-memory", "as was asked for"),
    "fail": ("crashed", "as was asked for"),
    "unsupported": ("unsupported", "as was asked for"),
    "missing": ("missing", "as was asked for"),
    "wrong-logits": ("mismatch", "logits"),
    "wrong-precision": ("invalid", "bf16"),
    "wrong-threads": ("invalid", "threads"),
    "impossible-time": ("invalid", ""),
    "impossible-time=before": ("invalid", ""),
    "backwards-time": ("invalid", ""),
    "nan-loss=last": ("invalid", "finite"),
}


class FaultsTest(ProgramTest):
    def cells(self):
        return {row[0]: row for row in
                self.rows("select framework, status, reason from cell")}

    def run_faulty(self, option, *more):
        """One faulty cell between two good ones; returns the program's result and the cells."""
        faulty = "fake+" + option
        done = self.prony("run", "-f", f"null,{faulty},fake", *SHORT, "--store", self.store, *more)
        cells = self.cells()
        self.assertEqual(len(cells), 3, done.stderr)
        for good in ("null", "fake"):
            self.assertEqual(cells[good][1], "ok", f"{good}: {cells[good][2]}\n{done.stderr}")
        self.assert_nothing_stays()
        return done, next(row for name, row in cells.items() if name.startswith("fake+"))

    def check(self, option):
        more = {"oom": ("--memory-limit", LIMIT_MIB), "hang": ("--timeout", HANG_S)}.get(option, ())
        done, cell = self.run_faulty(option, *more)
        status, word = FAULTS[option]
        self.assertEqual(cell[1], status, f"{cell[2]}\n{done.stderr}")
        self.assertIn(word, cell[2])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        # It stands in the table with its status, never as a number.
        line = next(line for line in done.stdout.splitlines() if "fake+" in line)
        self.assertIn(status, line)

    def test_a_device_that_the_library_has_not(self):
        """Of devices that are no words of prony's the library says which it has."""
        self.prony("run", "-f", "fake", "-D", "fake:0,fake:1", *SHORT, "--store", self.store)
        self.assertEqual(self.rows("select device, status, reason from cell order by device"), [
            ("fake:0", "ok", ""),
            ("fake:1", "unsupported", "device fake:1: fake finds cpu, fake:0 here")])

    def test_nan_first_loss_is_seen_by_the_gate(self):
        done, cell = self.run_faulty("nan-loss")
        self.assertIn(cell[1], ("mismatch", "invalid"), cell[2])
        self.assertEqual(done.returncode, 1)

    def test_timed_process_is_checked_too(self):
        """Right in the gate and wrong afterwards: the loss of the timed process finds it."""
        done, cell = self.run_faulty("wrong-logits+timed-only", "-s", "forward")
        self.assertIn(cell[1], ("mismatch", "invalid"), cell[2])
        self.assertIn("loss", cell[2])
        self.assertEqual(done.returncode, 1)

    TOO_LARGE = ("run", "-f", "fake", "-n", "vgg16", "-s", "train", "-b", "32")

    def check_cannot_fit(self, named):
        self.assertEqual(self.rows("select count(*) from process"), [(0,)])
        status, reason = self.rows("select status, reason from cell")[0]
        self.assertEqual(status, "out-of-memory")
        # 3 x 528 MiB of parameters, 32 x 57.7 MiB of activations, 8 batches of 18.4 MiB
        self.assertRegex(reason, "^batch 32 needs at least 3.5 GiB, and there are [12].[0-9] "
                         r"GiB \(.*" + named + r"\): take a smaller batch \(-b\), of [0-9]+ at most$")

    def test_what_cannot_fit_is_said_before_it_starts(self):
        self.prony(*self.TOO_LARGE, "--store", self.store, "--memory-limit", "2000", expect=1)
        self.check_cannot_fit("--memory-limit")

    def limited(self, *words):
        """The program where only so much address space is to be had."""
        return subprocess.run(["sh", "-c", 'ulimit -v 2048000; exec "$@"', "sh", PRONY, *words],
                              env=self.environment, text=True, check=False, capture_output=True,
                              timeout=PATIENCE_S)

    def test_what_cannot_fit_into_the_address_space_is_said_too(self):
        if "AddressSanitizer" in self.limited("--version").stderr:
            self.skipTest("AddressSanitizer maps more than any limit on address space leaves")
        done = self.limited(*self.TOO_LARGE, "--store", self.store)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.check_cannot_fit("ulimit -v")

    def test_garbage_on_stdout_leaves_the_cell_ok(self):
        done, cell = self.run_faulty("garbage-stdout")
        self.assertEqual((cell[1], done.returncode), ("ok", 0), cell[2])
        log = self.prony("log", cell[0], "--store", self.store, expect=0)
        self.assertIn('"status": "crashed"', log.stdout)

    def test_grandchild_ends_with_its_worker(self):
        done, cell = self.run_faulty("grandchild")
        self.assertEqual((cell[1], done.returncode), ("ok", 0), cell[2])


def add_fault(option):
    name = "test_" + option.replace("-", "_").replace("=", "_is_")
    setattr(FaultsTest, name, lambda self: self.check(option))


for fault in FAULTS:
    add_fault(fault)

if __name__ == "__main__":
    sys.exit(counted.main())
