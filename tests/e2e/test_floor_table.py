#!/usr/bin/env python3
"""tests/bench/floor.py: what its table says of figures that were kept; nothing is measured here."""
import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench/floor.py")


def cell(framework, step_ms, ratio, broken=False, status="ok"):
    return {"framework": framework, "status": status, "reason": None, "version": "1.0",
            "step_ns": None if step_ms is None else step_ms * 1e6, "half_width": 0.012,
            "processes": 5,
            "floor": {"ratio": ratio, "low": ratio, "high": ratio, "broken": broken}}


def command(name, in_step_ms, warm_ms, share):
    return {"name": name, "in_step_ns": in_step_ms * 1e6, "warm_ns": warm_ms * 1e6,
            "cold_ns": warm_ms * 1e6, "lost_ns": 1e6, "flops": 1e9, "share_of_peak": share}


BENCH = {"step": {"median_ns": 964e6}, "step_over_warm": 1.02, "step_over_in_step": 1.0,
         "share_of_peak": 0.71,
         "peak_flops_per_second": {"fma": 236e9, "fma_worst": 233e9, "fma_set": "avx512f", "sgemm": 233e9},
         "reorders": {"input": 1, "activations": 0, "weights": 52, "seen_by_library": 53},
         "creations": 0, "allocations": 0, "library_allocations": 400, "one_thread_ns": 1900e6, "all_threads_ns": 1000e6,
         "commands": [command("conv1 weight gradient", 31, 30, 0.34)],
         "slower_in_step": [command("bn1 gradient", 9, 4, None)]}
ENTRY = {"network": "resnet50", "batch": 8, "stage": "train", "bench": BENCH,
         "bench_at": "2026-11-21T12:10:00+00:00",
         "cells": [cell("native", 970, 1), cell("pytorch", 1200, 1.24),
                   cell("onnxruntime", None, None, status="unsupported")]}


class FloorTable(unittest.TestCase):
    def table(self, *entries):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "floor.json")
            with open(path, "w", encoding="utf-8") as stream:
                json.dump({"entries": {str(i): entry for i, entry in enumerate(entries)}}, stream)
            done = subprocess.run([sys.executable, SCRIPT, "--table", "--results", path],
                                  stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    def test_holds(self):
        text = self.table(ENTRY)
        self.assertIn("| `resnet50` | 8, train | 964 | 1.020 | 1, 0, 52 | 0, 0 + 400 | 0.71 | 1.90 |"
                      " 970 +/- 1.2 % | unsupported | 1200 +/- 1.2 %, 1.24x | holds |", text)
        self.assertIn("our FMA loop (avx512f): 236 to 236 GFLOP/s", text)
        self.assertNotIn("Not reached", text)

    def test_broken(self):
        entry = copy.deepcopy(ENTRY)
        entry["cells"].append(cell("mxnet", 900, 0.93, broken=True))
        self.assertIn("| **broken by mxnet (0.93x, 0.93 to 0.93)** (layer that loses most: conv1 weight "
                      "gradient: 31 ms, 0.34 of the peak) |", self.table(entry))

    def test_cannot_be_told(self):
        entry = copy.deepcopy(ENTRY)
        entry["cells"].append(cell("mxnet", 960, 0.99))
        entry["cells"][-1]["floor"].update(low=0.97, high=1.01)
        self.assertIn("| undecided: mxnet (0.99x, 0.97 to 1.01) |", self.table(entry))
        self.assertIn("1 of 2 rows decided.", self.table(entry, ENTRY))

    def test_other_versions_of_native(self):
        """They have columns, and no say in whether the floor holds."""
        entry = copy.deepcopy(ENTRY)
        entry["cells"].append(cell("native@3.6", 900, 0.93))
        self.assertIn("| 900 +/- 1.2 %, 0.93x | unsupported | 1200 +/- 1.2 %, 1.24x | holds |", self.table(entry))

    def test_not_reached(self):
        entry = copy.deepcopy(ENTRY)
        entry["bench"].update(step_over_warm=1.06, share_of_peak=0.59, allocations=3)
        text = self.table(entry)
        self.assertIn("- resnet50 train: step / sum 1.060 > 1.05; slower within the step, ms: bn1 "
                      "gradient +5\n", text)
        self.assertIn("- resnet50 train: share of the peak 0.59 < 0.6; conv1 weight gradient", text)
        self.assertIn("- resnet50 train: 3 allocations, 0 creations in a step", text)

    def test_disturbed(self):
        entry = copy.deepcopy(ENTRY)
        entry["bench"]["step_over_in_step"] = 1.4
        self.assertIn("- resnet50 train: disturbed by other work, to be measured again: a step takes 1.40",
                      self.table(entry))
        entry["bench"]["step_over_in_step"] = 1.0
        entry["bench"]["peak_flops_per_second"]["fma_worst"] = 118e9
        self.assertIn("the FMA loop fell to 0.50 of its best", self.table(entry))

    def test_nothing_to_stand_on(self):
        entry = copy.deepcopy(ENTRY)
        entry["cells"][0].update(status="crashed", step_ns=None)
        self.assertIn("there is no floor: native crashed", self.table(entry))
        del entry["cells"], entry["bench"]
        self.assertIn("the frameworks were not run", self.table(entry))

    def test_none_yet(self):
        self.assertIn("| network |", self.table())


if __name__ == "__main__":
    unittest.main()
