#!/usr/bin/env python3
"""The seeded mutants end to end: each is rejected by the gate, the unmutated framework passes ten
times of ten. $PRONY names the program."""
import json
import os
import sqlite3
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import counted  # noqa: E402
from prony_program import ProgramTest  # noqa: E402

# docs/parity.md, "What it detects"; the batch-norm one comes with a network that has batch norm.
MUTANTS = ("no-momentum", "lr-scale=1.01", "no-bias-gradient", "tf32", "frozen-layer",
           "swapped-channels")
ONE_PROCESS = ("-d", "mnist-sample", "-s", "train", "--quick", "--repeat", "1", "--steps", "2", "--warm-up",
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

    def gated(self, *words, more=()):
        """{framework: its cell} of LeNet's gates, and the parity line of `show`."""
        names = ",".join(f"fake+{word}" for word in words)
        done = self.prony("run", "--gate-only", "-f", names, "-n", "lenet", "-d", "mnist-sample", "-s",
                          "train", "-b", "8", "--store", self.store, "--format", "json", *more)
        cells = {cell["framework"].partition("+")[2]: cell for cell in json.loads(done.stdout)["cells"]}
        shown = self.prony("show", "--store", self.store).stdout
        return cells, " ".join(shown[shown.index("parity:"):].split())

    def test_equal_maxima(self):
        """A pool that gives its gradient to each of several equal maxima, as MNIST's border has them: who
        says so is held to the rest of its work on random pixels, and only that."""
        said, wrong = "each-maximum=said", "each-maximum=said+lr-scale=1.01"
        unsaid, claimed = "each-maximum=unsaid", "each-maximum=claimed"
        forward = "each-maximum=said+wrong-logits"
        cells, line = self.gated(said, wrong, unsaid, claimed, forward)
        self.assertEqual({name: cell["status"] for name, cell in cells.items()},
                         {said: "ok", wrong: "mismatch", unsaid: "mismatch", claimed: "ok", forward: "mismatch"})
        evidence = {name: cell["parity"]["evidence"].get("equal_maxima") for name, cell in cells.items()}
        # No rule of gradients explains what is wrong before the first one.
        self.assertEqual((evidence[unsaid], evidence[claimed], evidence[forward]), (None, None, None))
        self.assertEqual(evidence[said]["rule"], "each")
        self.assertEqual(evidence[said]["data"]["tensor"], "conv1.bias")
        self.assertGreater(evidence[said]["data"]["value"], 0.1)
        self.assertIn("parity: 1 of 5 checked cells match the reference", line)
        self.assertIn("; 1 only on random pixels (fake+each-maximum=said): ", line)
        flags = {name: cell["flags"] for name, cell in cells.items() if cell["status"] == "ok"}
        self.assertEqual(flags, {said: ["gate-only", "equal-maxima"], claimed: ["gate-only"]})
        # A verdict that is not reached again keeps it.
        again, _ = self.gated(said)
        self.assertEqual(again[said]["flags"], ["gate-only", "equal-maxima"])
        self.assertTrue(again[said]["parity"]["evidence"]["cached"])
        page = os.path.join(self.folder, "page.html")
        self.prony("report", "--store", self.store, "-o", page)
        with open(page) as source:
            text = source.read()
        self.assertIn("same work on random pixels;", text)
        self.assertIn("ok (gate-only, equal-maxima)", text)
        # Nor does it get lost where a run was killed behind the gate.
        with sqlite3.connect(self.store) as base:
            base.execute("update run set finished_wall_ns = null where id = 2")
            base.execute("update cell set status = 'pending', flags = '' where run = 2")
        resumed, _ = self.gated(said, more=["--resume"])
        self.assertEqual(resumed[said]["flags"], ["gate-only", "equal-maxima"])
        self.assertEqual(self.rows("select count(*) from run"), [(2,)])
        # Its reason is that of the pixels that are all different.
        self.assertNotIn(str(round(evidence[wrong]["data"]["value"], 2)), cells[wrong]["reason"])

    def test_unmutated_passes_ten_times(self):
        for seed in range(10):
            self.prony("run", "-f", "fake", "-n", "lenet", "-b", "8", *ONE_PROCESS, "--seed",
                       str(seed), "--store", self.store, expect=0)
        self.assertEqual(self.rows("select count(*) from cell where status = 'ok'"), [(10,)])


if __name__ == "__main__":
    sys.exit(counted.main())
