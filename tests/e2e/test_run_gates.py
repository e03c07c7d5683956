#!/usr/bin/env python3
"""Gates of a run: without timing, after an accident, and cells that never get there.

$PRONY names the program, $PRONY_SOURCE the source tree.
"""
import json
import os
import sqlite3
import sys

import counted
from prony_program import ProgramTest, read, write, write_cifar10_sample

SOURCE = os.environ.get("PRONY_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
WORKER = os.path.abspath(os.path.join(SOURCE, "tests", "workers", "mlp.py"))
USAGE = 64
# An ONNX model of one ReLU on rows of 12.
RELU = (b"\x08\x08:=\n\x0c\n\x01x\x12\x01y\"\x04Relu\x12\x01gZ\x14\n\x01x\x12\x0f\n\r\x08\x01\x12"
        b"\t\n\x03\x12\x01N\n\x02\x08\x0cb\x14\n\x01y\x12\x0f\n\r\x08\x01\x12\t\n\x03\x12\x01N\n"
        b"\x02\x08\x0cB\x04\n\x00\x10\x11")
# Ends by SIGSEGV as often as the file has letters, then it is the worker.
ACCIDENT = """#!/bin/sh
read -r left < "{count}" || exit 9
[ -z "$left" ] && exec python3 "{worker}" mine
echo "${{left%?}}" > "{count}"
kill -SEGV $$
"""
SHORT = ("-n", "mlp", "-d", "synthetic", "-b", "8", "--quick", "--repeat", "1", "--steps", "2", "--warm-up", "1")


class RunGatesTest(ProgramTest):
    def run_cells(self, *words, expect=0):
        """(result, cells) of a run."""
        done = self.prony("run", *words, "--store", self.store, "--format", "json", expect=expect)
        return done, json.loads(done.stdout)["cells"]

    def test_gate_only(self):
        done, cells = self.run_cells("-f", "fake,fake+no-momentum,null", "-s", "forward,train",
                                     *SHORT, "--gate-only", expect=1)
        found = {(cell["framework"], cell["stage"]): cell for cell in cells}
        self.assertEqual({key: cell["status"] for key, cell in found.items()}, {
            ("fake", "forward"): "ok", ("fake", "train"): "ok",
            ("fake+no-momentum", "forward"): "ok", ("fake+no-momentum", "train"): "mismatch",
            ("null", "forward"): "unsupported", ("null", "train"): "unsupported"})
        self.assertEqual(found["fake", "train"]["flags"], ["screening", "gate-only"])
        self.assertTrue(found["fake", "train"]["parity"]["evidence"]["passed"])
        self.assertIsNone(found["fake", "train"]["rank"])
        self.assertIn("6 gates to run, without timing", done.stderr)
        self.assertEqual(self.rows("select count(*) from process"), [(0,)])
        shown = self.prony("show", "--store", self.store, expect=0).stdout
        self.assertIn("ok (gate-only)", shown)
        self.assertIn("parity: 3 of 4 checked cells match the reference", shown)
        page = os.path.join(self.folder, "page.html")
        self.prony("report", "--store", self.store, "-o", page, expect=0)
        for form in ("csv", "json", "md"):
            self.prony("export", "--store", self.store, "--format", form, expect=0)

    def test_a_timed_run_does_not_go_on_where_only_gates_ran(self):
        words = ("-f", "fake", "-s", "forward", *SHORT)
        self.run_cells(*words, "--gate-only")
        # As if it had been killed after its cell.
        with sqlite3.connect(self.store) as base:
            base.execute("update run set finished_wall_ns = null")
        done, [cell] = self.run_cells(*words, "--resume")
        self.assertIn("nothing to resume", done.stderr)
        self.assertNotIn("gate-only", cell["flags"])  # a machine may disturb it meanwhile
        self.assertEqual(self.rows("select count(*) from process"), [(1,)])
        done, [cell] = self.run_cells(*words, "--gate-only", "--resume")
        self.assertEqual(cell["flags"], ["screening", "gate-only"])
        self.assertEqual(self.rows("select count(*) from run"), [(2,)])

    def gated(self, *words, more=()):
        """{framework: its cell} of LeNet's gates, and the parity line of `show`."""
        names = ",".join(f"fake+{word}" for word in words)
        done = self.prony("run", "--gate-only", "-f", names, "-n", "lenet", "-d", "mnist-3000", "-s",
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
        text = read(page)
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

    def test_a_wrong_norm_is_found(self):
        done = self.prony("run", "--gate-only", "-f", "fake,fake+clips-each", "-n", "mlp", "-s", "train", "-b", "4",
                          "--clip-norm", "1", "--store", self.store, "--format", "json")
        self.assertEqual({cell["framework"]: cell["status"] for cell in json.loads(done.stdout)["cells"]},
                         {"fake": "ok", "fake+clips-each": "mismatch"})

    def mine(self, accidents):
        count, script = (os.path.join(self.folder, name) for name in ("count", "mine.sh"))
        for path, text in ((count, accidents * "x" + "\n"),
                           (script, ACCIDENT.format(count=count, worker=WORKER))):
            write(path, text)
        return ("--worker", f"mine=sh {script}", "-f", "mine,fake", "-s", "forward", *SHORT)

    def test_a_gate_is_tried_again_after_an_accident(self):
        done, cells = self.run_cells(*self.mine(1))
        self.assertEqual([cell["status"] for cell in cells], ["ok", "ok"])
        self.assertRegex(done.stderr, "mine mlp .*signal 11.*; the gate runs once more")

    def test_a_second_accident_ends_the_cell(self):
        done, cells = self.run_cells(*self.mine(3), expect=1)
        found = {cell["framework"]: cell for cell in cells}
        self.assertEqual((found["mine"]["status"], found["fake"]["status"]), ("crashed", "ok"))
        self.assertEqual(done.stderr.count("runs once more"), 1)
        self.assertEqual(read(os.path.join(self.folder, "count")), "x\n")  # two were started

    def test_a_network_without_parameters(self):
        model = os.path.join(self.folder, "noparam.onnx")
        write(model, RELU)
        words = ("-f", "fake", "-n", f"{model},mlp", "-d", "synthetic", "-b", "8", "--repeat", "1",
                 "--steps", "2", "--warm-up", "1")
        _, cells = self.run_cells(*words, "-s", "forward-backward,train", expect=1)
        self.assertEqual(sorted((cell["network"].split(".")[0], cell["status"]) for cell in cells),
                         2 * [("mlp", "ok")] + 2 * [("noparam", "unsupported")])
        reasons = {cell["reason"] for cell in cells if cell["status"] == "unsupported"}
        self.assertEqual(reasons, {f"stage {stage}: the network has no parameters to train; use stage forward"
                                   for stage in ("forward-backward", "train")})
        _, cells = self.run_cells(*words, "-s", "forward")
        self.assertEqual([cell["status"] for cell in cells], ["ok", "ok"])

    def test_a_broken_data_set_ends_its_cells_alone(self):
        path = write_cifar10_sample(os.path.join(self.folder, "data", "cifar10"))
        words = ("-f", "fake", "-n", "cnn,mlp", "-d", "cifar10-sample,synthetic", "-b", "8", "-s",
                 "forward", "--quick", "--repeat", "1", "--steps", "2", "--warm-up", "1", "--data",
                 os.path.dirname(os.path.dirname(path)))
        # In a batch of the gate (64 batches are skipped), then in one that is timed.
        for sample, status in ((65 * 8 + 3, "invalid"), (3, "invalid")):
            with open(path, "r+b") as stream:
                stream.seek(3073 * sample)
                stream.write(b"\xff")
            done, cells = self.run_cells(*words, expect=1)
            found = {(cell["network"], cell["dataset"]): cell for cell in cells}
            self.assertEqual(found["cnn", "cifar10-sample"]["status"], status)
            for word in (path, f"offset {3073 * sample}", "label 255", "10 classes"):
                self.assertIn(word, found["cnn", "cifar10-sample"]["reason"])
            for network in ("cnn", "mlp"):
                self.assertEqual(found[network, "synthetic"]["status"], "ok", done.stderr)
        os.truncate(path, 3073 * 3 + 5)
        _, cells = self.run_cells(*words, expect=1)
        [cell] = [cell for cell in cells if (cell["network"], cell["dataset"]) ==
                  ("cnn", "cifar10-sample")]
        self.assertEqual(cell["status"], "missing")
        self.assertIn(f"{path} has 9224 bytes instead of 6146000: truncated", cell["reason"])


if __name__ == "__main__":
    sys.exit(counted.main())
