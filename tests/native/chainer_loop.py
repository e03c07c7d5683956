#!/usr/bin/env python3
"""Chainer: LeNet, trained as in chainer/chainer examples/mnist/train_mnist_custom_loop.py: links in a Chain, softmax_cross_entropy,
cleargrads, backward, optimizer.update."""
import warnings

warnings.filterwarnings("ignore")  # of its own use of numpy

import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import chainer.links as L  # noqa: E402
import numpy  # noqa: E402

import window  # noqa: E402


class LeNet(chainer.Chain):
    def __init__(self):
        super(LeNet, self).__init__()
        with self.init_scope():
            self.conv1, self.conv2 = L.Convolution2D(1, 20, 5), L.Convolution2D(20, 50, 5)
            self.fc1, self.fc2 = L.Linear(800, 500), L.Linear(500, 10)

    def forward(self, x):
        x = F.max_pooling_2d(self.conv1(x), 2)
        x = F.max_pooling_2d(self.conv2(x), 2)
        return self.fc2(F.relu(self.fc1(x)))


def main():
    options = window.arguments(__doc__, ["lenet"])
    model = LeNet()
    optimizer = chainer.optimizers.MomentumSGD(0.001, 0.9)
    optimizer.setup(model)
    batches = [(numpy.random.randn(options.batch, 1, 28, 28).astype("float32"),
                numpy.random.randint(10, size=options.batch).astype("int32")) for _ in range(window.SLOTS)]

    def train(slot):
        images, labels = batches[slot]
        loss = F.softmax_cross_entropy(model(images), labels)
        model.cleargrads()
        loss.backward()
        optimizer.update()

    def forward(slot):
        model(batches[slot][0])

    training = options.stage == "train"
    with chainer.using_config("train", training), chainer.using_config("enable_backprop", training):
        window.run(train if training else forward, options, chainer.__version__)


if __name__ == "__main__":
    main()
