#!/usr/bin/env python3
"""Our networks against the same in MXNet: response normalisation, those for CIFAR-10, lenet.

    PRONY_ORACLE=BUILD/tests/oracle mxnet_oracle.py [--batch N] [NETWORK...]

As torchvision_oracle.py; nobody has published these as models of MXNet, so they are written below,
from their sources and apart from ours. In float64, where MXNet can: its LRN is float32 only. Exit
status 1 when a figure is out of bounds.

Needs mxnet, and with that NumPy before 1.24; docs/networks.md names the version whose figures it
shows.
"""
import argparse
import sys

import mxnet
import numpy
from mxnet import autograd
from mxnet.gluon import nn
from mxnet.gluon.contrib.nn import HybridConcurrent

import common

BOUNDS = {
    # MXNet keeps the momentum of running statistics as a float.
    "float64": {"evaluation": 1e-12, "logits": 1e-11, "loss": 1e-11, "gradient": 1e-10,
                "state": 1e-6},
    # A few of the comparisons of ReLU and pooling go the other way, and gradients jump.
    "float32": {"evaluation": 1e-5, "logits": 1e-5, "loss": 1e-5, "gradient": 2e-2, "state": 1e-5},
}
# Szegedy 2014, table 1: 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool.
INCEPTION = {"3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
             "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64),
             "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
             "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128),
             "5b": (384, 192, 384, 48, 128, 128)}


def lrn(size, alpha, beta, bias):
    return nn.HybridLambda(lambda F, x: F.LRN(x, nsize=size, alpha=alpha, beta=beta, knorm=bias))


def conv(channels, kernel, stride=1, pad=0, groups=1):
    return nn.Conv2D(channels, kernel, stride, pad, groups=groups, activation="relu")


def conv_bn(channels, kernel, stride=1, pad=0, bias=True, relu=True):
    return [nn.Conv2D(channels, kernel, stride, pad, use_bias=bias),
            nn.BatchNorm(epsilon=1e-5, momentum=0.9)] + ([nn.Activation("relu")] if relu else [])


def half(ceil_mode=False):
    return nn.MaxPool2D(3, 2, ceil_mode=ceil_mode)


def chain(*blocks):
    net = nn.HybridSequential()
    net.add(*blocks)
    return net


def lenet():
    return chain(nn.Conv2D(20, 5), nn.MaxPool2D(2, 2), nn.Conv2D(50, 5), nn.MaxPool2D(2, 2),
                 nn.Flatten(), nn.Dense(500, activation="relu"), nn.Dense(10))


def alexnet_lrn():
    """Caffe's bvlc_alexnet."""
    norm = (5, 1e-4, 0.75, 1)
    return chain(conv(96, 11, 4), lrn(*norm), half(), conv(256, 5, 1, 2, 2), lrn(*norm), half(),
                 conv(384, 3, 1, 1), conv(384, 3, 1, 1, 2), conv(256, 3, 1, 1, 2), half(),
                 nn.Flatten(), nn.Dense(4096, activation="relu"),
                 nn.Dense(4096, activation="relu"), nn.Dense(1000))


def alexnet_tf():
    """TensorFlow's benchmark: tf.nn.lrn(x, depth_radius=5, alpha=1e-4, beta=0.75, bias=2)."""
    norm = (11, 11e-4, 0.75, 2)
    same = nn.HybridLambda(lambda F, x: F.pad(x, mode="constant", constant_value=0,
                                              pad_width=(0, 0, 0, 0, 3, 4, 3, 4)))
    return chain(same, conv(64, 11, 4), lrn(*norm), half(), conv(192, 5, 1, 2), lrn(*norm), half(),
                 conv(384, 3, 1, 1), conv(256, 3, 1, 1), conv(256, 3, 1, 1), half(), nn.Flatten())


def alexnet_cifar():
    """TensorFlow's tutorial: tf.nn.lrn(x, 4, bias=1, alpha=0.001/9, beta=0.75)."""
    norm = (9, 0.001, 0.75, 1)
    return chain(conv(64, 5, 1, 2), half(True), lrn(*norm), conv(64, 5, 1, 2), lrn(*norm),
                 half(True), nn.Flatten(), nn.Dense(384, activation="relu"),
                 nn.Dense(192, activation="relu"), nn.Dense(10))


def branches(*blocks):
    net = HybridConcurrent(axis=1)
    net.add(*blocks)
    return net


def googlenet_lrn():
    """Caffe's bvlc_googlenet, without its auxiliary heads."""
    net = chain(conv(64, 7, 2, 3), half(True), lrn(5, 1e-4, 0.75, 1), conv(64, 1),
                conv(192, 3, 1, 1), lrn(5, 1e-4, 0.75, 1), half(True))
    for name, (one, reduce3, three, reduce5, five, pool) in INCEPTION.items():
        net.add(branches(conv(one, 1), chain(conv(reduce3, 1), conv(three, 3, 1, 1)),
                         chain(conv(reduce5, 1), conv(five, 5, 1, 2)),
                         chain(nn.MaxPool2D(3, 1, 1), conv(pool, 1))))
        if name in ("3b", "4e"):
            net.add(half(True))
    net.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(1000))
    return net


def googlenet_cifar():
    net = chain(*conv_bn(192, 3, 1, 1))
    for name, (one, reduce3, three, reduce5, five, pool) in INCEPTION.items():
        net.add(branches(chain(*conv_bn(one, 1)),
                         chain(*conv_bn(reduce3, 1), *conv_bn(three, 3, 1, 1)),
                         chain(*conv_bn(reduce5, 1), *conv_bn(five, 3, 1, 1),
                               *conv_bn(five, 3, 1, 1)),
                         chain(nn.MaxPool2D(3, 1, 1), *conv_bn(pool, 1))))
        if name in ("3b", "4e"):
            net.add(nn.MaxPool2D(3, 2, 1))
    net.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(10))
    return net


def vgg16_cifar():
    net = nn.HybridSequential()
    for repeats, channels in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(repeats):
            net.add(*conv_bn(channels, 3, 1, 1))
        net.add(nn.MaxPool2D(2, 2))
    net.add(nn.Flatten(), nn.Dense(512, activation="relu"), nn.Dense(10))
    return net


class Residual(nn.HybridBlock):
    """Two 3x3 convolutions; a projection where the shape changes."""

    def __init__(self, channels, stride):
        super().__init__()
        self.body = chain(*conv_bn(channels, 3, stride, 1, False),
                          *conv_bn(channels, 3, 1, 1, False, False))
        self.shortcut = chain(*conv_bn(channels, 1, stride, 0, False, False)) if stride > 1 else None

    def hybrid_forward(self, F, x):
        return F.relu(self.body(x) + (self.shortcut(x) if self.shortcut else x))


def resnet50_cifar():
    net = chain(*conv_bn(16, 3, 1, 1, False))
    for stage in range(3):
        for block in range(8):
            net.add(Residual(16 << stage, 2 if stage > 0 and block == 0 else 1))
    net.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(10))
    return net


# Definition, shape of a sample, float type.
MODELS = {
    "lenet": (lenet, (1, 28, 28), "float64"),
    "alexnet-lrn": (alexnet_lrn, (3, 227, 227), "float32"),
    "alexnet-tf": (alexnet_tf, (3, 224, 224), "float32"),
    "googlenet-lrn": (googlenet_lrn, (3, 224, 224), "float32"),
    "alexnet-cifar": (alexnet_cifar, (3, 32, 32), "float32"),
    "resnet50-cifar": (resnet50_cifar, (3, 32, 32), "float64"),
    "googlenet-cifar": (googlenet_cifar, (3, 32, 32), "float64"),
    "vgg16-cifar": (vgg16_cifar, (3, 32, 32), "float64"),
}


def fill(parameters, random):
    """He-normal weights; nothing else stays zero or one. What float32 holds, which is what we read."""
    for parameter in parameters:
        shape = parameter.shape
        if parameter.name.endswith("weight"):
            values = random.normal(0, numpy.sqrt(2 / numpy.prod(shape[1:])), shape)
        elif parameter.name.endswith(("gamma", "running_var")):
            values = random.uniform(0.5, 1.5, shape)
        else:
            values = random.normal(0, 0.1, shape)
        parameter.set_data(mxnet.nd.array(values.astype(numpy.float32), dtype=parameter.dtype))


def objective(network, logits, labels):
    if network == "alexnet-tf":
        return (logits * logits).sum() / 2
    return -mxnet.nd.pick(mxnet.nd.log_softmax(logits), labels).mean()


def cancelled(parameters):
    """Biases of convolutions that a batch normalisation takes away: their gradients are rounding."""
    names = [parameter.name for parameter in parameters]
    return {name for name, behind in zip(names, names[1:])
            if name.endswith("bias") and behind.endswith("gamma")}


def run_theirs(network, net, parameters, names, batch, labels):
    found = {"evaluation": net(batch).asnumpy()}
    with autograd.record():
        logits = net(batch)
        loss = objective(network, logits, labels)
    loss.backward()
    found["logits"], found["loss"] = logits.asnumpy(), loss.asnumpy().reshape(())
    quiet = cancelled(parameters)
    for parameter in parameters:
        if parameter.grad_req == "null":
            found["state/" + names[parameter.name]] = parameter.data().asnumpy()
        elif parameter.name not in quiet:
            found["gradient/" + names[parameter.name]] = parameter.grad().asnumpy()
    return found, {"gradient/" + names[name] for name in quiet}


def check(network, batch_size):
    """True when our network does what MXNet's does."""
    define, shape, precision = MODELS[network]
    random = numpy.random.RandomState(7)
    oracle = common.Oracle(network, batch_size)
    net = define()
    net.initialize()
    net.cast(precision)
    batch = mxnet.nd.array(random.normal(size=(batch_size,) + shape).astype(numpy.float32),
                           dtype=precision)
    net(batch)  # shapes are known from here on
    parameters = list(net.collect_params().values())
    fill(parameters, random)
    if len(parameters) != len(oracle.weights):
        raise SystemExit(f"MXNet has {len(parameters)} tensors, we have {len(oracle.weights)}")
    names = {}
    for row, parameter in zip(oracle.weights, parameters):
        if tuple(row["shape"]) != parameter.shape:
            raise SystemExit(f"{row['name']} is {row['shape']}, {parameter.name} {parameter.shape}")
        names[parameter.name] = row["name"]
    classes = net(batch).shape[1]
    labels = random.randint(0, classes, batch_size)
    ours = oracle.run({names[p.name]: p.data().asnumpy() for p in parameters}, batch.asnumpy(),
                      labels)
    theirs, quiet = run_theirs(network, net, parameters, names, batch,
                               mxnet.nd.array(labels, dtype=precision))
    for name in quiet:
        if numpy.abs(ours.pop(name)).max() > 1e-12:
            raise SystemExit(f"{name} should be zero but for rounding")
    return common.report(network, shape[1], "MXNet", precision, common.compare(ours, theirs),
                         BOUNDS[precision])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", default=list(MODELS))
    parser.add_argument("--batch", type=int, default=4)
    options = parser.parse_args()
    unknown = set(options.networks) - set(MODELS)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))} here, but {', '.join(MODELS)}")
    print(f"mxnet {mxnet.__version__}")
    good = [check(network, options.batch) for network in options.networks]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
