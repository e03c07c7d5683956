#!/usr/bin/env python3
"""What Keras 2 does wrong by itself and its worker mends, a backend at a time, through the protocol against plain
float64: its LSTM on CNTK (which gave the cell's state) and on MXNet (one gate's bias for all, weights at random), its
updates on TensorFlow (which raced the gradients), its loop over epochs on Theano (which compiled in front of the
first) and the least epsilon of a normalisation there (which float32 rounds below what Theano takes). One that is not installed is skipped, with its reason.
"""
import os
import sys
import unittest

import counted
from test_python_frameworks import Conformance, Framework, distance, memory
from worker_driver import Network, mlp


def deep(batch):
    """Two convolutions: what is read of the second's weights takes longer than their own gradient."""
    net = Network("deep", [batch, 2, 10, 10])
    net.conv("c1", 8, 3)
    net.pool("p1", 2, 2)
    net.conv("c2", 8, 3)
    net.flatten("flat")
    net.linear("f1", 16)
    net.relu("r1")
    net.linear("f2", 5)
    return net.graph()


def rescaled_twice(batch):
    """Two batch normalisations, the second after the first one's weights, with epsilons and momenta that are no
    defaults, and a response normalisation with a large effect."""
    net = Network("rescaled-twice", [batch, 2, 6, 6])
    net.conv("c1", 4, 3, bias=False)
    net.batch_norm("c1.bn", 1e-5, 0.8)
    net.relu("r1")
    net.unary("LRN", "n1", alpha=0.5, beta=0.7, bias=1.5, size=3)
    net.conv("c2", 3, 3, bias=False)
    net.batch_norm("c2.bn", 1e-4, 0.7)
    net.relu("r2")
    net.flatten("flat")
    net.linear("f1", 5)
    return net.graph()


def processor_s(process):
    """Processor time that a process and those it waited for have taken, in seconds: what else the machine does
    adds nothing to it."""
    with open("/proc/%d/stat" % process.pid) as source:
        ticks = source.read().rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def slow_behind(batch):
    """A normalisation of the input, whose backward pass is the last of many milliseconds."""
    net = Network("slow-behind", [batch, 16, 16, 16])
    net.batch_norm("b1", 1e-5, 0.9)
    for i in range(2):
        net.conv("c%d" % i, 64, 3, (1, 1, 1, 1))
    net.flatten("flat")
    net.linear("f1", 5)
    return net.graph()


class Keras2(Conformance):
    """The tests of a backend. taken: seconds of processor until the first step or epoch was asked for, and in it."""

    def train(self, graph, **recipe):
        self.gate(graph, threads=1, **recipe)

    def start(self, graph, **recipe):
        driver, bundle, replies = Conformance.start(self, graph, **recipe)
        run, self.taken = driver.run, None

        def noted(*arguments, **members):
            before = processor_s(driver.process)
            records = run(*arguments, **members)
            self.taken = self.taken or (before, processor_s(driver.process) - before)
            return records
        driver.run = noted
        return driver, bundle, replies


def only(**tests):
    """Of the tests of Conformance none but these."""
    members = {name: None for name in dir(Conformance) if name.startswith("test_")}
    members.update(tests)
    return members


def backend(name, unbiased=False, **tests):
    return type("Keras2" + name.capitalize() + "Test", (Keras2, unittest.TestCase),
                dict(only(**tests), framework=Framework("keras2", "keras2", name, unbiased=unbiased)))


def lstm(self):
    """Its last hidden state, and the gradient of every weight."""
    self.train(memory(4), learning_rate=0.1)


def rmsprop(self):
    self.train(deep(4), optimiser="rmsprop", learning_rate=0.001)


def momentum(self):
    self.train(deep(4), learning_rate=0.1)


def epochs(self):
    """Three epochs of fit. Theano compiles for seconds: the first epoch, of four samples, does not."""
    self.train(mlp(4, width=16), options=["fit"], learning_rate=0.1)
    before, first = self.taken
    self.assertLess(first, before / 10)


def normalisation(self):
    """Logits, running statistics of every step, and the change of every weight."""
    self.train(rescaled_twice(4), learning_rate=0.1)


def finished(self):
    """When a run has ended, so has the backward pass of its last step: the running mean has seen each batch."""
    driver, bundle, _ = self.start(slow_behind(8), learning_rate=1e-6, threads=1)
    expected, plane = bundle.states["b1.mean"], 16 * 16
    for slot, batch in enumerate(bundle.batches):
        driver.run(1, slot=slot)
        for channel in range(16):
            values = [sum(batch["x"][i * plane:(i + 1) * plane]) for i in range(channel, 8 * 16, 16)]
            expected[channel] = 0.9 * expected[channel] + 0.1 * sum(values) / (8 * plane)
    found = driver.read("state")["b1.mean"][1]
    self.assertLess(distance(found, expected), 1e-5)
    self.assertEqual(driver.close(), 0)


Keras2TensorflowTest = backend("tensorflow", unbiased=True, test_rmsprop=rmsprop, test_momentum=momentum,
                               test_normalisation=normalisation)
Keras2CntkTest = backend("cntk", test_lstm=lstm, test_normalisation=normalisation)
Keras2MxnetTest = backend("mxnet", test_lstm=lstm, test_finished=finished,
                         test_normalisation=normalisation)
Keras2TheanoTest = backend("theano", unbiased=True, test_epochs=epochs, test_normalisation=normalisation)

if __name__ == "__main__":
    sys.exit(counted.main())
