#!/usr/bin/env python3
"""Caffe2: LeNet, trained as in caffe2/tutorials MNIST.ipynb (brew on a ModelHelper, SoftmaxWithLoss, AddGradientOperators, build_sgd,
workspace.RunNet), a batch fed in place of its database."""
import numpy
from caffe2.python import brew, model_helper, optimizer, workspace

import window


def add_lenet_model(model):
    conv1 = brew.conv(model, "data", "conv1", dim_in=1, dim_out=20, kernel=5)
    pool1 = brew.max_pool(model, conv1, "pool1", kernel=2, stride=2)
    conv2 = brew.conv(model, pool1, "conv2", dim_in=20, dim_out=50, kernel=5)
    pool2 = brew.max_pool(model, conv2, "pool2", kernel=2, stride=2)
    fc3 = brew.relu(model, brew.fc(model, pool2, "fc3", dim_in=50 * 4 * 4, dim_out=500), "fc3")
    return brew.fc(model, fc3, "pred", 500, 10)


def main():
    options = window.arguments(__doc__, ["lenet"])
    workspace.GlobalInit(["caffe2", "--caffe2_omp_num_threads=%d" % options.threads])
    train = options.stage == "train"
    model = model_helper.ModelHelper("lenet", arg_scope={"order": "NCHW"})
    pred = add_lenet_model(model)
    if train:
        _, loss = model.net.SoftmaxWithLoss([pred, "label"], ["softmax", "loss"])
        model.AddGradientOperators([loss])
        optimizer.build_sgd(model, base_learning_rate=0.001, policy="fixed", momentum=0.9, nesterov=0)
    batches = [(numpy.random.randn(options.batch, 1, 28, 28).astype("float32"),
                numpy.random.randint(10, size=options.batch).astype("int32")) for _ in range(window.SLOTS)]

    def step(slot):
        data, label = batches[slot]
        workspace.FeedBlob("data", data)
        if train:
            workspace.FeedBlob("label", label)
        workspace.RunNet(model.net.Proto().name)

    workspace.FeedBlob("data", batches[0][0])
    workspace.FeedBlob("label", batches[0][1])
    workspace.RunNetOnce(model.param_init_net)
    workspace.CreateNet(model.net)
    window.run(step, options, "1.8.1")


if __name__ == "__main__":
    main()
