#!/usr/bin/env python3
"""What windows of known steps become: how long they are, and what is said of a cell's processes.

$PRONY names the program.
"""
import json
import os
import sqlite3
import sys

import counted
from prony_program import ProgramTest, read, timed

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workers", "mlp.py")
FAKE = ("run", "-n", "mlp", "-d", "synthetic", "-b", "2", "-s", "forward", "-D", "cpu:1")


class WindowTest(ProgramTest):
    def sql(self, statement, *values):
        base = sqlite3.connect(self.store)
        with base:
            base.execute(statement, values)
        base.close()

    def cell(self, command, *words):
        text = self.prony(command, *words, "--format", "json", "--store", self.store, expect=0).stdout
        cell, = json.loads(text)["cells"]
        return cell

    @timed
    def test_a_cold_first_step_does_not_size_the_window(self):
        """Without a warm-up only the first step shows how long a step takes."""
        self.prony(*FAKE, "-f", "fake+step-us=1000+cold-ms=1500", "--quick", "--warm-up", "0", "--repeat", "1",
                   "--store", self.store, expect=0)
        (window, steps, block), = self.rows("select window_ns, steps, block_steps from process")
        # Of 0.4 s; a twentieth and the cold step's guess would be 0.05 s.
        self.assertGreater(window, 0.35e9)
        # 400 on a quiet machine; the cold step alone would fill it in one. Steps so much shorter than the scheduler's
        # turns are as many as the worker has of the processor, however many other programs wait for theirs.
        self.assertGreater(steps, 10)
        self.assertLessEqual(steps * 1e6, window)
        self.assertEqual(steps % block, 0)

    def after_its_steps(self, what):
        """(status, flags, reason) of a cell whose worker, in timed processes, does something for 4 s after a request's steps."""
        end = '    with open(os.path.join(folder, "records.bin"), "wb") as file:'
        before, after = read(WORKER).split(end)
        mine = os.path.join(self.folder, "mine.py")
        with open(mine, "w", encoding="utf-8") as stream:
            stream.write(f'{before}    until = now() + 4e9 * (recipe["slots"] > 3)\n    while now() < until:\n        {what}\n{end}{after}')
        self.prony("run", "-n", "mlp", "-d", "synthetic", "-b", "2", "-s", "forward", "-D", "cpu:1", "--quick", "--steps", "3",
                   "--warm-up", "0", "--repeat", "1", "--worker", f"mine={sys.executable} {mine} mine", "-f", "mine",
                   "--store", self.store)
        cell, = self.rows("select status, flags, reason from cell")
        return cell

    @timed
    def test_a_worker_may_rest_after_its_steps(self):
        """As tf.data does, whose iterators may end only when the thread that tunes them wakes up."""
        status, flags, reason = self.after_its_steps("time.sleep(0.5)")
        self.assertEqual((status, reason), ("ok", ""))
        self.assertIn("waits", flags.split(","))
        (window, flags), = self.rows("select window_ns, flags from process")
        self.assertLess(window, 1e9)
        self.assertIn("waits", flags.split(","))

    def test_a_worker_may_not_work_after_its_steps(self):
        """What it computes then it may have left out of them."""
        status, _, reason = self.after_its_steps("pass")
        self.assertEqual(status, "invalid", reason)
        self.assertRegex(reason, r"its records cover \d+\.\d+ s of a request that took [4-9]")

    def test_the_first_process_is_the_first(self):
        """It may be cold; the second one is not when the first has been left out."""
        self.prony(*FAKE, "-f", "fake", "--quick", "--steps", "3", "--warm-up", "0", "--repeat", "7", "--store", self.store, expect=0)

        def found(slow, disturbed):
            self.sql("update process set flags = '', foreign_share = 0.01, step_mean_ns = 1e6 * (1 + 0.001 * (replicate % 3))")
            self.sql("update process set step_mean_ns = 1.1e6 where replicate = ?", slow)
            self.sql("update process set flags = 'disturbed', step_mean_ns = 2e6 where replicate = ?", disturbed)
            self.sql("update cell set flags = ?", "disturbed" if disturbed >= 0 else "")
            return {row["what"] for row in self.cell("show")["diagnoses"]}
        self.assertIn("first-slowest", found(0, -1))
        self.assertNotIn("first-slowest", found(1, 0))


if __name__ == "__main__":
    sys.exit(counted.main())
