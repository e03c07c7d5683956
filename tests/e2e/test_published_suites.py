#!/usr/bin/env python3
"""The published suites: what they plan, and what they store.

$PRONY names the program. Suites run cut down to small networks of the framework `fake`, which computes rightly.
"""
import csv
import io
import json
import math
import os
import re
import statistics
import time
import unittest

from prony_program import ProgramTest, timed

SECOND = 1e-9


class StoredRun:
    """Cells of the newest run with their processes: the complete export, and nothing of prony's own arithmetic."""

    def __init__(self, text):
        rows = [json.loads(line) for line in text.splitlines()]
        self.run = rows[0]
        self.cells = [row for row in rows if row["type"] == "cell"]
        for cell in self.cells:
            cell["processes"] = [row for row in rows if row["type"] == "process" and row["cell"] == cell["hash"]]

    def cell(self, **axes):
        return next(c for c in self.cells if all(c[key] == value for key, value in axes.items()))


def seconds(process):
    return [(end - begin) * SECOND for begin, end in process["intervals"]]


def losses(process):
    for series in process["sensors"]:
        if series["sensor"] == "loss":
            return dict(series["samples"])
    return {}


class StoredTest(ProgramTest):
    def measure(self, suite, *words):
        """Runs the suite; returns its stored run and the program's messages."""
        done = self.prony("run", suite, "-f", "fake", "--store", self.store, *words, expect=0)
        return StoredRun(self.prony("export", "--format", "jsonl", "--store", self.store, expect=0).stdout), done.stderr

    def test_cnn(self):
        run, messages = self.measure("cnn", "-n", "mlp", "-b", "2,4", "--steps", "23", "--warm-up", "1")
        self.assertIn("fake has no fp16: using fp32 instead", messages)
        self.assertEqual(len(run.cells), 2)
        for cell in run.cells:
            process = cell["processes"][0]
            read = losses(process)
            ends = [end for _, end in process["intervals"]]
            self.assertEqual(sorted(read), [ends[0], ends[9], ends[19], ends[22]])
            self.assertTrue(all(math.isfinite(x) and x > 0 for x in read.values()))
            self.assertAlmostEqual(read[ends[22]], process["loss_last"], places=12)
            # Reading is no part of a step: between the blocks, and in none of them.
            timed = sum(end - begin for begin, end in process["intervals"])
            self.assertGreater(process["window_ns"], timed)
            self.assertAlmostEqual(process["step_mean_ns"], timed / 23, places=3)

    def test_thesis(self):
        run, messages = self.measure("thesis", "-n", "lenet", "-D", "cpu", "--quick")
        self.assertIn("mnist is not installed: using mnist-3000", messages)
        (cell,) = run.cells
        self.assertEqual(cell["batch"], 8)
        self.assertIn("screening", cell["flags"])
        self.assertEqual([(p["steps"], p["warm_up_steps"]) for p in cell["processes"]], [(3, 1)] * 3)

    def test_keras(self):
        """Epochs: the first is the first step and the warm-up. Screened, steps one by one fill quick effort's window."""
        for options, batch in ((), 128), (("--quick",), 16):
            run, _ = self.measure("keras", "-n", "mlp", "-D", "cpu", "-s", "train", "--loop", "step", *options)
            (cell,) = run.cells
            self.assertEqual((cell["batch"], cell["optimiser"]), (batch, "rmsprop"))
            if options:
                self.assertEqual(len(cell["processes"]), 3)
                # Quick effort's window is a time, 0.4 s, however many steps that is here; epochs of 128 samples would be 8
                # steps. Of all three: one that something else kept waiting may have few.
                self.assertGreater(max(math.fsum(seconds(p)) for p in cell["processes"]), 0.3)
                self.assertGreaterEqual(min(p["steps"] for p in cell["processes"]), 3)
                self.assertGreater(max(p["blocks"] for p in cell["processes"]), 1)
            else:
                self.assertEqual([(p["steps"], p["warm_up_steps"], p["blocks"]) for p in cell["processes"]], [(24, 7, 3)])
            self.assertEqual(self.check_cells(run), 1)

    def check_cells(self, run):
        """Step, interval's centre and samples a second of the table of cells, from the stored intervals; how many."""
        text = self.prony("export", "--layout", "cells", "--format", "csv", "--store", self.store, expect=0).stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        for row, cell in zip(rows, run.cells):
            means = [math.fsum(seconds(p)) / SECOND / p["steps"] for p in cell["processes"]]
            centre = math.exp(math.fsum(map(math.log, means)) / len(means))
            self.assertAlmostEqual(float(row["step_center_ns"]) / centre, 1, delta=1e-9)
            self.assertAlmostEqual(float(row["samples_per_second"]) * centre / cell["batch"], 1e9, delta=1)
            for p in cell["processes"]:
                self.assertAlmostEqual(p["step_mean_ns"] * p["steps"] / math.fsum(seconds(p)), 1e9, delta=1)
        return len(rows)

    def test_inference(self):
        """Latency at batch 1, where each step is waited for, and throughput at 32; three processes with --quick."""
        run, _ = self.measure("inference", "-n", "lenet", "--quick")
        self.assertEqual([len(cell["processes"]) for cell in run.cells], [3, 3])
        self.assertEqual(self.check_cells(run), 2)
        one = run.cell(batch=1)
        for p in one["processes"]:
            steps = sorted(seconds(p))
            self.assertAlmostEqual(p["step_median_ns"] * SECOND, statistics.median(steps), delta=1e-12)
            for name, share in (("step_p90_ns", 0.9), ("step_p99_ns", 0.99)):
                at = share * (len(steps) - 1)
                self.assertLessEqual(steps[math.floor(at)], p[name] * SECOND * (1 + 1e-12))
                self.assertGreaterEqual(steps[math.ceil(at)], p[name] * SECOND * (1 - 1e-12))
        many = self.prony("run", "inference", "-f", "fake", "--quick", "--repeat", "5", "--dry-run", expect=0).stderr
        self.assertIn("8 cells, quick effort: 40 processes", many)


class BudgetTest(ProgramTest):
    WORDS = ("-f", "fake,null", "-n", "mlp", "-d", "synthetic", "-b", "2", "-s", "forward", "--quick", "--steps", "2",
             "--warm-up", "1")

    @timed
    def test_a_run_ends_in_time_and_says_why(self):
        words = ("run", *self.WORDS, "--repeat", "500", "--budget", "5s", "--store", self.store)
        began = time.monotonic()
        done = self.prony(*words, expect=1)
        self.assertLess(time.monotonic() - began, 20)
        self.assertRegex(done.stdout, r"fake 0.1.0 .* %.* not finished .*  \d+ ")
        self.assertIn("; the budget of 5s is used up; to continue, add --resume", done.stderr)
        self.assertEqual({row[0] for row in self.rows("SELECT status FROM cell")}, {"pending"})
        (before,), = self.rows("SELECT count(*) FROM process")
        self.prony(*words, "--resume", expect=1)
        self.assertEqual(self.rows("SELECT count(*) FROM run WHERE finished_wall_ns IS NULL"), [(1,)])
        self.assertGreater(self.rows("SELECT count(*) FROM process"), [(before,)])

    def test_time_enough_changes_nothing(self):
        self.prony("run", *self.WORDS, "--budget", "1h", "--repeat", "3", "--store", self.store, expect=0)
        self.assertEqual(self.rows("SELECT status, count(*) FROM process GROUP BY status"), [("ok", 6)])

    def test_the_cheapest_is_first(self):
        """Each cell gets a process, then another: both times the cheaper ones come first, with their gates."""
        words = ("-f", "fake", "-n", "lenet,mlp", "-d", "synthetic", "-b", "2", "-s", "forward,train", "--quick",
                 "--steps", "2", "--warm-up", "1", "--budget", "1h", "--repeat", "2", "--store", self.store)
        done = self.prony("run", *words, expect=0)
        turn = ["mlp forward", "lenet forward", "mlp train", "lenet train"]
        self.assertEqual(re.findall(r"^parity: fake (\w+ \w+)", done.stderr, re.M), turn)
        self.assertEqual(re.findall(r"^\[.*\] fake (\w+ \w+)", done.stderr, re.M), turn * 2)

    def test_a_short_budget_proposes_quick(self):
        words = ("run", "-f", "fake", "-n", "lenet,mlp", "-d", "synthetic", "-b", "2", "--dry-run", "--store", self.store)
        short = "the budget is too short for a process of each cell; --quick takes less"
        self.assertIn(short, self.prony(*words, "--budget", "30s", expect=0).stderr)
        self.assertNotIn(short, self.prony(*words, "--budget", "50s", expect=0).stderr)
        self.assertNotIn(short, self.prony(*words, "--budget", "30s", "--quick", expect=0).stderr)

    @timed
    def test_a_reference_that_takes_too_long_is_not_begun(self):
        """It would take two minutes of two cores."""
        began = time.monotonic()
        done = self.prony("run", "-f", "fake", "-n", "mlp,vgg16", "-d", "synthetic", "-b", "2", "-s", "train", "--quick", "--steps", "2",
                          "--warm-up", "1", "--budget", "5s", "--repeat", "1", "--store", self.store, expect=1)
        self.assertLess(time.monotonic() - began, 60)
        self.assertIn("not ok: fake vgg16 train b2 fp32 cpu (not finished); the budget of 5s had no time for a reference",
                      done.stderr)
        self.assertRegex(done.stderr, r"vgg16 .*: its reference and gate need about \d+ s, but --budget has [0-2] s left")
        self.assertIn("not finished: 1 of 2 cells; to continue", " ".join(done.stdout.split()))

    def test_wrong_words(self):
        done = self.prony("run", *self.WORDS, "--budget", "soon", "--store", self.store, expect=64)
        self.assertIn("write for example 90s, 30m or 1.5h", done.stderr)


class PlanTest(ProgramTest):
    def plan(self, suite, *words):
        return json.loads(self.prony("run", suite, "--dry-run", "--format", "json", *words, expect=0).stdout)

    def test_thesis_is_nine_cases_in_five_frameworks(self):
        cells = self.plan("thesis")
        self.assertEqual(len({(c["framework"], c["network"]) for c in cells}), 45)
        self.assertEqual({c["device"] for c in cells}, {"cpu", "cuda:0", "cuda:0+1"})
        self.assertEqual(len(cells), 135)
        datasets = {(c["network"], re.sub("-(sample|3000)$", "", c["dataset"])) for c in cells}
        self.assertEqual(len(datasets), 9)
        self.assertIn(("alexnet-cifar", "cifar10"), datasets)
        self.assertIn(("lenet", "mnist"), datasets)
        fixed = {c["network"]: (c["batch"], c["steps"], c["warm_up_steps"], c["learning_rate"]) for c in cells}
        self.assertEqual(fixed, {
            "lenet": (64, 938, 0, 0.01), "alexnet-cifar": (128, 390, 0, 0.01), "vgg16-cifar": (128, 390, 0, 0.01),
            "resnet50-cifar": (128, 390, 0, 0.1), "googlenet-cifar": (128, 390, 0, 0.1), "alexnet": (128, 300, 0, 0.01),
            "resnet50": (8, 300, 0, 0.1), "googlenet": (8, 300, 0, 0.1), "vgg16": (8, 300, 0, 0.01)})

    def test_quick_takes_an_eighth_and_leaves_what_is_named(self):
        def batches(*words):
            return {c["network"]: (c["batch"], c["steps"], c["warm_up_steps"]) for c in self.plan("thesis", *words)}
        quick = batches("--quick")
        self.assertEqual((quick["lenet"], quick["alexnet"], quick["vgg16"]), ((8, 3, 1), (16, 3, 1), (2, 3, 1)))
        self.assertEqual(batches("--quick", "-b", "1", "--steps", "5", "--warm-up", "2")["lenet"], (1, 5, 2))
        rates = {c["network"]: c["learning_rate"] for c in self.plan("thesis", "--quick")}
        self.assertEqual((rates["lenet"], rates["resnet50-cifar"], rates["vgg16"]), (0.00125, 0.0125, 0.0025))
        for words in (("--learning-rate", "0.01"), ("-b", "8")):
            self.assertEqual({c["learning_rate"] for c in self.plan("thesis", "--quick", "-n", "vgg16", *words)}, {0.01})
        self.assertEqual({c["batch"] for c in self.plan("cnn", "--quick")}, {2, 4, 8})
        self.assertEqual({c["batch"] for c in self.plan("quickstart", "--quick")}, {64})
        self.assertEqual({(c["network"], c["batch"], c["steps"], c["warm_up_steps"]) for c in self.plan("keras", "-n", "mlp,cnn")},
                         {("mlp", 128, 24, 7), ("cnn", 32, 96, 31)})

    def test_the_others(self):
        def axes(suite, *keys):
            return {tuple(c[key] for key in keys) for c in self.plan(suite)}
        self.assertEqual(axes("precision", "network", "batch", "steps", "warm_up_steps", "sync"),
                         {(n, 16, 20, 20, "step") for n in ("vgg16", "resnet152", "densenet161")})
        self.assertEqual(axes("precision", "device", "precision"),
                         {("cpu", "fp32"), ("cpu", "bf16"), ("cuda:0", "fp32"), ("cuda:0", "fp16")})
        self.assertEqual(axes("vgg", "network", "batch", "steps", "sync", "stage"), {("vgg16", 16, 100, "end", "train")})
        self.assertEqual(len(axes("vgg", "framework")), 6)
        self.assertEqual(axes("alexnet", "network", "dataset", "batch", "steps", "warm_up_steps", "stage"),
                         {("alexnet-tf", "synthetic", 128, 100, 10, s) for s in ("forward", "forward-backward")})
        self.assertEqual(len(axes("cnn", "network", "batch")), 15)
        self.assertEqual(axes("cnn", "steps", "warm_up_steps", "precision", "optimiser"), {(100, 10, "bf16", "sgd")})
        self.assertEqual(axes("inference", "batch", "sync"), {(1, "step"), (32, "blocks")})
        self.assertEqual(axes("inference", "network"), {("lenet",), ("alexnet",), ("googlenet",), ("resnet50",)})
        self.assertEqual(len(axes("keras", "network", "batch")), 5)

    def test_suites_are_listed_and_sound(self):
        rows = json.loads(self.prony("list", "suites", "--format", "json", expect=0).stdout)
        states = {row["suite"]: row["state"] for row in rows}
        for name in ("thesis", "precision", "vgg", "alexnet", "cnn", "keras", "inference", "quickstart"):
            self.assertEqual(states[name], "ready")

    def test_what_cells_need_is_grouped_by_cause(self):
        done = self.prony("run", "thesis", "--dry-run", "-f", "caffe,mxnet,cntk", "--data", self.folder, expect=0,
                          COLUMNS="200")
        locks, megabytes = os.path.join(os.path.dirname(__file__), "../../frameworks/locks"), 0
        for lock in ("mxnet.txt", "caffe-3.9.txt", "cntk-3.6.txt"):
            with open(os.path.join(locks, lock), encoding="utf-8") as stream:
                megabytes += int(re.search(r"^# download-mb: (\d+)$", stream.read(), re.M).group(1))
        size = f"{megabytes} MB" if megabytes < 1000 else f"{megabytes / 1000:.1f} GB"
        lines = done.stdout.splitlines()
        start = lines.index("81 of 81 cells cannot run (--full: all reasons):")
        # Whether mxnet's cells have a GPU depends on the machine.
        self.assertEqual([line for line in lines[start + 1:] if "NVIDIA" not in line], [
            "  27 need several GPUs; this version supports one per cell",
            *(f"  9 need a GPU, but {name} runs on the CPU only" for name in ("caffe", "cntk")),
            f"  36 need frameworks: prony framework install caffe mxnet cntk ({size})",
            "  16 need the data set cifar10: prony data fetch cifar10 (171 MB)",
            "  16 need the data set imagenet: register at https://image-net.org to get ILSVRC2012_img_train.tar and "
            "ILSVRC2012_img_val.tar"])
        full = self.prony("run", "thesis", "--dry-run", "--full", "-f", "caffe,mxnet,cntk", "--data", self.folder, expect=0).stdout
        self.assertIn("device cuda:0: caffe runs on the CPU only", full)

    def test_cells_without_their_data_are_missing_and_say_how_to_get_it(self):
        cells = [c for c in self.plan("thesis", "-D", "cpu", "-f", "native", "-n", "alexnet-cifar", "--data", self.folder)]
        for cell in cells:
            self.assertEqual(cell["status"], "missing")
            self.assertIn("prony data fetch cifar10", cell["reason"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
