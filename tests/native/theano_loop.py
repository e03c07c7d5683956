#!/usr/bin/env python3
"""Theano: LeNet, trained as in the Deep Learning Tutorials (lisa-lab/DeepLearningTutorials, code/convolutional_mlp.py: conv2d, pool_2d
with ignore_border, T.grad, one function with updates); momentum as lasagne.updates.momentum writes it."""
import os

import window

options = window.arguments(__doc__, ["lenet"])
os.environ.setdefault("THEANO_FLAGS", "floatX=float32,openmp=%s" % (options.threads > 1))

import numpy  # noqa: E402
import theano  # noqa: E402
import theano.tensor as T  # noqa: E402
from theano.tensor.nnet import conv2d  # noqa: E402
from theano.tensor.signal.pool import pool_2d  # noqa: E402


def shared(*shape):
    return theano.shared((0.05 * numpy.random.randn(*shape)).astype("float32"), borrow=True)


def convolve_and_pool(x, w, b, images, filters):
    made = conv2d(x, w, input_shape=images, filter_shape=filters)
    return pool_2d(made, (2, 2), ignore_border=True) + b.dimshuffle("x", 0, "x", "x")


def main():
    shapes = [(20, 1, 5, 5), (20,), (50, 20, 5, 5), (50,), (800, 500), (500,), (500, 10), (10,)]
    params = [shared(*shape) for shape in shapes]
    w1, b1, w2, b2, w3, b3, w4, b4 = params
    x, y, n = T.tensor4("x"), T.ivector("y"), options.batch
    hidden = convolve_and_pool(x, w1, b1, (n, 1, 28, 28), shapes[0])
    hidden = convolve_and_pool(hidden, w2, b2, (n, 20, 12, 12), shapes[2])
    logits = T.dot(T.nnet.relu(T.dot(hidden.flatten(2), w3) + b3), w4) + b4
    cost = -T.mean(T.log(T.nnet.softmax(logits))[T.arange(n), y])
    updates = []
    for param, grad in zip(params, T.grad(cost, params)):
        velocity = theano.shared(numpy.zeros_like(param.get_value(borrow=True)))
        moved = numpy.float32(0.9) * velocity - numpy.float32(0.001) * grad
        updates += [(velocity, moved), (param, param + moved)]
    if options.stage == "train":
        function = theano.function([x, y], cost, updates=updates)
    else:
        function = theano.function([x], logits)
    batches = [(numpy.random.randn(n, 1, 28, 28).astype("float32"),
                numpy.random.randint(10, size=n).astype("int32")) for _ in range(window.SLOTS)]

    def train(slot):
        function(*batches[slot])

    def forward(slot):
        function(batches[slot][0])

    window.run(train if options.stage == "train" else forward, options, theano.__version__)


if __name__ == "__main__":
    main()
