#!/usr/bin/env python3
"""TensorFlow 2: a training loop as in tensorflow.org's "TensorFlow 2 quickstart for experts" (a model of Keras' layers, a GradientTape
and apply_gradients inside one tf.function), LeNet, ResNet-50 or GPT-2. Threads are TensorFlow's own choice: as many as it may use cores."""
import os

import window

options = window.arguments(__doc__, ["lenet", "resnet50", "gpt2-bytes"], xla="tf.function with jit_compile",
                           fused="TensorFlow's fused batch normalisation and update, where Keras 3 composes both of "
                                 "sums and products")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import tensorflow as tf  # noqa: E402

from keras_networks import NETWORKS, batches as make_batches  # noqa: E402


class FusedBatchNormalization(tf.keras.layers.Layer):
    def __init__(self, epsilon, momentum=0.99):
        super().__init__()
        self.epsilon, self.momentum = epsilon, momentum

    def build(self, shape):
        self.scale, self.shift, self.mean, self.variance = (
            self.add_weight(shape=(shape[-1],), initializer=first, trainable=trained)
            for first, trained in (("ones", True), ("zeros", True), ("zeros", False), ("ones", False)))

    def call(self, x, training=False):
        if not training:
            return tf.compat.v1.nn.fused_batch_norm(x, self.scale, self.shift, self.mean, self.variance, self.epsilon,
                                                    is_training=False)[0]
        y, mean, variance = tf.compat.v1.nn.fused_batch_norm(x, self.scale, self.shift, epsilon=self.epsilon)
        for running, new in (self.mean, mean), (self.variance, variance):
            running.assign(self.momentum * running.value + (1 - self.momentum) * new)
        return y


def main():
    own = {"normalization": FusedBatchNormalization} if options.fused and options.network == "resnet50" else {}
    model = NETWORKS[options.network](**own)
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.SGD(0.001, momentum=0.9)
    batches = make_batches(options, tf.random.normal, lambda shape, limit: tf.random.uniform(shape, 0, limit, tf.int32))
    last = [None]

    fused = [(variable.value, tf.Variable(tf.zeros_like(variable.value)))
             for variable in model.trainable_variables] if options.fused else []

    @tf.function(jit_compile=options.xla or None)
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_object(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        if fused:
            for (weight, moment), gradient in zip(fused, gradients):
                tf.raw_ops.ResourceApplyMomentum(var=weight.handle, accum=moment.handle, lr=0.001, grad=gradient, momentum=0.9)
        else:
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
