#!/usr/bin/env python3
"""Keras 3 on the backend that $KERAS_BACKEND names: LeNet as in keras.io's examples/vision/mnist_convnet (a Sequential model, compile),
VGG-16 as keras.applications.VGG16; each step is train_on_batch or predict_on_batch."""
import os

import window

options = window.arguments(__doc__, ["lenet", "vgg16"])
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["NPROC"] = str(options.threads)  # JAX's pool

import keras  # noqa: E402
from keras import layers  # noqa: E402


def lenet():
    return keras.Sequential([
        keras.Input((28, 28, 1)), layers.Conv2D(20, 5), layers.MaxPooling2D(), layers.Conv2D(50, 5),
        layers.MaxPooling2D(), layers.Flatten(), layers.Dense(500, activation="relu"),
        layers.Dense(10)])


def main():
    if keras.backend.backend() == "tensorflow":
        import tensorflow
        tensorflow.config.threading.set_intra_op_parallelism_threads(options.threads)
        tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(1)
    model = lenet() if options.network == "lenet" else keras.applications.VGG16(
        weights=None, classifier_activation=None)
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    channels, rows, columns, classes = window.image_shape(options.network)
    place = keras.ops.convert_to_tensor
    batches = [(place(keras.random.normal((options.batch, rows, columns, channels))),
                place(keras.random.randint((options.batch,), 0, classes)))
               for _ in range(window.SLOTS)]

    def train(slot):
        model.train_on_batch(*batches[slot])

    def forward(slot):
        model.predict_on_batch(batches[slot][0])

    window.run(train if options.stage == "train" else forward, options, keras.__version__)


if __name__ == "__main__":
    main()
