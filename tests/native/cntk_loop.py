#!/usr/bin/env python3
"""CNTK 2.7: LeNet, trained as in microsoft/CNTK Tutorials/CNTK_103D_MNIST_ConvolutionalNeuralNetwork (layers in a Sequential,
cross_entropy_with_softmax, a Trainer, train_minibatch), with momentum_sgd."""
import os
import sys

import window

sys.setdlopenflags(os.RTLD_LAZY)  # MPI's functions are looked for when they are called
import cntk as C  # noqa: E402
import numpy  # noqa: E402


def main():
    options = window.arguments(__doc__, ["lenet"])
    C.device.try_set_default_device(C.device.cpu())
    C.cntk_py.set_max_num_cputhreads(options.threads)
    x, y = C.input_variable((1, 28, 28)), C.input_variable(10)
    model = C.layers.Sequential([
        C.layers.Convolution2D((5, 5), 20), C.layers.MaxPooling((2, 2), (2, 2)),
        C.layers.Convolution2D((5, 5), 50), C.layers.MaxPooling((2, 2), (2, 2)),
        C.layers.Dense(500, activation=C.relu), C.layers.Dense(10)])(x)
    loss, error = C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)
    learner = C.momentum_sgd(model.parameters, C.learning_parameter_schedule(0.001), C.momentum_schedule(0.9),
                             unit_gain=False)
    trainer = C.Trainer(model, (loss, error), [learner])
    batches = [{x: numpy.random.randn(options.batch, 1, 28, 28).astype("float32"),
                y: numpy.eye(10, dtype="float32")[numpy.random.randint(10, size=options.batch)]}
               for _ in range(window.SLOTS)]

    def train(slot):
        trainer.train_minibatch(batches[slot])

    def forward(slot):
        model.eval({x: batches[slot][x]})

    window.run(train if options.stage == "train" else forward, options, C.__version__)


if __name__ == "__main__":
    main()
