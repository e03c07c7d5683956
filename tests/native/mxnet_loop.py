#!/usr/bin/env python3
"""MXNet 1.9: LeNet trained as in apache/mxnet example/gluon/mnist/mnist.py (a HybridSequential block, autograd.record, Trainer.step),
hybridized."""
import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

import window


def main():
    options = window.arguments(__doc__, ["lenet"])
    net = nn.HybridSequential()
    net.add(nn.Conv2D(20, 5), nn.MaxPool2D(), nn.Conv2D(50, 5), nn.MaxPool2D(), nn.Flatten(),
            nn.Dense(500, activation="relu"), nn.Dense(10))
    net.initialize(mx.init.Xavier(magnitude=2.24))
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001, "momentum": 0.9})
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    batches = [(nd.random.normal(shape=(options.batch, 1, 28, 28)),
                nd.random.randint(0, 10, (options.batch,)).astype("float32"))
               for _ in range(window.SLOTS)]

    def train(slot):
        data, label = batches[slot]
        with autograd.record():
            loss = loss_function(net(data), label)
            loss.backward()
        trainer.step(options.batch)

    def forward(slot):
        net(batches[slot][0])

    window.run(train if options.stage == "train" else forward, options, mx.__version__, nd.waitall)


if __name__ == "__main__":
    main()
