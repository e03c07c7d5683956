#!/usr/bin/env python3
"""Every operator, update and count of the frameworks with a Python worker, through the protocol, against
plain float64: a row in FRAMEWORKS for each. One that is not installed is skipped, with its reason.

A framework's Python is $PRONY_NAME[_BACKEND]_PYTHON, or that of prony's own environment. Those that
$PRONY_INSTALLED names (tools/run-tests) have to be there.
"""
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

import counted
from float64_reference import Reference
from python_environments import Environment
from worker_driver import (
    Bundle, Driver, Network, arranged, lenet, mlp, normalised, sequences, small, tagger)

HERE = os.path.dirname(os.path.abspath(__file__))

WORKER = os.path.join(os.path.dirname(os.path.dirname(HERE)), "python", "worker.py")
def rescaled(batch):
    """A normalisation for those that refuse something else of `normalised`."""
    net = Network("rescaled", [batch, 2, 5, 5])
    net.conv("c1", 4, 3, bias=False)
    net.batch_norm("c1.bn", 1e-5, 0.9)
    net.relu("r1")
    net.flatten("flat")
    net.linear("f1", 5)
    return net.graph()


def common(batch):
    """What every framework has, with windows that do not come out even."""
    net = Network("common", [batch, 3, 8, 7])
    net.conv("c1", 6, 3, pads=(1, 1, 1, 1))
    net.relu("r1")
    net.unary("LRN", "n1", alpha=0.5, beta=0.7, bias=1.5, size=3)
    net.pool("m1", 3, 2)
    net.last, net.shape = "n1", [batch, 6, 8, 7]
    net.pool("a1", 3, 2, op="AveragePool", count_include_pad=False)
    net.node("Concat", "cat", ["m1", "a1"], [batch, 12, 3, 3], axis=1)
    net.conv("c2", 4, 1)
    net.unary("Sigmoid", "gate")
    net.add("gated", "c2", "Mul")
    net.conv("c3", 4, 3, pads=(1, 1, 1, 1))
    net.add("sum", "gated")
    net.unary("Tanh", "tanh")
    net.flatten("flat")
    net.linear("f1", 7)
    net.relu("r2")
    net.linear("f2", 5)
    return net.graph()


def memory(batch):
    """An LSTM over the input, and what reads its last state."""
    net = Network("memory", [batch, 4, 6])
    net.recurrent("LSTM", "lstm", "x", 5)
    net.linear("f1", 3)
    return net.graph()


def peculiar(batch):
    """Attributes that few frameworks have."""
    net = Network("peculiar", [batch, 4, 8, 8])
    net.unary("LRN", "even", alpha=0.5, beta=0.7, bias=1.5, size=2)
    net.pool("up", 3, 2, (0, 0, 0, 0), True, "AveragePool", count_include_pad=False)
    net.unary("MaxPool", "apart", [batch, 4, 2, 2], kernel_shape=[2, 2], strides=[1, 1], pads=[0] * 4,
              dilations=[2, 2], ceil_mode=False)
    net.flatten("flat")
    net.linear("f1", 5)
    return net.graph()


def aliased(batch):
    """A Relu after an Identity of a convolution and of a dense layer, whose results other nodes read too."""
    net = Network("aliased", [batch, 2, 5, 5])
    net.conv("c1", 4, 3)
    net.unary("Identity", "c1.same")
    net.relu("r1")
    net.add("sum", "c1")
    net.flatten("flat")
    net.linear("f1", 6)
    net.dropout("f1.same", 0.5)
    net.relu("r2")
    net.add("sum2", "f1")
    net.linear("f2", 5)
    return net.graph()


UP_PADS = "AveragePool up: padding and ceil_mode are not supported"
EVEN, UP = "LRN even: the size must be odd", "AveragePool up: ceil_mode is not supported"
APART = "MaxPool apart: dilations are not supported"
GRAPHS = {"common": common, "small": small, "normalised": normalised, "arranged": arranged, "sequences": sequences,
          "aliased": aliased, "tagger": tagger}
# {graph of recurrent layers: multiply-accumulates of 4 samples}
RECURRENT = {sequences: 4 * (6 * 4 * 8 + 4 * (20 * 11 + 3 * 9) + 8 * 5), memory: 4 * (4 * 20 * 11 + 5 * 3)}


class Framework(object):
    """name, backend: as in NAME:BACKEND; adapter: the word of the worker; unbiased: whether its running
    variance is that of n - 1; inside: whether RMSprop's epsilon is inside of the root; adamw: whether it has
    AdamW; options: words to try beside none; refused: {graph: what supports has to say of it}; peculiar: all
    that it has to say of that graph, None where it has each attribute; rounds: how many times the bounds its
    rounding may take; gradients: the stages in which it keeps them."""

    def __init__(self, name, adapter, backend="", unbiased=False, inside=False, options=(), refused=(),
                 peculiar=None, rounds=1, gradients=("forward-backward", "train"), adamw=True):
        self.name, self.adapter, self.backend = name, adapter, backend
        self.unbiased, self.inside, self.options = unbiased, inside, options
        self.refused, self.peculiar = dict(refused), peculiar
        self.rounds, self.gradients, self.adamw = rounds, gradients, adamw
        self.recurrent = memory if "sequences" in self.refused else sequences
        self.environment = Environment(name, backend)


# Keras 2 on Theano compiles for minutes: test_keras2.py has what is its own, and Theano's row the rest.
KERAS2 = {"small": "Gemm f1: only x w + b is supported", "normalised": "operator Clip",
          "arranged": "operator Slice", "sequences": "Reshape rows: the result must be batch x features",
          "tagger": "2 inputs"}
FRAMEWORKS = [
    Framework("caffe", "caffe", adamw=False, unbiased=True,
              refused={"small": "Conv c1: the padding must be the same",
                       "normalised": "AveragePool a1: padding needs count_include_pad",
                       "arranged": "operator Slice", "sequences": "operator RNN", "tagger": "2 inputs"},
              peculiar=[EVEN, "AveragePool up: Caffe counts this padding differently", APART],
              gradients=["forward-backward"]),
    Framework("caffe2", "caffe2", unbiased=True, inside=True, gradients=["forward-backward"],
              refused={"small": "Gemm f1: only x w + b", "normalised": "AveragePool a1: ceil_mode",
                       "arranged": "Slice every: steps other than 1"}, peculiar=[EVEN, UP, APART]),
    Framework("chainer", "chainer", unbiased=True, gradients=["forward-backward"],
              refused={"normalised": "AveragePool a1: padding needs count_include_pad", "arranged": "operator Pad"},
              peculiar=[EVEN, UP, APART]),
    Framework("cntk", "cntk", unbiased=True, gradients=["forward-backward"],
              refused={"small": "Gemm f1: only x w + b is supported", "normalised": "AveragePool a1: padding",
                       "arranged": "operator Slice", "tagger": "2 inputs"}, peculiar=[EVEN, UP_PADS, APART]),
    Framework("paddle", "paddle", inside=True,
              refused={"normalised": "AveragePool a1: ceil_mode", "arranged": "operator Pad"},
              peculiar=[EVEN, UP, APART]),
    Framework("theano", "theano", unbiased=True, gradients=["forward-backward"],
              refused={"normalised": "AveragePool a3: padding that is uneven", "arranged": "operator Pad"},
              peculiar=[UP, APART]),
    Framework("keras2", "keras2", "tensorflow", unbiased=True, refused=KERAS2),
    Framework("keras2", "keras2", "cntk", refused=KERAS2),
    Framework("keras2", "keras2", "mxnet", inside=True, refused=KERAS2),
    Framework("jax", "jax", options=["channels_first"]),
    Framework("pytorch", "pytorch", unbiased=True, options=["channels_last", "fused"],
              peculiar=[EVEN + ", because torch centres even sizes differently"]),
    Framework("tensorflow-python", "tensorflow", unbiased=True, inside=True,
              options=["eager", "xla"]),
    Framework("keras3", "keras3", "tensorflow", inside=True, refused={"small": "Gemm f1: only x w + b"}),
    Framework("keras3", "keras3", "jax", inside=True, options=["fit"],
              refused={"small": "Gemm f1: only x w + b"}),
    # There Keras takes a batch's variance as the mean of squares less the square of the mean.
    Framework("keras3", "keras3", "torch", inside=True, refused={"small": "Gemm f1: only x w + b"}, rounds=10),
]


def distance(found, expected):
    """||found - expected|| / ||expected|| of two lists; their plain distance where expected is 0."""
    apart = math.sqrt(sum((a - b) ** 2 for a, b in zip(found, expected)))
    return apart / (math.sqrt(sum(b * b for b in expected)) or 1.0)


class Conformance(object):
    """The tests of one framework, which a class derived from this names in `framework`."""

    def setUp(self):
        self.framework.environment.need(self)
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.log = open(os.path.join(self.scratch.name, "stderr"), "w+")
        self.addCleanup(self.log.close)

    def worker(self):
        environment = self.framework.environment
        return Driver([environment.python, WORKER, "--adapter", self.framework.adapter],
                      stderr=self.log, variables=environment.variables)

    def start(self, graph, **recipe):
        """(worker after feed, bundle, replies of hello, open, build)."""
        bundle = Bundle(tempfile.mkdtemp(dir=self.scratch.name), graph,
                        backend=self.framework.backend, **recipe)
        driver = self.worker()
        self.addCleanup(lambda: driver.process.poll() is None and driver.finish())
        return driver, bundle, driver.prepare(bundle)

    def near(self, found, expected, bound, what):
        self.assertEqual(list(found), list(expected), what)
        for name, (_, values) in found.items():
            self.assertEqual(len(values), len(expected[name]), name)
            self.assertLess(distance(values, expected[name]), bound, "%s of %s" % (what, name))

    def gate(self, graph, **recipe):
        """Three steps on three batches, as the parity gate does them."""
        bound, change_bound = 1e-5 * self.framework.rounds, 1e-4 * self.framework.rounds
        driver, bundle, replies = self.start(graph, **recipe)
        reference = Reference(bundle, self.framework.unbiased, self.framework.inside)
        forward = bundle.recipe["stage"] == "forward"
        for batch in range(3):
            driver.run(1, slot=batch)
            reference.step(batch)
            self.near(driver.read("logits"), {"logits": reference.logits}, bound, "logits")
            if not forward:
                self.near(driver.read("loss"), {"loss": reference.loss}, bound, "loss")
                self.near(driver.read("state"), reference.states, bound, "state")
            if bundle.recipe["stage"] in self.framework.gradients and (
                    "forward-backward" in replies[0]["stages"]):
                self.near(driver.read("gradients"), reference.gradients, change_bound, "gradient")
        after = driver.read("weights")
        if bundle.recipe["stage"] == "train":
            self.near(self.change(after, bundle),
                      {name: [a - b for a, b in zip(values, bundle.weights[name])]
                       for name, values in reference.weights.items()}, change_bound, "change")
        else:
            self.assertEqual({name: values for name, (_, values) in after.items()}, bundle.weights)
        self.assertEqual(driver.close(), 0)

    @staticmethod
    def change(after, bundle):
        return {name: (shape, [a - b for a, b in zip(values, bundle.weights[name])])
                for name, (shape, values) in after.items()}

    def test_operators(self):
        for name, graph in GRAPHS.items():
            with self.subTest(graph=name):
                if name in self.framework.refused:
                    self.assertIn(self.framework.refused[name], self.refusal(graph(4)))
                else:
                    self.gate(graph(4), weight_decay=0.01)
        if "normalised" not in self.framework.refused:
            self.gate(normalised(4), stage="forward")
        else:
            self.gate(rescaled(4))

    def test_peculiar_attributes(self):
        """The reason of each, and of nothing else."""
        if self.framework.peculiar is not None:
            self.assertEqual(sorted(self.refusal(peculiar(4)).split("; ")), sorted(self.framework.peculiar))

    def refusal(self, graph, **recipe):
        """Why a graph cannot run, "" when it can."""
        bundle = Bundle(tempfile.mkdtemp(dir=self.scratch.name), graph, backend=self.framework.backend, **recipe)
        driver = self.worker()
        driver.hello(**bundle.target)
        reply = driver.must("supports", bundle=bundle.folder)
        driver.close()
        return "" if reply["supported"] else reply["reason"]

    def test_updates(self):
        graph = self.framework.recurrent(4)
        self.gate(graph, optimiser="sgd", learning_rate=0.1)
        if self.framework.gradients == ["forward-backward"]:
            self.gate(graph, stage="forward-backward")
        self.gate(graph, optimiser="rmsprop", learning_rate=0.001)
        if "tagger" not in self.framework.refused:  # several samples add to the gradient of one row of its table
            self.gate(tagger(4), optimiser="rmsprop", learning_rate=0.001)
        if self.framework.adamw:  # with an epsilon so large that rounding decides no sign
            self.gate(graph, optimiser="adamw", learning_rate=0.001, weight_decay=0.1, epsilon=1e-4)
        else:
            self.assertIn("optimiser adamw", self.refusal(graph, optimiser="adamw"))

    def test_options(self):
        for option in self.framework.options:
            with self.subTest(option=option):
                self.gate(normalised(4), options=[option])

    def test_wrong_momentum(self):
        """The comparison must be able to fail."""
        driver, bundle, _ = self.start(self.framework.recurrent(4), momentum=0.8)
        bundle.recipe["momentum"] = 0.9
        reference = Reference(bundle)
        for batch in range(3):
            driver.run(1, slot=batch)
            reference.step(batch)
        change = self.change(driver.read("weights"), bundle)
        apart = [distance(change[name][1], [a - b for a, b in zip(values, bundle.weights[name])])
                 for name, values in reference.weights.items()]
        self.assertGreater(max(apart), 1e-2)
        driver.close()

    def test_counts(self):
        """docs: lenet has 431,080 parameters and 2,293,000 MACs an image."""
        driver, _, (greeting, opened, built) = self.start(lenet(3), threads=1)
        self.assertEqual((built["parameters"], built["macs"]), (431080, 3 * 2293000))
        self.assertEqual((greeting["name"], opened["device"], opened["threads"], opened["precision"]),
                         (self.framework.name, "cpu", 1, "fp32"))
        driver.run(3, "step")
        self.assertEqual(driver.close(), 0)
        built = self.start(self.framework.recurrent(4))[2][2]
        self.assertEqual(built["macs"], RECURRENT[self.framework.recurrent])

    def test_dropout(self):
        """With dropout on, two steps on one batch differ by more than an update of the rate 1e-9 can
        make; the seed fixes both."""
        losses = []
        for _ in range(2):
            driver = self.start(mlp(8, width=64), dropout=True, learning_rate=1e-9)[0]
            for _ in range(2):
                driver.run(1, slot=0)
                losses.append(driver.read("loss")["loss"][1][0])
            driver.close()
        self.assertGreater(abs(losses[0] - losses[1]), 1e-4)
        self.assertEqual(losses[:2], losses[2:])


MLP_PARAMETERS = 6  # weights and biases of three layers
INSIDE = """
import sys
sys.path.insert(0, %r)
import adapters, case, worker
adapters.target = adapters.Target("cpu", "", [], 0, 1)
adapter = worker.load_adapter(%r).Adapter()
work = case.Case(%r, adapters.target)
adapter.open(work)
adapter.build(work)
adapter.feed(0, *work.batch(0))
adapter.step(0)
print(%s)
"""


class StepTest(unittest.TestCase):
    """What a step consists of, asked of the adapter itself."""

    def ask(self, name, what, **recipe):
        """The words that an expression of `adapter` gives after a step of mlp."""
        environment = Environment(name)
        environment.need(self)
        with tempfile.TemporaryDirectory() as folder:
            bundle = Bundle(folder, mlp(8, width=64), **recipe)
            script = INSIDE % (os.path.dirname(WORKER), name, bundle.folder, what)
            done = subprocess.run([environment.python, "-B", "-W", "ignore", "-c", script], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, universal_newlines=True, timeout=300,
                                  env=environment.variables, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_cntk_copies_no_gradient(self):
        """Nor loss and logits: they are values of CNTK's own until somebody reads them."""
        kinds = self.ask("cntk", "*[type(v).__name__ for v in list(adapter.gradients.values()) + adapter.results]",
                         stage="forward-backward")
        self.assertEqual(len(kinds), MLP_PARAMETERS + 2)
        self.assertNotIn("ndarray", kinds)
        self.assertNotIn("list", kinds)

    def test_theano_updates_in_place(self):
        """Of each weight's gradient, product and update are one Gemm; of the layers' own products there are more."""
        for optimiser in ("sgd", "momentum"):
            nodes = self.ask("theano", "*[n.op for n in adapter.function.maker.fgraph.toposort()]", optimiser=optimiser)
            self.assertGreaterEqual(sum(node.startswith("Gemm{inplace}") for node in nodes), MLP_PARAMETERS // 2, nodes)


for row in FRAMEWORKS:
    label = "".join(word.capitalize() for word in (row.name + "-" + row.backend).split("-")) + "Test"
    globals()[label] = type(label, (Conformance, unittest.TestCase), {"framework": row})


class PytorchOwnTest(PytorchTest):  # noqa: F821  made above
    """What only PyTorch's adapter has."""

    # These are PytorchTest's.
    test_operators = test_peculiar_attributes = test_updates = test_options = None
    test_wrong_momentum = test_counts = test_dropout = None

    def attributes(self, graph, name):
        return next(node for node in graph["nodes"] if node["name"] == name)["attributes"]

    def test_stages_and_layouts(self):
        for graph in (arranged, sequences, tagger):
            self.gate(graph(4), options=["channels_last"])
        self.gate(normalised(4), options=["channels_last"], stage="forward")
        self.gate(small(4), stage="forward-backward")
        self.gate(sequences(4), weight_decay=0.01, options=["fused"])

    def test_compiled(self):
        for words, why in ((["cudagraph"], "option cudagraph needs a GPU"),
                           (["max_autotune"], "option max_autotune needs option compile"),
                           (["compile", "cudagraph"], "option cudagraph needs a GPU")):
            self.assertIn(why, self.refusal(small(4), options=words))
        graph = normalised(4)
        reason = self.refusal(graph, options=["compile"])
        self.assertIn("AveragePool a2: torch.compile", reason)
        self.assertNotIn("a1", reason)
        if not shutil.which("g++"):
            self.skipTest("no g++")
        self.attributes(graph, "a2")["count_include_pad"] = False
        self.gate(graph, options=["compile"])
        self.gate(sequences(4), options=["compile", "max_autotune"])
        settings = self.start(small(4), options=["compile", "max_autotune"])[2][1]["settings"]
        self.assertEqual(settings["compile_mode"], "max-autotune-no-cudagraphs")

    def test_refused_graphs(self):
        graph = sequences(4)
        node = next(node for node in graph["nodes"] if node["op"] == "LSTM")
        node["inputs"][2] = node["inputs"][1]
        next(v for v in graph["values"] if v["name"] == "rnn.bias")["kind"] = "state"
        padded, unknown = normalised(4), small(4)
        self.attributes(padded, "a3")["count_include_pad"] = False
        unknown["nodes"][1]["op"] = "Sine"
        for graph, recipe, words in (
                (graph, {}, ("LSTM lstm: another operator also reads", "RNN rnn: its weights are not")),
                (padded, {}, ("AveragePool a3: padding",)),
                (unknown, {"precision": "tf32"}, ("operator Sine", "precision tf32"))):
            reason = self.refusal(graph, **recipe)
            for word in words:
                self.assertIn(word, reason)

    def test_refused_targets(self):
        for target, word in (({"device": "cuda:99"}, "device cuda:99"),
                             ({"options": ["compile", "magic"]}, "option magic"),
                             ({"backend": "jax"}, "backend jax")):
            driver = self.worker()
            reply = driver.ask("hello", **driver.greeting(**target))
            self.assertEqual((reply["ok"], reply["status"]), (False, "unsupported"))
            self.assertIn(word, reply["error"])
            driver.finish()

    def test_half_squares(self):
        graph = small(4)
        graph["nodes"][-1].update(op="HalfSumOfSquares", inputs=[graph["logits"]])
        self.gate(graph)

    def test_mixed_samples(self):
        """A graph that joins samples is counted on the whole batch."""
        net = Network("mixed", [4, 6])
        net.linear("f1", 8)
        net.unary("Transpose", "turn", [8, 4], perm=[1, 0])
        net.unary("Softmax", "soft", axis=0)
        net.unary("Transpose", "back", [4, 8], perm=[1, 0])
        net.linear("f2", 3)
        graph = net.graph()
        self.gate(graph)
        self.assertEqual(self.start(graph)[2][2]["macs"], 4 * (48 + 24))

    def test_forward_has_no_loss(self):
        driver, _, (greeting, opened, _) = self.start(small(4), stage="forward")
        self.assertIn("onednn", greeting["libraries"])
        self.assertEqual(opened["settings"]["inference_mode"], "True")
        driver.run(1)
        self.assertIn("no loss", driver.ask("read", what="loss")["error"])

    def test_fused_before_it_was(self):
        """torch 1.13's SGD has no such word: a reason, in no stage a TypeError."""
        old = Environment("pytorch@1.13").python
        if not old:
            self.skipTest("not installed: prony framework install pytorch@1.13")
        for options, supported in (([], True), (["fused"], False)):
            bundle = Bundle(tempfile.mkdtemp(dir=self.scratch.name), small(4), options=options)
            driver = Driver([old, WORKER, "--adapter", "pytorch"], stderr=self.log)
            driver.hello(**bundle.target)
            reply = driver.must("supports", bundle=bundle.folder)
            self.assertIs(reply["supported"], supported, reply)
            self.assertTrue(supported or "option fused: SGD of torch 1.13" in reply["reason"], reply)
            driver.close()

    def test_low_precision(self):
        for precision in ("bf16", "fp16"):
            for stage in ("forward", "forward-backward"):
                if self.refusal(small(4), precision=precision, stage=stage):
                    continue
                driver, bundle, _ = self.start(small(4), precision=precision, stage=stage)
                reference = Reference(bundle)
                driver.run(1, slot=0)
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
        driver = self.start(net.graph(), stage="forward", slots=1)[0]
        # What PyTorch loads and maps at its first step must be there already: where that fails it
        # does so in ways of its own.
        driver.run(1, slot=0)
        with open("/proc/%d/statm" % driver.process.pid) as source:
            mapped = int(source.read().split()[0]) * resource.getpagesize()
        resource.prlimit(driver.process.pid, resource.RLIMIT_AS, (mapped + (64 << 20),) * 2)
        self.assertEqual(driver.ask("run", steps=1, sync="end", slot=0)["status"], "out-of-memory")
        self.assertEqual(driver.close(), 0)


if __name__ == "__main__":
    sys.exit(counted.main())
