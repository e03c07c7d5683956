#!/usr/bin/env python3
"""Drives the Python worker (and the Perl example) through the protocol.

null runs under every Python from 3.6 to 3.13 that is found (PATH, pyenv); pytorch under
$PRONY_PYTORCH_PYTHON, prony's own environment, or this Python, where one of them has torch.
Usage: test_python_worker.py [-v] [TEST...]; --cost prints what null costs instead.
"""
import array
import glob
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import counted  # noqa: E402
from float64_reference import Reference  # noqa: E402
from worker_driver import (  # noqa: E402
    Bundle, Driver, Network, arranged, lenet, mlp, normalised, sequences, small, tagger)

ROOT = os.path.dirname(os.path.dirname(HERE))
WORKER = os.path.join(ROOT, "python", "worker.py")
PERL_WORKER = os.path.join(ROOT, "tests", "workers", "null.pl")
MINORS = range(6, 14)


def runs(python, code):
    """Standard output of a Python that runs `code`; None when it fails."""
    try:
        result = subprocess.run([python, "-c", code], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, timeout=120)
    except OSError:
        return None
    return result.stdout.decode().strip() if result.returncode == 0 else None


def find_pythons():
    """{"3.6": path ...} of the interpreters that work."""
    found = {}
    for minor in MINORS:
        word = "3.%d" % minor
        pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
        candidates = [os.environ.get("PRONY_PYTHON_3_%d" % minor), shutil.which("python" + word)]
        candidates += glob.glob(os.path.join(pyenv, "versions", word + ".*", "bin", "python" + word))
        for path in filter(None, candidates):
            if runs(path, "import sys; print('%d.%d' % sys.version_info[:2])") == word:
                found[word] = path
                break
    return found


DATA = os.environ.get("XDG_DATA_HOME", os.path.expanduser("~/.local/share"))


def find_torch():
    """A Python that can import torch, or None."""
    for path in (os.environ.get("PRONY_PYTORCH_PYTHON"),
                 os.path.join(DATA, "prony/frameworks/pytorch/bin/python"), sys.executable):
        if path and os.path.exists(path) and runs(
                path, "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
                ) is not None:
            return path
    return None


PYTHONS = find_pythons()
TORCH = find_torch()


class WorkerTest(unittest.TestCase):
    """A folder for bundles, and workers that end with the test."""

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.log = open(os.path.join(self.scratch.name, "stderr"), "w+")
        self.addCleanup(self.log.close)

    def bundle(self, graph, **recipe):
        folder = tempfile.mkdtemp(dir=self.scratch.name)
        return Bundle(folder, graph, **recipe)

    def driver(self, command, **how):
        driver = Driver(command, stderr=self.log, **how)
        self.addCleanup(lambda: driver.process.poll() is None and driver.finish())
        return driver

    def refused(self, reply, status, text):
        self.assertIs(reply["ok"], False, reply)
        self.assertEqual(reply["status"], status, reply)
        self.assertIn(text, reply["error"])
        self.assertNotIn("\n", reply["error"])


class NullTest(WorkerTest):
    """Every verb, with null."""

    def all_verbs(self, command, shared):
        bundle = self.bundle(small(4))
        driver = self.driver(command, shared=shared)
        greeting, opened, built = driver.prepare(bundle)
        self.assertEqual((greeting["protocol"], greeting["name"]), (2, "null"))
        self.assertIs(greeting["shared_memory"], shared and command[-1] != PERL_WORKER)
        self.assertEqual((greeting["rank"], greeting["world_size"]), (0, 1))
        self.assertEqual((opened["device"], opened["threads"], opened["precision"]),
                         ("cpu", 1, "fp32"))
        self.assertEqual((built["parameters"], built["macs"]), (None, None))
        self.assertEqual(len(driver.run(100, "end")), 1)
        self.assertEqual(len(driver.run(100, "step", slot=2)), 100)
        self.assertEqual(len(driver.run(100, "blocks", every=30)), 4)
        self.assertEqual(len(driver.run(90, "blocks", every=30)), 3)
        self.assertEqual(driver.read("logits"), {"logits": ([4, 5], [0.0] * 20)})
        self.assertEqual(driver.read("loss"), {"loss": ([], [0.0])})
        self.assertEqual(driver.read("state"), {})
        weights = {name: (bundle.shapes[name], data) for name, data in bundle.weights.items()}
        self.assertEqual(driver.read("weights"), weights)
        # Zeros, not the weights that lay in their place.
        self.assertEqual(driver.read("gradients"), {name: (shape, [0.0] * len(data))
                                                    for name, (shape, data) in weights.items()})
        self.assertEqual(driver.close(), 0)

    def python(self, version):
        if version not in PYTHONS:
            self.skipTest("no python%s on PATH or in pyenv, PRONY_PYTHON_%s is not set"
                          % (version, version.replace(".", "_")))
        for shared in (True, False):
            with self.subTest(shared=shared):
                self.all_verbs([PYTHONS[version], WORKER, "--adapter", "null"], shared)

    def test_perl(self):
        if not shutil.which("perl"):
            self.skipTest("no perl")
        self.all_verbs(["perl", PERL_WORKER], False)


for _minor in MINORS:
    setattr(NullTest, "test_python_3_%d" % _minor,
            lambda self, version="3.%d" % _minor: self.python(version))


EPOCHS = """
import sys
from adapters import null

class Adapter(null.Adapter):
    options = ("fit", "lazy")

    def fit(self, blocks, slot, mark):
        print(blocks, slot, file=sys.stderr)
        for _ in blocks:
            mark()
            if "lazy" not in self.case.options:
                mark()
"""


class EpochsTest(WorkerTest):
    """The option fit: blocks that a framework's own loop runs."""

    def started(self, *options):
        path = os.path.join(self.scratch.name, "epochs.py")
        with open(path, "w") as out:
            out.write(EPOCHS)
        driver = self.driver([sys.executable, WORKER, "--adapter", path])
        driver.prepare(self.bundle(small(4), options=list(options)))
        return driver

    def test_records(self):
        driver = self.started("fit")
        # Between epochs there is time that is none's, so records need not touch as they do without.
        for count, request in ((3, {"steps": 90, "sync": "blocks", "every": 30, "slot": 1}),
                               (1, {"steps": 7, "sync": "end", "slot": 0}),
                               (2, {"steps": 2, "sync": "step", "slot": 0})):
            reply = driver.must("run", **request)
            self.assertEqual(reply["records"], count)
            self.assertLess(reply["begin_at_ns"], reply["end_at_ns"])
        self.assertEqual(driver.close(), 0)
        self.log.seek(0)
        self.assertEqual(self.log.read(), "[30, 30, 30] 1\n[7] 0\n[1, 1] 0\n")

    def test_missing_end(self):
        driver = self.started("fit", "lazy")
        self.refused(driver.ask("run", steps=2, sync="step", slot=0), "crashed", "ran 1 blocks of 2")

    def test_unknown(self):
        driver = self.driver([sys.executable, WORKER, "--adapter", "null"])
        self.refused(driver.ask("hello", **driver.greeting(options=["fit"])), "unsupported", "option fit")


class RefusalTest(WorkerTest):
    """What the worker refuses beside what `prony worker-check` asks of it (test_worker_check.py)."""

    def null(self, **how):
        return self.driver([sys.executable, WORKER, "--adapter", "null"], **how)

    def test_small_shared_memory(self):
        driver = self.null(tensors_bytes=4096)
        driver.prepare(self.bundle(mlp(2, width=16)))
        self.refused(driver.ask("read", what="weights"), "invalid", "shared memory has 4096")
        driver.run(1)
        self.assertEqual(len(driver.read("logits")["logits"][1]), 20)

    def test_bad_shared_memory(self):
        for size in (1 << 40, 8):
            driver = self.null()
            members = dict(driver.greeting(),
                           shared_memory={"fd": driver.shared_fd, "bytes": size})
            self.refused(driver.ask("hello", **members), "invalid", "shared memory")
        driver = self.null()
        driver.room[0] = 0
        self.refused(driver.ask("hello", **driver.greeting()), "invalid", "magic")

    def damaged(self, name, data):
        bundle, driver = self.bundle(small(4)), self.null()
        with open(os.path.join(bundle.folder, name), "wb") as out:
            out.write(data)
        driver.hello()
        return bundle, driver

    def test_damaged_tensors(self):
        far = json.dumps({"input.0": {"dtype": "F32", "shape": [4, 2, 9, 8],
                                  "data_offsets": [0, 2304]}}).encode()
        for data in (b"", b"abc", b"\xff" * 64, b"\x04" + bytes(7) + b"null",
                     array.array("Q", [len(far)]).tobytes() + far):
            bundle, driver = self.damaged("input.safetensors", data)
            driver.must("open", bundle=bundle.folder)
            driver.must("build")
            self.refused(driver.ask("feed", slot=0, batch=0), "invalid", "input.safetensors")

    def test_usage(self):
        for arguments in ([], ["--adapter"], ["--adapter", "nothing"]):
            result = subprocess.run([sys.executable, WORKER] + arguments, stderr=subprocess.PIPE)
            self.assertEqual(result.returncode, 64)
            self.assertIn(b"null, ", result.stderr)
            self.assertIn(b"pytorch", result.stderr)
        result = subprocess.run([sys.executable, WORKER, "--adapter", "null"],
                                stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 64)
        self.assertIn(b"docs/worker-protocol.md", result.stderr)

    def test_missing_framework(self):
        python = PYTHONS.get("3.6") or sys.executable
        if runs(python, "import torch") is not None:
            self.skipTest("this Python has torch")
        driver = self.driver([python, WORKER, "--adapter", "pytorch"])
        self.refused(driver.ask("hello", **driver.greeting()), "missing", "torch")
        self.assertEqual(driver.close(), 0)


def distance(found, expected):
    """||found - expected|| / ||expected|| of two lists; their plain distance where expected is 0."""
    apart = math.sqrt(sum((a - b) ** 2 for a, b in zip(found, expected)))
    return apart / (math.sqrt(sum(b * b for b in expected)) or 1.0)


@unittest.skipUnless(TORCH, "no Python with torch: prony framework install pytorch, or PRONY_PYTORCH_PYTHON")
class PytorchTest(WorkerTest):
    def pytorch(self, **how):
        return self.driver([TORCH, WORKER, "--adapter", "pytorch"], **how)

    def near(self, found, expected, bound, what):
        self.assertEqual(list(found), list(expected), what)
        for name, (shape, values) in found.items():
            self.assertEqual(len(values), len(expected[name]), name)
            self.assertLess(distance(values, expected[name]), bound, "%s of %s" % (what, name))

    def gate(self, bound=1e-5, change_bound=1e-4, graph=None, **recipe):
        """Three steps on three batches against the float64 reference, as the parity gate does."""
        bundle = self.bundle(graph or small(4), **recipe)
        driver, reference = self.pytorch(), Reference(bundle)
        driver.prepare(bundle)
        train = bundle.recipe["stage"] == "train"
        for batch in range(3):
            driver.run(1, slot=batch)
            reference.step(batch)
            self.near(driver.read("logits"), {"logits": reference.logits}, bound, "logits")
            self.near(driver.read("loss"), {"loss": reference.loss}, bound, "loss")
            self.near(driver.read("gradients"), reference.gradients, change_bound, "gradient")
            self.near(driver.read("state"), reference.states, bound, "state")
        after = driver.read("weights")
        if train:
            change = {name: (shape, [a - b for a, b in zip(values, bundle.weights[name])])
                      for name, (shape, values) in after.items()}
            self.near(change, {name: [a - b for a, b in zip(values, bundle.weights[name])]
                               for name, values in reference.weights.items()},
                      change_bound, "change")
        else:
            self.assertEqual({name: values for name, (_, values) in after.items()}, bundle.weights)
        self.assertEqual(driver.close(), 0)

    def test_momentum(self):
        self.gate(weight_decay=0.01)

    def test_sgd(self):
        self.gate(optimiser="sgd")

    def test_rmsprop(self):
        self.gate(optimiser="rmsprop", learning_rate=0.001)

    def test_fresh_gradients(self):
        self.gate(stage="forward-backward")

    def test_channels_last_and_fused(self):
        self.gate(options=["channels_last", "fused"])

    def test_compile(self):
        if not shutil.which("g++"):
            self.skipTest("no g++")
        self.gate(options=["compile"])
        self.gate(options=["compile", "max_autotune"])

    def test_compile_modes(self):
        """What torch.compile was told, and which modes are none."""
        for words, why in ((["cudagraph"], "option cudagraph without compile"),
                           (["max_autotune"], "option max_autotune without compile"),
                           (["compile", "cudagraph"], "option cudagraph on a CPU")):
            driver, bundle = self.pytorch(), self.bundle(small(4), options=words)
            driver.hello(**bundle.target)
            self.assertIn(why, driver.must("supports", bundle=bundle.folder)["reason"])
            driver.close()
        if shutil.which("g++"):
            driver, bundle = self.pytorch(), self.bundle(small(4), options=["compile", "max_autotune"])
            driver.hello(**bundle.target)
            settings = driver.must("open", bundle=bundle.folder)["settings"]
            self.assertEqual(settings["compile_mode"], "max-autotune-no-cudagraphs")
            driver.close()

    def test_operators(self):
        """Every operator, in the three stages; statistics run in the training stages only."""
        for graph in (normalised, arranged, sequences, tagger):
            for options in ([], ["channels_last"]):
                self.gate(graph=graph(4), options=options)
                self.gate(graph=graph(4), options=options, stage="forward-backward")
                self.forward(graph(4), options=options)

    def test_operators_compiled(self):
        if not shutil.which("g++"):
            self.skipTest("no g++")
        graph = normalised(4)
        driver = self.pytorch()
        bundle = self.bundle(graph, options=["compile"])
        driver.hello(**bundle.target)
        reply = driver.must("supports", bundle=bundle.folder)
        self.assertIn("AveragePool a2: torch.compile", reply["reason"])
        self.assertNotIn("a1", reply["reason"])
        next(n for n in graph["nodes"] if n["name"] == "a2")["attributes"][
            "count_include_pad"] = False
        self.gate(graph=graph, options=["compile"])

    def test_recurrent(self):
        """Every update and option on LSTM and RNN: their parameters are kept in another order."""
        self.gate(graph=sequences(4), weight_decay=0.01, options=["fused"])
        self.gate(graph=sequences(4), optimiser="sgd", learning_rate=0.1)
        self.gate(graph=sequences(4), optimiser="rmsprop", learning_rate=0.001)
        if shutil.which("g++"):
            self.gate(graph=sequences(4), options=["compile"])
        driver, bundle = self.pytorch(), self.bundle(sequences(4))
        built = driver.prepare(bundle)[2]
        self.assertEqual(built["parameters"], sum(map(len, bundle.weights.values())))
        self.assertEqual(built["macs"], 4 * (6 * 4 * 8 + 4 * (20 * 11 + 3 * 9) + 8 * 5))

    def test_recurrent_weights(self):
        """Weights that a layer of torch cannot have."""
        graph = sequences(4)
        for node in graph["nodes"]:
            if node["op"] == "LSTM":
                node["inputs"][2] = node["inputs"][1]
        next(v for v in graph["values"] if v["name"] == "rnn.bias")["kind"] = "state"
        driver = self.pytorch()
        driver.hello()
        reply = driver.must("supports", bundle=self.bundle(graph).folder)
        for word in ("LSTM lstm: weights that another", "RNN rnn: weights that are not"):
            self.assertIn(word, reply["reason"])

    def test_half_squares(self):
        graph = small(4)
        graph["nodes"][-1].update(op="HalfSumOfSquares", inputs=[graph["logits"]])
        self.gate(graph=graph)

    def test_wrong_epsilon(self):
        """The comparison must be able to fail."""
        for change in ({"epsilon": 0.011}, {"momentum": 0.81}):
            graph = normalised(4)
            bundle = self.bundle(graph)
            reference, driver = Reference(bundle), self.pytorch()
            next(n for n in graph["nodes"] if n["name"] == "b1")["attributes"].update(change)
            bundle.write()
            driver.prepare(bundle)
            next(n for n in graph["nodes"] if n["name"] == "b1")["attributes"].update(
                epsilon=0.01, momentum=0.8)
            driver.run(1, slot=0)
            reference.step(0)
            apart = [distance(driver.read("logits")["logits"][1], reference.logits)]
            apart += [distance(values, reference.states[name])
                      for name, (_, values) in driver.read("state").items()]
            self.assertGreater(max(apart), 1e-4)
            driver.close()

    def test_mixed_samples(self):
        """A graph that joins samples is counted on the whole batch."""
        net = Network("mixed", [4, 6])
        net.linear("f1", 8)
        net.unary("Transpose", "turn", [8, 4], perm=[1, 0])
        net.unary("Softmax", "soft", axis=0)
        net.unary("Transpose", "back", [4, 8], perm=[1, 0])
        net.linear("f2", 3)
        graph = net.graph()
        self.gate(graph=graph)
        driver = self.pytorch()
        self.assertEqual(driver.prepare(self.bundle(graph))[2]["macs"], 4 * (48 + 24))

    def test_refused_attributes(self):
        graph = normalised(4)
        for node in graph["nodes"]:
            if node["op"] == "LRN":
                node["attributes"]["size"] = 4
            elif node["name"] == "a3":
                node["attributes"]["count_include_pad"] = False
        driver = self.pytorch()
        driver.hello()
        reply = driver.must("supports", bundle=self.bundle(graph).folder)
        self.assertIs(reply["supported"], False)
        for word in ("LRN n1: an even size", "AveragePool a3: padding"):
            self.assertIn(word, reply["reason"])

    def forward(self, graph, **recipe):
        bundle = self.bundle(graph, stage="forward", **recipe)
        driver, reference = self.pytorch(), Reference(bundle)
        driver.prepare(bundle)
        for batch in range(2):
            driver.run(1, slot=batch)
            reference.step(batch)
            self.near(driver.read("logits"), {"logits": reference.logits}, 1e-5, "logits")
        self.near(driver.read("state"), bundle.states, 1e-9, "state")
        self.assertEqual(driver.close(), 0)

    def test_forward(self):
        bundle = self.bundle(small(4), stage="forward", dropout=True)
        driver, reference = self.pytorch(shared=False), Reference(bundle)
        self.assertEqual(driver.prepare(bundle)[1]["settings"]["inference_mode"], "True")
        for batch in range(3):
            driver.run(1, slot=batch)
            reference.step(batch)
            self.near(driver.read("logits"), {"logits": reference.logits}, 1e-5, "logits")
            reference.weights = {name: list(w) for name, w in bundle.weights.items()}
        self.refused(driver.ask("read", what="loss"), "invalid", "no loss")

    def test_dropout(self):
        """With dropout on, two steps on one batch differ in forward-backward; the seed fixes both."""
        losses = []
        for _ in range(2):
            driver = self.pytorch()
            driver.prepare(self.bundle(mlp(8, width=64), stage="forward-backward", dropout=True))
            for _ in range(2):
                driver.run(1, slot=0)
                losses.append(driver.read("loss")["loss"][1][0])
            driver.close()
        self.assertNotEqual(losses[0], losses[1])
        self.assertEqual(losses[:2], losses[2:])

    def test_counts(self):
        """docs: lenet has 431,080 parameters and 2,293,000 MACs an image, mlp 669,706, 668,672."""
        for graph, parameters, macs in ((lenet(3), 431080, 2293000), (mlp(3), 669706, 668672)):
            for stage in ("forward", "train"):
                bundle = self.bundle(graph, stage=stage)
                driver = self.pytorch()
                greeting, opened, built = driver.prepare(bundle)
                self.assertEqual((built["parameters"], built["macs"]), (parameters, 3 * macs))
                self.assertEqual((opened["device"], opened["threads"], opened["precision"]),
                                 ("cpu", 1, "fp32"))
                driver.run(3, "step")
                self.assertEqual(driver.close(), 0)
        self.assertIn("onednn", greeting["libraries"])
        self.assertIn("cpu", greeting["devices"])

    def test_unsupported(self):
        graph = small(4)
        graph["nodes"][1]["op"] = "Sine"
        for target, word in (({"device": "cuda:99"}, "device cuda:99"),
                             ({"options": ["compile", "magic"]}, "option magic"),
                             ({"backend": "jax"}, "backend jax")):
            driver = self.pytorch()
            self.refused(driver.ask("hello", **driver.greeting(**target)), "unsupported", word)
        bundle = self.bundle(graph, precision="tf32")
        driver = self.pytorch()
        driver.hello()
        reply = driver.must("supports", bundle=bundle.folder)
        self.assertIs(reply["supported"], False)
        for word in ("operator Sine", "precision tf32"):
            self.assertIn(word, reply["reason"])

    def test_fused_before_it_was(self):
        """torch 1.13's SGD has no such word: a reason, in no stage a TypeError."""
        old = os.path.join(DATA, "prony/frameworks/pytorch@1.13/bin/python")
        if not os.path.exists(old):
            self.skipTest("not installed: prony framework install pytorch@1.13")
        for options, supported in (([], True), (["fused"], False)):
            bundle = self.bundle(small(4), options=options)
            driver = self.driver([old, WORKER, "--adapter", "pytorch"])
            driver.hello(**bundle.target)
            reply = driver.must("supports", bundle=bundle.folder)
            self.assertIs(reply["supported"], supported, reply)
            self.assertTrue(supported or "option fused, which SGD of torch 1.13" in reply["reason"], reply)
            driver.close()

    def test_low_precision(self):
        for precision in ("bf16", "fp16"):
            for stage in ("forward", "forward-backward"):
                bundle = self.bundle(small(4), precision=precision, stage=stage)
                driver, reference = self.pytorch(), Reference(bundle)
                greeting = driver.hello()
                reply = driver.must("supports", bundle=bundle.folder)
                if precision not in greeting["precisions"]:
                    self.assertIs(reply["supported"], False)
                    driver.close()
                    continue
                driver.must("open", bundle=bundle.folder)
                driver.must("build")
                driver.must("feed", slot=0, batch=0)
                driver.run(1, slot=0)
                driver.bundle = bundle
                reference.step(0)
                logits = driver.read("logits")
                self.near(logits, {"logits": reference.logits}, 0.05, "logits")
                self.assertGreater(distance(logits["logits"][1], reference.logits), 1e-5,
                                   "this was not computed in %s" % precision)
                if stage != "forward":  # rounding moves some maxima of the pools elsewhere
                    self.near(driver.read("gradients"), reference.gradients, 0.3, "gradient")
                driver.close()

    def test_out_of_memory(self):
        """The step's activations exceed what the process may still map."""
        net = Network("wide", [64, 1, 64, 64])
        net.conv("conv", 128, 3)
        net.pool("pool", 62, 62)
        net.flatten("flat")
        net.linear("fc", 4)
        bundle, driver = self.bundle(net.graph(), stage="forward", slots=1), self.pytorch()
        driver.prepare(bundle)
        # What PyTorch loads and maps at its first step must be there already: where that fails it
        # does so in ways of its own.
        driver.run(1, slot=0)
        with open("/proc/%d/statm" % driver.process.pid) as source:
            mapped = int(source.read().split()[0]) * resource.getpagesize()
        resource.prlimit(driver.process.pid, resource.RLIMIT_AS, (mapped + (64 << 20),) * 2)
        self.refused(driver.ask("run", steps=1, sync="end", slot=0), "out-of-memory", "")
        self.assertEqual(driver.close(), 0)


def main():
    if "--cost" in sys.argv:
        return cost()
    return counted.main()


def cost():
    """Prints the cost of a null step and of starting, for each Python."""
    steps = 200000
    for version, path in sorted(PYTHONS.items(), key=lambda item: int(item[0][2:])):
        with tempfile.TemporaryDirectory() as folder:
            driver = Driver([path, WORKER, "--adapter", "null"])
            driver.hello()
            start_ms = (driver.after_ns - driver.started_ns) / 1e6
            driver.bundle = bundle = Bundle(folder, small(4))
            driver.must("open", bundle=bundle.folder)
            driver.must("build")
            for slot in range(3):
                driver.must("feed", slot=slot, batch=slot)
            costs = []
            for sync in ("end", "step"):
                best = min(r[-1][1] - r[0][0] for r in (driver.run(steps, sync) for _ in range(5)))
                costs.append(best / steps)
            driver.close()
        print("Python %-5s start to hello %5.1f ms; a step: sync end %4.0f ns, sync step %4.0f ns"
              % ((version, start_ms) + tuple(costs)))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
