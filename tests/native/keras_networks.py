"""LeNet and ResNet-50 of Keras' layers, for the scripts that train such models.

ResNet-50 is built as in keras_applications' resnet.py (functional, residual_block_v1), in version 1.5: the stride of a stage stands in
its 3x3 convolution and convolutions have no bias, as torchvision and prony have it.
"""
import keras
from keras import layers


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


NETWORKS = {"lenet": lenet, "resnet50": resnet50,
            "vgg16": lambda: keras.applications.VGG16(weights=None, classifier_activation=None)}
