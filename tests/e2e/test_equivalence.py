#!/usr/bin/env python3
"""tests/bench/equivalence.py: its statistics, its page, and that both of its sides really run: a script on tests/native/window.py
and the worker of the fake, as `prony run` starts it. Nothing is timed here."""
import math
import os
import statistics
import subprocess
import sys
import textwrap
import types
import unittest
from unittest import mock

from prony_program import PRONY, ProgramTest, read, write

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "bench"))
import contenders  # noqa: E402
import equivalence  # noqa: E402

SCRIPT = """
    import sys
    sys.path.insert(0, %r)
    import window
    options = window.arguments("", ["lenet"], plugin="FILE? of nothing")
    print("a framework's own line")
    seen = []
    window.run(seen.append, options, "7.5", lambda: %s)
"""


class StatisticsTest(unittest.TestCase):
    def test_interval_is_students_on_logarithms(self):
        logs = [math.log(ratio) for ratio in (1.0, 1.02, 1.04, 0.99, 1.01)]
        ratio, low, high = equivalence.interval(logs)
        half = 2.776 * statistics.stdev(logs) / math.sqrt(5)
        self.assertAlmostEqual(ratio, statistics.geometric_mean([1.0, 1.02, 1.04, 0.99, 1.01]))
        self.assertAlmostEqual(math.log(high / ratio), half)
        self.assertAlmostEqual(math.log(ratio / low), half)
        self.assertEqual(equivalence.interval(logs[:1])[1:], (0.0, math.inf))

    def test_verdicts(self):
        for low, high, word in ((0.985, 1.015, None), (0.99, 1.005, "EQUIVALENT"), (1.03, 1.2, "SLOWER"),
                                (0.8, 0.97, "FASTER"), (1.01, 1.025, "INCONCLUSIVE"), (0.0, math.inf, None)):
            self.assertEqual(equivalence.verdict(low, high, 0.01), word, (low, high))
        # When the time is over what lies within is enough, however narrow it was wanted.
        self.assertEqual(equivalence.verdict(0.985, 1.015, math.inf), "EQUIVALENT")
        self.assertEqual(equivalence.verdict(0.975, 1.015, math.inf), "INCONCLUSIVE")

    def test_middle_mean_leaves_out_what_disturbed(self):
        self.assertEqual(equivalence.middle_mean([5, 1, 1, 1, 1, 1, 1, 900]), 1)
        self.assertEqual(equivalence.middle_mean([3]), 3)


class SidesTest(ProgramTest):
    def setUp(self):
        super().setUp()
        patch = mock.patch.dict(os.environ, self.environment)
        patch.start()
        self.addCleanup(patch.stop)

    def script(self, finish="None"):
        path = os.path.join(self.folder, "loop.py")
        write(path, textwrap.dedent(SCRIPT) % (os.path.join(TESTS, "native"), finish))
        return [sys.executable, path]

    def test_a_script_computes_blocks(self):
        side = contenders.Script(self.script(), {}, 1, os.path.join(self.folder, "log"))
        self.addCleanup(side.end)
        side.warm_up(0.1, 0.01)
        took = side.block(5)
        self.assertEqual(side.version, "7.5")
        self.assertTrue(took["wall"] > 0 and took["cpu"] > 0, took)

    def test_a_script_that_fails_is_said(self):
        with self.assertRaisesRegex(contenders.Failed, "exit code 1: .*ZeroDivisionError"):
            contenders.Script(self.script("1 / 0"), {}, 1, os.path.join(self.folder, "log"))

    def test_a_script_runs_alone(self):
        done = subprocess.run(self.script() + ["--warm-up", "0", "--seconds", "0.1"], stdout=subprocess.PIPE, text=True,
                              check=True)
        self.assertIn('"step_seconds"', done.stdout.splitlines()[-1])

    def test_the_worker_is_that_of_a_run(self):
        worker = contenders.Worker(PRONY, "-f fake -n mlp -b 4 -s train -D cpu:1".split(), self.folder)
        self.assertEqual(worker.bundle.recipe["batch"], 4)
        self.assertEqual(worker.variables["OMP_NUM_THREADS"], "1")
        side = contenders.Adapter(worker, os.path.join(self.folder, "log"))
        self.addCleanup(side.end)
        side.warm_up(0.1, 0.01)
        took = side.block(20)
        self.assertTrue(took["wall"] > 0 and took["cpu"] > 0, took)

    def test_a_cell_that_is_not_ok_is_said(self):
        with self.assertRaisesRegex(contenders.Failed, "prony run"):
            contenders.Worker(PRONY, "-f fake+failing -n mlp -b 4 -s train -D cpu:1".split(), self.folder)

    def test_a_page_keeps_its_other_sections(self):
        page = os.path.join(self.folder, "page.md")
        options = types.SimpleNamespace(threads=2, clock="wall", half_width=0.01, limit=60, rounds=4)
        write(page, "# Title\n\n## Here\n\nold\n\n## There\n\nstays\n")
        text = equivalence.table(options, [equivalence.Judged("a-pair", "NOT MEASURED", "no Python")])
        for _ in range(2):
            equivalence.put_section(page, "Here", text)
        equivalence.put_section(page, "New", "text\n")
        written = read(page)
        self.assertIn("NOT MEASURED: no Python", written)
        self.assertNotIn("old", written)
        self.assertTrue(written.endswith("## There\n\nstays\n\n## New\n\ntext\n"), written)
        self.assertEqual(written.count("## Here\n"), 1)


if __name__ == "__main__":
    unittest.main()
