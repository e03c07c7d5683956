#!/usr/bin/env python3
"""MXNet 1.9: trained as in apache/mxnet example/gluon (mnist/mnist.py and image_classification.py, mode hybrid): a HybridSequential
block, hybridized with static_alloc and static_shape, autograd.record, Trainer.step. ResNet-50 is gluon.model_zoo.vision's
BottleneckV1 in version 1.5: stride in the 3x3 convolution, no bias."""
import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

import window


def lenet():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(20, 5), nn.MaxPool2D(), nn.Conv2D(50, 5), nn.MaxPool2D(), nn.Flatten(),
            nn.Dense(500, activation="relu"), nn.Dense(10))
    return net


def convolution(net, channels, size, stride=1, relu=True):
    net.add(nn.Conv2D(channels, size, stride, size // 2, use_bias=False), nn.BatchNorm())
    if relu:
        net.add(nn.Activation("relu"))


class Bottleneck(gluon.HybridBlock):
    def __init__(self, width, stride, project):
        super(Bottleneck, self).__init__()
        self.body = nn.HybridSequential(prefix="")
        convolution(self.body, width, 1)
        convolution(self.body, width, 3, stride)
        convolution(self.body, 4 * width, 1, relu=False)
        self.downsample = None
        if project:
            self.downsample = nn.HybridSequential(prefix="")
            convolution(self.downsample, 4 * width, 1, stride, relu=False)

    def hybrid_forward(self, F, x):
        residual = x if self.downsample is None else self.downsample(x)
        return F.Activation(self.body(x) + residual, act_type="relu")


def resnet50():
    net = nn.HybridSequential(prefix="")
    convolution(net, 64, 7, 2)
    net.add(nn.MaxPool2D(3, 2, 1))
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            net.add(Bottleneck(width, stride if i == 0 else 1, i == 0))
    net.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(1000))
    return net


def main():
    options = window.arguments(__doc__, ["lenet", "resnet50"])
    channels, rows, columns, classes = window.image_shape(options.network)
    net = lenet() if options.network == "lenet" else resnet50()
    net.initialize(mx.init.Xavier(magnitude=2.24))
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001, "momentum": 0.9})
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    batches = [(nd.random.normal(shape=(options.batch, channels, rows, columns)),
                nd.random.randint(0, classes, (options.batch,)).astype("float32"))
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
