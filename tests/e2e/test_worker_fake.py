#!/usr/bin/env python3
"""The fake adapter against a float64 reference in Python, its delays and its options.

How each of its faults is found is tested by test_worker_check.py, test_run_faults.py and test_run_mutants.py.

$PRONY_WORKER is a C worker that takes --adapter and --option (prony worker, or tests/worker_host).
"""
import math
import os
import shlex
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import counted  # noqa: E402
from c_worker import as_c_writes, end  # noqa: E402
from float64_reference import Reference  # noqa: E402
from worker_driver import Bundle, Driver, Network, mlp, small  # noqa: E402

# Float32 stays below these on the networks here.
RIGHT, CHANGE_RIGHT = 1e-5, 1e-4
PATIENCE_S = 120


def distance(found, expected):
    apart = math.sqrt(sum((a - b) ** 2 for a, b in zip(found, expected)))
    return apart / (math.sqrt(sum(b * b for b in expected)) or 1.0)


def tiny(batch):
    """The smallest network that trains."""
    net = Network("tiny", [batch, 6])
    net.linear("f1", 5)
    net.relu("r1")
    net.linear("f2", 3)
    return net.graph()


class FakeTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.log_path = os.path.join(scratch.name, "log")
        self.log = open(self.log_path, "wb")
        self.addCleanup(self.log.close)

    def bundle(self, graph, **recipe):
        folder = tempfile.mkdtemp(dir=self.folder)
        return Bundle(folder, as_c_writes(graph), **recipe)

    def fake(self, option=""):
        # Its standard output belongs to the log, as under prony.
        command = ["sh", "-c", 'exec "$@" >&2', "sh"]
        command += shlex.split(os.environ["PRONY_WORKER"]) + ["--adapter", "fake"]
        driver = Driver(command + (["--option", option] if option else []), stderr=self.log)
        self.addCleanup(end, driver)
        return driver


class NumbersTest(FakeTest):
    def errors(self, graph=None, **recipe):
        """Largest distance from the reference over three steps on three batches, by kind."""
        bundle = self.bundle(graph or small(4), **recipe)
        driver, reference = self.fake(), Reference(bundle)
        built = driver.prepare(bundle)[2]
        self.assertEqual(built["parameters"], sum(map(len, bundle.weights.values())))
        stage, worst = bundle.recipe["stage"], {"logits": 0, "loss": 0, "gradient": 0, "change": 0}

        def note(kind, found, expected):
            self.assertEqual(len(found), len(expected))
            worst[kind] = max(worst[kind], distance(found, expected))
        for batch in range(3):
            driver.run(1, slot=batch)
            reference.step(batch)
            note("logits", driver.read("logits")["logits"][1], reference.logits)
            if stage != "forward":
                note("loss", driver.read("loss")["loss"][1], reference.loss)
                for name, (_, values) in driver.read("gradients").items():
                    note("gradient", values, reference.gradients[name])
        after = driver.read("weights")
        self.assertEqual(list(after), list(bundle.weights))
        for name, (_, values) in after.items():
            before = bundle.weights[name]
            if stage == "train":
                note("change", [a - b for a, b in zip(values, before)],
                     [a - b for a, b in zip(reference.weights[name], before)])
            else:
                self.assertEqual(values, before)
        self.assertEqual(driver.close(), 0)
        return worst

    def right(self, **recipe):
        worst = self.errors(**recipe)
        for kind in ("logits", "loss", "gradient"):
            self.assertLess(worst[kind], RIGHT, (kind, recipe))
        self.assertLess(worst["change"], CHANGE_RIGHT, recipe)

    def test_stages_and_optimisers(self):
        for recipe in ({"stage": "forward"}, {"stage": "forward-backward"}, {"optimiser": "sgd"},
                       {"optimiser": "momentum", "weight_decay": 0.01},
                       {"optimiser": "rmsprop", "learning_rate": 0.001}):
            with self.subTest(**recipe):
                self.right(**recipe)

    def test_mlp(self):
        self.right(graph=mlp(3, width=20))

    def test_dropout(self):
        """Masks change from step to step and keep the mean; off, there is none."""
        bundle = self.bundle(mlp(8, width=64), stage="forward-backward", dropout=True)
        driver = self.fake()
        driver.prepare(bundle)
        losses = []
        for _ in range(3):
            driver.run(1, slot=0)
            losses.append(driver.read("loss")["loss"][1][0])
        self.assertEqual(len(set(losses)), 3)


class OptionTest(FakeTest):
    def prepared(self, option, **recipe):
        driver = self.fake(option)
        return driver, driver.prepare(self.bundle(tiny(4), **recipe))

    def test_known_delay(self):
        for option, least_us in (("delay-us=2000", 2000), ("delay-ms=2", 2000),
                                 ("step-us=2000", 2000)):
            driver = self.prepared(option)[0]
            # Other work on the machine can only lengthen a step; at most so much of it is waited for.
            deadline, shortest_us = time.monotonic() + PATIENCE_S, math.inf
            while shortest_us >= least_us * 1.1 and time.monotonic() < deadline:
                records = driver.run(40, "step")
                shortest_us = min(shortest_us, *((end - begin) / 1e3 for begin, end in records))
            self.assertTrue(least_us <= shortest_us < least_us * 1.1, (option, shortest_us))

    def test_unknown_options(self):
        for option, text in (("crahs", "crash"), ("crash-at=lunch", "crash-at"),
                             ("delay-us=x", "delay-us"), ("crash=3", "crash"),
                             ("nan-loss=never", "nan-loss"), ("x" * 80, "too long")):
            driver = self.fake(option)
            reply = driver.ask("hello", **driver.greeting())
            self.assertIs(reply["ok"], False)
            self.assertIn(text, reply["error"])


if __name__ == "__main__":
    if "PRONY_WORKER" not in os.environ:
        sys.exit("PRONY_WORKER names no C worker")
    sys.exit(counted.main())
