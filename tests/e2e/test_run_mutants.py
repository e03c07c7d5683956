#!/usr/bin/env python3
"""The seeded mutants end to end: each is rejected by the gate, the unmutated framework passes ten
times of ten. $PRONY names the program."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import counted  # noqa: E402
from prony_program import ProgramTest  # noqa: E402

# docs/parity.md, "What it detects"; the batch-norm one comes with a network that has batch norm.
MUTANTS = ("no-momentum", "lr-scale=1.01", "no-bias-gradient", "tf32", "frozen-layer",
           "swapped-channels")
ONE_PROCESS = ("-d", "mnist-sample", "-s", "train", "--repeat", "1", "--steps", "2", "--warm-up",
               "1")


class MutantsTest(ProgramTest):
    def check(self, network):
        names = ",".join(f"fake+{mutant}" for mutant in MUTANTS)
        done = self.prony("run", "-f", names, "-n", network, "-b", "8", *ONE_PROCESS, "--store",
                          self.store, expect=1)
        rows = dict(self.rows("select framework, status from cell"))
        self.assertEqual(len(rows), len(MUTANTS), done.stderr)
        self.assertEqual(set(rows.values()), {"mismatch"}, f"{rows}\n{done.stderr}")
        self.assertEqual(self.rows("select count(*) from process"), [(0,)], "a mutant was timed")
        shown = json.loads(self.prony("show", "--store", self.store, "--format", "json").stdout)
        self.assertTrue(shown)

    def test_lenet(self):
        self.check("lenet")

    def test_mlp(self):
        self.check("mlp")

    def test_unmutated_passes_ten_times(self):
        for seed in range(10):
            self.prony("run", "-f", "fake", "-n", "lenet", "-b", "8", *ONE_PROCESS, "--seed",
                       str(seed), "--store", self.store, expect=0)
        self.assertEqual(self.rows("select count(*) from cell where status = 'ok'"), [(10,)])


if __name__ == "__main__":
    sys.exit(counted.main())
