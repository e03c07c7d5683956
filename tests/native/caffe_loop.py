#!/usr/bin/env python3
"""Caffe: LeNet, trained as in BVLC/caffe examples/01-learning-lenet.ipynb (a NetSpec, an SGD solver of its prototxt, solver.step), a batch
copied into Input layers in place of its database."""
import os
import tempfile

os.environ.setdefault("GLOG_minloglevel", "2")  # its log of every layer

import caffe  # noqa: E402
import numpy  # noqa: E402
from caffe import layers as L  # noqa: E402
from caffe import params as P  # noqa: E402

import window  # noqa: E402

SOLVER = """net: "%s"
base_lr: 0.001
momentum: 0.9
lr_policy: "fixed"
display: 0
snapshot_after_train: false
max_iter: 1000000000
solver_mode: CPU
"""


def lenet(batch, train):
    n = caffe.NetSpec()
    n.data = L.Input(shape={"dim": [batch, 1, 28, 28]})
    if train:
        n.label = L.Input(shape={"dim": [batch]})
    fill = {"weight_filler": {"type": "xavier"}}
    n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=20, **fill)
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.conv2 = L.Convolution(n.pool1, kernel_size=5, num_output=50, **fill)
    n.pool2 = L.Pooling(n.conv2, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.fc1 = L.InnerProduct(n.pool2, num_output=500, **fill)
    n.relu1 = L.ReLU(n.fc1, in_place=True)
    n.score = L.InnerProduct(n.relu1, num_output=10, **fill)
    if train:
        n.loss = L.SoftmaxWithLoss(n.score, n.label)
    return str(n.to_proto())


def main():
    options = window.arguments(__doc__, ["lenet"])
    caffe.set_mode_cpu()
    train = options.stage == "train"
    with tempfile.TemporaryDirectory() as folder:
        path, solver_path = os.path.join(folder, "net.prototxt"), os.path.join(folder, "solver.prototxt")
        for name, text in ((path, lenet(options.batch, train)), (solver_path, SOLVER % path)):
            with open(name, "w") as out:
                out.write(text)
        solver = caffe.get_solver(solver_path) if train else None
        net = solver.net if train else caffe.Net(path, caffe.TEST)
    batches = [(numpy.random.randn(options.batch, 1, 28, 28).astype("float32"),
                numpy.random.randint(10, size=options.batch)) for _ in range(window.SLOTS)]

    def train_step(slot):
        net.blobs["data"].data[...], net.blobs["label"].data[...] = batches[slot]
        solver.step(1)

    def forward_step(slot):
        net.blobs["data"].data[...] = batches[slot][0]
        net.forward()

    window.run(train_step if train else forward_step, options, getattr(caffe, "__version__", "1.0"))


if __name__ == "__main__":
    main()
