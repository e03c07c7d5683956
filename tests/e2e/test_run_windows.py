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

    def test_trainings_end_at_their_target(self):
        """Each with a seed of its own; the first framework trains with all of them."""
        train = ("run", "-n", "mlp", "-d", "mnist-3000", "-D", "cpu:1", "--learning-rate", "0.05", "--quick", "--repeat", "7")
        text = self.prony(*train, "-f", "fake,fake+step-us=1", "--until", "accuracy=0.7", "--evaluate-every", "8",
                          "--format", "json", "--store", self.store, expect=0).stdout
        first, other = sorted((cell["target"] for cell in json.loads(text)["cells"]), key=lambda target: -target["seeds"])
        self.assertEqual((first["what"], first["seeds"], other["seeds"], other["differs"]), ("accuracy=0.7", 7, 6, False))
        self.assertEqual((first["reached"], other["steps"], other["steps_of"]), (7, first["steps"], "fake"))
        self.assertLessEqual(first["steps_low"], first["steps"])
        self.assertLess(first["ns_low"], first["ns_high"])
        self.assertLess(other["apart"], 0.5)
        self.assertEqual((first["p"], first["differs"], first["apart"]), (None, None, None))
        rows = self.rows("select seed, steps, target_steps, block_steps, target_curve from process order by seed")
        self.assertEqual([row[0] for row in rows], sorted(list(range(1, 8)) + list(range(1, 7))))
        for _, steps, reached, block, curve in rows:
            values = [float(word) for word in curve.split()]
            self.assertEqual((reached, block, 8 * len(values)), (1 + steps, 8, steps))
            self.assertTrue(max(values[:-1], default=0) < 0.7 <= values[-1], curve)
        text = self.prony("show", "--store", self.store, expect=0).stdout
        self.assertRegex(" ".join(text.split()), r"steps to accuracy 0\.7: \d+ \(\d+ to \d+\), 7 seeds of fake; same distribution in ")
        # One that learns much later.
        self.sql("update process set target_steps = 400 + seed, target_curve = '0.1 0.1' where cell = 2")
        self.sql("update process set target_curve = target_curve || ' 0.9' where cell = 1")
        other, = [cell["target"] for cell in json.loads(self.prony("show", "--format", "json", "--store", self.store, expect=0).stdout)
                  ["cells"] if cell["target"]["seeds"] == 6]
        self.assertEqual((other["differs"], other["steps"]), (True, 403.5))
        text = self.prony("show", "--store", self.store, expect=0).stdout
        self.assertRegex(" ".join(text.split()), r"; \S+ trains differently \(p = 0\.\d+\): 0\.1 against ")

    def test_a_target_may_not_be_reached(self):
        """And null, which trains nothing, does not count for others."""
        self.prony("run", "-f", "null,fake", "-n", "mlp", "-d", "mnist-3000", "-D", "cpu:1", "--until", "loss=0.001", "--max-steps",
                   "20", "--evaluate-every", "9", "--quick", "--repeat", "2", "--store", self.store, expect=0)
        self.assertEqual(self.rows("select target_steps, steps from process"), [(None, 18)] * 4)
        text = " ".join(self.prony("show", "--store", self.store, expect=0).stdout.split())
        self.assertIn("steps to loss 0.001: more than 19, 2 seeds of fake, 2 of which did not reach it in 19 steps; not compared: more than 19, "
                      "2 seeds of null", text)

    def test_targets_that_cannot_be(self):
        for words, what in ((("--until", "accuracy=99"), "needs accuracy=A with A above 0"),
                            (("--max-steps", "9"), "belong to --until"),
                            (("--until", "loss=1", "--max-steps", "9", "--evaluate-every", "9"), "the first evaluation is behind step 10"),
                            (("--until", "loss=1", "--steps", "9"), "leave out the number of steps"),
                            (("--until", "loss=1", "-s", "forward"), "stage forward trains nothing"),
                            (("--until", "loss=1", "--input", "resident"), "input resident has not all samples")):
            done = self.prony("run", "-f", "fake", "-n", "mlp", "-d", "mnist-3000", "--full", "--dry-run", *words)
            self.assertIn(what, " ".join((done.stdout + done.stderr).split()), words)
        script = self.prony("batch", "-f", "fake", "-n", "mlp", "-d", "mnist-3000", "--until", "loss=1", "--nodes", "2", "--print")
        self.assertIn(" --until loss=1 ", script.stdout)

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
