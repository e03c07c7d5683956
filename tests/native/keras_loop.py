#!/usr/bin/env python3
"""Keras 3 on the backend that $KERAS_BACKEND names: LeNet as in keras.io's examples/vision/mnist_convnet (a Sequential model, compile),
VGG-16 as keras.applications.VGG16; each step is train_on_batch or predict_on_batch."""
import os

import window

options = window.arguments(__doc__, ["lenet", "resnet50", "vgg16", "gpt2-bytes"])
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["NPROC"] = str(options.threads)  # JAX's pool

import keras  # noqa: E402
from keras_networks import NETWORKS, batches as make_batches  # noqa: E402


def limit_threads():
    """What the machine's number of cores would do by itself, if it were the cell's."""
    if keras.backend.backend() == "torch":
        import torch
        torch.set_num_threads(options.threads)


def main():
    limit_threads()
    keras.utils.set_random_seed(1)
    model = NETWORKS[options.network]()
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    place = keras.ops.convert_to_tensor
    batches = make_batches(options, lambda shape: place(keras.random.normal(shape)),
                           lambda shape, limit: place(keras.random.randint(shape, 0, limit)))

    def train(slot):
        model.train_on_batch(*batches[slot])

    def forward(slot):
        model.predict_on_batch(batches[slot][0])

    window.run(train if options.stage == "train" else forward, options, keras.__version__)


if __name__ == "__main__":
    main()
