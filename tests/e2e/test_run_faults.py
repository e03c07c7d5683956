#!/usr/bin/env python3
"""A framework that fails in every way it can: the right status each, the other cells unharmed.

$PRONY names the program.
"""
import subprocess
import sys

import counted
from prony_program import PATIENCE_S, PRONY, ProgramTest

# Three processes with a fixed number of steps. Quick effort does not wait between processes.
SHORT = ("-n", "mlp", "-d", "mnist-3000", "-b", "8", "-s", "train", "--repeat", "3",
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
    "oom-reply": ("out-of-memory", "as requested"),
    "fail": ("crashed", "as requested"),
    "unsupported": ("unsupported", "as requested"),
    "missing": ("missing", "as requested"),
    "wrong-logits": ("mismatch", "logits"),
    "wrong-precision": ("invalid", "bf16"),
    "wrong-threads": ("invalid", "threads"),
    "impossible-time": ("invalid", ""),
    "impossible-time=before": ("invalid", ""),
    "backwards-time": ("invalid", ""),
    "nan-loss": ("mismatch", ""),
    "nan-loss=last": ("invalid", "finite"),
}


class FaultsTest(ProgramTest):
    def run_faulty(self, *options, more=()):
        """Faulty cells between two good ones; returns the program's result and {option: cell}."""
        names = ["null", *("fake+" + option for option in options), "fake"]
        done = self.prony("run", "-f", ",".join(names), *SHORT, "--store", self.store, *more)
        cells = {row[0]: row for row in self.rows("select framework, status, reason from cell")}
        self.assertEqual(len(cells), len(names), done.stderr)
        for good in ("null", "fake"):
            self.assertEqual(cells[good][1], "ok", f"{good}: {cells[good][2]}\n{done.stderr}")
        self.assert_nothing_stays()
        return done, {name.partition("+")[2]: row for name, row in cells.items()}

    def check(self, *options, more=()):
        done, cells = self.run_faulty(*options, more=more)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        for option in options:
            with self.subTest(option):
                status, word = FAULTS[option]
                self.assertEqual(cells[option][1], status, f"{cells[option][2]}\n{done.stderr}")
                self.assertIn(word, cells[option][2])
                timed = self.rows("select count(*) from process join cell on cell.id = process.cell where framework = ?",
                                  "fake+" + option)
                self.assertTrue(status != "mismatch" or timed == [(0,)], "it was timed all the same")
                # It stands in the table with its status, never as a number.
                shown = f"fake+{option}"[:20]  # a table may shorten a long name
                self.assertTrue([line for line in done.stdout.splitlines() if shown in line and status in line])

    def test_faults(self):
        self.check(*(option for option in FAULTS if option not in ("oom", "hang")))

    def test_a_worker_that_takes_too_much_memory(self):
        self.check("oom", more=("--memory-limit", LIMIT_MIB))

    def test_a_worker_that_hangs(self):
        self.check("hang", more=("--timeout", HANG_S))

    def test_a_device_that_the_library_has_not(self):
        """For a device name that prony does not know, the library lists its devices."""
        self.prony("run", "-f", "fake", "-D", "fake:0,fake:1", *SHORT, "--store", self.store)
        self.assertEqual(self.rows("select device, status, reason from cell order by device"), [
            ("fake:0", "ok", ""),
            ("fake:1", "unsupported", "device fake:1 is not available; fake finds cpu, fake:0 here")])

    def test_timed_process_is_checked_too(self):
        """Right in the gate and wrong afterwards: the loss of the timed process finds it."""
        wrong = "timed-only+wrong-logits"
        done, cells = self.run_faulty(wrong, more=("-s", "forward"))
        self.assertIn(cells[wrong][1], ("mismatch", "invalid"), cells[wrong][2])
        self.assertIn("loss", cells[wrong][2])
        self.assertEqual(done.returncode, 1)

    TOO_LARGE = ("run", "-f", "fake", "-n", "vgg16", "-s", "train", "-b", "32")

    def check_cannot_fit(self, named):
        self.assertEqual(self.rows("select count(*) from process"), [(0,)])
        status, reason = self.rows("select status, reason from cell")[0]
        self.assertEqual(status, "out-of-memory")
        # 3 x 528 MiB of parameters, 32 x 57.7 MiB of activations, 8 batches of 18.4 MiB
        self.assertRegex(reason, "^batch 32 needs at least 3.5 GiB, but only [12].[0-9] GiB "
                         r"\(.*" + named + r"\) is available: use a batch of at most [0-9]+ \(-b\)$")

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

    def test_what_is_no_fault(self):
        """Garbage on standard output, and a grandchild, which ends with its worker."""
        done, cells = self.run_faulty("garbage-stdout", "grandchild")
        for option in ("garbage-stdout", "grandchild"):
            self.assertEqual(cells[option][1], "ok", cells[option][2])
        self.assertEqual(done.returncode, 0, done.stderr)
        log = self.prony("log", "fake+garbage-stdout", "--store", self.store, expect=0)
        self.assertIn('"status": "crashed"', log.stdout)


if __name__ == "__main__":
    sys.exit(counted.main())
