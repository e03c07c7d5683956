#!/usr/bin/env python3
"""Where the gradient of a max-pool goes whose maxima are equal: each framework is asked itself, by code
that knows nothing of prony, and its worker has to say the same in its settings. One that is not installed
is skipped, with its reason.
"""
import os
import subprocess
import sys
import tempfile
import unittest

import counted
from python_environments import Environment
from worker_driver import Bundle, Driver, Network

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(os.path.dirname(os.path.dirname(HERE)), "python", "worker.py")

# Each prints the gradient of the sum of a 2 x 2 max-pool of four ones.
THEANO = """
import numpy, theano
from theano.tensor.signal.pool import pool_2d
x = theano.shared(numpy.ones((1, 1, 2, 2), "float32"))
print(*theano.grad(pool_2d(x, (2, 2), ignore_border=True).sum(), x).eval().ravel())
"""
CAFFE2 = """
import numpy
from caffe2.python import core, workspace
net = core.Net("pool")
gradients = net.AddGradientOperators([net.MaxPool("x", "y", kernel=2, stride=2)])
workspace.FeedBlob("x", numpy.ones((1, 1, 2, 2), "float32"))
workspace.RunNetOnce(net)
print(*workspace.FetchBlob(str(gradients["x"])).ravel())
"""
TENSORFLOW = """
import numpy, tensorflow as tf
x = tf.constant(numpy.ones((1, 2, 2, 1), "float32"))
y = tf.nn.max_pool(x, 2, 2, "VALID")
print(*tf.compat.v1.Session().run(tf.gradients(y, x)[0]).ravel())
"""
SCRIPTS = {
    Environment("theano"): THEANO,
    Environment("caffe2"): CAFFE2,
    Environment("keras2", "theano"): THEANO,
    Environment("keras2", "tensorflow"): TENSORFLOW,
}
WORDS = {(1, 1, 1, 1): "each", (1, 0, 0, 0): "first"}


def pooled():
    net = Network("pooled", [2, 1, 4, 4])
    net.conv("c1", 1, 1)
    net.pool("p1", 2, 2)
    net.flatten("flat")
    net.linear("f1", 3)
    return net.graph()


class EqualMaximaTest(unittest.TestCase):
    def setting(self, environment, folder, stage):
        """What a worker's settings say."""
        bundle = Bundle(tempfile.mkdtemp(dir=folder), pooled(), backend=environment.backend, stage=stage)
        with open(os.path.join(folder, "log"), "w") as log:
            driver = Driver([environment.python, WORKER, "--adapter", environment.name], stderr=log,
                            stdout=log, variables=environment.variables)
            driver.hello(**bundle.target)
            opened = driver.must("open", bundle=bundle.folder)
            self.assertEqual(driver.close(), 0)
        return opened["settings"].get("equal_maxima")

    def check(self, environment, script):
        environment.need(self)
        done = subprocess.run([environment.python, "-W", "ignore", "-c", script], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300,
                              env=environment.variables, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = tuple(float(number) for number in done.stdout.split()[-4:])
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.setting(environment, folder, "train"), WORDS[found])
            if environment.name == "caffe2":  # no other starts as quickly
                self.assertIsNone(self.setting(environment, folder, "forward"))


for row, text in SCRIPTS.items():
    setattr(EqualMaximaTest, "test_" + row.label.replace(":", "_"),
            lambda self, row=row, text=text: self.check(row, text))


if __name__ == "__main__":
    sys.exit(counted.main())
