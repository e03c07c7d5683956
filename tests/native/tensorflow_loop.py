#!/usr/bin/env python3
"""TensorFlow 2: LeNet trained as in tensorflow.org's "TensorFlow 2 quickstart for experts" (a model of Keras' layers, a GradientTape and
apply_gradients inside one tf.function)."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402

import window  # noqa: E402


def main():
    options = window.arguments(__doc__, ["lenet"], xla="tf.function with jit_compile")
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        tf.keras.Input((28, 28, 1)), layers.Conv2D(20, 5), layers.MaxPooling2D(), layers.Conv2D(50, 5),
        layers.MaxPooling2D(), layers.Flatten(), layers.Dense(500, activation="relu"),
        layers.Dense(10)])
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.SGD(0.001, momentum=0.9)
    batches = [(tf.random.normal((options.batch, 28, 28, 1)),
                tf.random.uniform((options.batch,), 0, 10, tf.int32)) for _ in range(window.SLOTS)]
    last = [None]

    @tf.function(jit_compile=options.xla or None)
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_object(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function(jit_compile=options.xla or None)
    def test_step(images):
        return model(images, training=False)

    def train(slot):
        last[0] = train_step(*batches[slot])

    def forward(slot):
        last[0] = test_step(batches[slot][0])

    window.run(train if options.stage == "train" else forward, options, tf.__version__,
               lambda: last[0].numpy())


if __name__ == "__main__":
    main()
