#!/usr/bin/env python3
"""Frameworks that train with two ranks, where they are installed, through the gate.

$PRONY names the program.
"""
import json
import os
import sys
import unittest

import counted
from prony_program import HOME, ProgramTest


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two ranks need two cores")
class FrameworkTest(ProgramTest):
    """Frameworks' own data-parallel training, where they are installed, against float64."""

    # Framework -> what it says that it sums with.
    COLLECTIVES = {"pytorch": "gloo", "jax": "gloo", "tensorflow-python": "ring over grpc", "paddle": "gloo",
                   "tensorflow": "ring over grpc", "tensorflow1": "ring over grpc", "mxnet": "parameter server", "caffe2": "gloo", "keras3:jax": "gloo"}
    # The statistics with which it normalises; one of each kind, and what has a way of its own.
    STATISTICS = {"native": "rank", "pytorch": "rank", "jax+global_batch": "global", "mxnet": "rank", "caffe2": "rank",
                  "tensorflow1": "rank"}

    def gates(self, frameworks, networks):
        self.prony("run", "-f", ",".join(frameworks), "-n", networks, "-d", "synthetic", "-D", "cpu:1x2", "-s", "train",
                   "-b", "8", "--gate-only", "--store", self.store, **HOME)
        found = self.rows("select framework, network, status, reason, evidence from cell")
        if all(row[2] == "missing" for row in found):
            self.skipTest("not installed: prony framework install " + ", ".join(frameworks))
        for framework, network, status, reason, evidence in found:
            with self.subTest(framework=framework, network=network):
                if status == "missing":
                    continue
                self.assertEqual((status, reason), ("ok", ""))
                yield framework, json.loads(evidence)

    def test_a_network(self):
        for framework, evidence in self.gates(self.COLLECTIVES, "lenet"):
            self.assertEqual(evidence["framework"]["collectives"], self.COLLECTIVES[framework])
            self.assertNotIn("batch_statistics", evidence)

    def test_batch_normalisation(self):
        kinds = set()
        for framework, evidence in self.gates(self.STATISTICS, "resnet50-cifar"):
            self.assertEqual(evidence["batch_statistics"], self.STATISTICS[framework])
            kinds.add(evidence["batch_statistics"])
        # What does not compute the same does not stand in one table.
        shown = self.prony("show", "--store", self.store).stdout
        self.assertEqual(shown.count("\nresnet50-cifar, synthetic, train"), len(kinds))


if __name__ == "__main__":
    sys.exit(counted.main())
