"""LeNet, ResNet-50 and GPT-2 of Keras' layers, for the scripts that train such models.

ResNet-50 is built as in keras_applications' resnet.py (functional, residual_block_v1), in version 1.5: the stride of a stage stands in
its 3x3 convolution and convolutions have no bias, as torchvision and prony have it.
"""
import keras
from keras import layers

import window


def lenet():
    """As in keras.io's examples/vision/mnist_convnet: a Sequential model."""
    return keras.Sequential([
        keras.Input((28, 28, 1)), layers.Conv2D(20, 5), layers.MaxPooling2D(), layers.Conv2D(50, 5),
        layers.MaxPooling2D(), layers.Flatten(), layers.Dense(500, activation="relu"),
        layers.Dense(10)])


def block(x, filters, stride, project, normalization):
    def convolution(x, filters, size, stride=1):
        x = layers.Conv2D(filters, size, strides=stride, padding="same", use_bias=False)(x)
        return normalization(epsilon=1.001e-5)(x)

    shortcut = convolution(x, 4 * filters, 1, stride) if project else x
    x = layers.Activation("relu")(convolution(x, filters, 1))
    x = layers.Activation("relu")(convolution(x, filters, 3, stride))
    x = convolution(x, 4 * filters, 1)
    return layers.Activation("relu")(layers.Add()([shortcut, x]))


def resnet50(normalization=layers.BatchNormalization):
    image = keras.Input((224, 224, 3))
    x = layers.ZeroPadding2D(3)(image)
    x = layers.Conv2D(64, 7, strides=2, use_bias=False)(x)
    x = layers.Activation("relu")(normalization(epsilon=1.001e-5)(x))
    x = layers.MaxPooling2D(3, strides=2)(layers.ZeroPadding2D(1)(x))
    for filters, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            x = block(x, filters, stride if i == 0 else 1, i == 0, normalization)
    return keras.Model(image, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


class TiedEmbedding(layers.Layer):
    """The sum of the tables' rows for words and positions; with reverse, the logits by the same table of words, as in
    keras_hub.layers.TokenAndPositionEmbedding and ReversibleEmbedding."""

    def build(self, shape):
        self.words = self.add_weight(shape=(window.WORDS, 128), initializer="random_normal")
        self.positions = self.add_weight(shape=(1024, 128), initializer="random_normal")

    def call(self, x, reverse=False):
        if reverse:
            return keras.ops.matmul(x, keras.ops.transpose(self.words))
        return keras.ops.take(self.words, x, axis=0) + self.positions[:window.TOKENS]


def gpt2():
    """Sizes of prony's gpt2-bytes, blocks as in keras.io's examples/generative/text_generation_with_miniature_gpt, but with the
    normalisation first, as GPT-2 has it."""
    tokens = keras.Input((window.TOKENS,), dtype="int32")
    table = TiedEmbedding()
    x = table(tokens)
    for _ in range(4):
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        y = layers.MultiHeadAttention(4, 32)(y, y, use_causal_mask=True)
        x = layers.Add()([x, y])
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        y = layers.Dense(512, activation=lambda z: keras.activations.gelu(z, approximate=True))(y)
        x = layers.Add()([x, layers.Dense(128)(y)])
    logits = table(layers.LayerNormalization(epsilon=1e-5)(x), reverse=True)
    return keras.Model(tokens, logits)


def batches(options, image, number):
    """The resident batches of a network: image(shape) and number(shape, limit) make one tensor each."""
    if options.network == "gpt2-bytes":
        shape = options.batch, window.TOKENS
        return [(number(shape, window.WORDS), number(shape, window.WORDS)) for _ in range(window.SLOTS)]
    channels, rows, columns, classes = window.image_shape(options.network)
    return [(image((options.batch, rows, columns, channels)), number((options.batch,), classes))
            for _ in range(window.SLOTS)]


NETWORKS = {"gpt2-bytes": gpt2, "lenet": lenet, "resnet50": resnet50,
            "vgg16": lambda: keras.applications.VGG16(weights=None, classifier_activation=None)}
