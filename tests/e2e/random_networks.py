"""Random small networks as ONNX models: odd sizes, strides, paddings, groups, and operators in an order
that nobody would choose."""
import math
import random

from onnx_bytes import INT64, model, node, tensor, value_info

FUNCTIONS = ("Relu", "Tanh", "Sigmoid", "HardSigmoid", "HardSwish", "Elu", "LeakyRelu", "Swish", "Erf")
OPSETS = {"Swish": 24, "RMSNormalization": 23, "GroupNormalization": 21}  # of what needs more than 17
ELEMENTS_MAX, CHANNELS_MAX = 20000, 200


def windowed(size, kernel, stride, before, after, dilation=1):
    return (size + before + after - dilation * (kernel - 1) - 1) // stride + 1


class Network:
    """One while it is put together: `name` is the value that comes next to be used, of `shape`."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.nodes, self.tensors, self.operators, self.count = [], [], [], 0
        self.name = "x"
        self.shape = (self.pick(1, 2, 3, 4, 7, 8, 16, 17), self.pick(1, 2, 3, 5, 7, 8, 12, 15),
                      self.pick(1, 2, 3, 4, 7, 9, 12, 16))
        self.input = ("N", *self.shape)

    def pick(self, *words):
        return self.random.choice(words)

    def up_to(self, end):
        return self.random.randrange(end)

    def add(self, operator, *more, shape=None, **attributes):
        """A node on the current value and `more`; its result is the current one then."""
        self.count += 1
        output = "v%d" % self.count
        self.nodes.append(node(operator, [self.name, *more], [output], **attributes))
        self.operators.append(operator)
        self.name, self.shape = output, shape or self.shape

    def constant(self, shape, values, kind=1):
        self.count += 1
        name = "w%d" % self.count
        self.tensors.append(tensor(name, shape, values, kind))
        return name

    def normal(self, *shape, deviation=0.3):
        count = 1
        for each in shape:
            count *= each
        return self.constant(shape, [self.random.gauss(0, deviation) for _ in range(count)])

    def integers(self, *values):
        return self.constant([len(values)], values, INT64)

    def conv(self):
        channels, height, width = self.shape
        groups = self.pick(1, 1, 1, channels, *(g for g in (2, 4) if channels % g == 0))
        outputs = groups * self.pick(1, 2, 3, 5)
        kernel = [1 + self.up_to(5), 1 + self.up_to(5)]
        strides = [1 + self.up_to(4), 1 + self.up_to(4)]
        dilations = [self.pick(1, 1, 2, 3), self.pick(1, 1, 2, 3)]
        pads = [self.up_to(4) for _ in range(4)]
        sizes = [windowed(size, kernel[i], strides[i], pads[i], pads[i + 2], dilations[i])
                 for i, size in enumerate((height, width))]
        if min(sizes) < 1:
            return
        more = [self.normal(outputs, channels // groups, *kernel)]
        if self.random.random() < 0.6:
            more.append(self.normal(outputs))
        self.add("Conv", *more, shape=(outputs, *sizes), kernel_shape=kernel, strides=strides,
                 dilations=dilations, pads=pads, group=groups)

    def conv_transpose(self):
        channels, height, width = self.shape
        groups = self.pick(1, 1, channels, *(g for g in (2, 4) if channels % g == 0))
        each = self.pick(1, 2, 3, 5)
        kernel = [1 + self.up_to(4), 1 + self.up_to(4)]
        strides = [1 + self.up_to(3), 1 + self.up_to(3)]
        dilations = [self.pick(1, 1, 2), self.pick(1, 1, 2)]
        pads = [self.up_to(3) for _ in range(4)]
        more = [self.up_to(stride) for stride in strides]
        sizes = [strides[i] * (size - 1) + more[i] + (kernel[i] - 1) * dilations[i] + 1 - pads[i] - pads[i + 2]
                 for i, size in enumerate((height, width))]
        if min(sizes) < 1:
            return
        inputs = [self.normal(channels, each, *kernel)] + ([self.normal(groups * each)] if self.up_to(2) else [])
        self.add("ConvTranspose", *inputs, shape=(groups * each, *sizes), kernel_shape=kernel, strides=strides,
                 dilations=dilations, pads=pads, output_padding=more, group=groups)

    def pool(self):
        operator = self.pick("MaxPool", "AveragePool")
        kernel = [1 + self.up_to(4), 1 + self.up_to(4)]
        strides = [1 + self.up_to(3), 1 + self.up_to(3)]
        pads = [self.up_to(kernel[i % 2]) for i in range(4)]
        sizes = [windowed(self.shape[1 + i], kernel[i], strides[i], pads[i], pads[i + 2])
                 for i in range(2)]
        if min(sizes) < 1:
            return
        more = {"count_include_pad": self.up_to(2)} if operator == "AveragePool" else {}
        self.add(operator, shape=(self.shape[0], *sizes), kernel_shape=kernel, strides=strides,
                 pads=pads, **more)

    def batch_norm(self):
        channels = self.shape[0]
        more = [self.constant([channels], [abs(self.random.gauss(1, 0.3)) + 0.1
                                           for _ in range(channels)]) for _ in range(4)]
        self.add("BatchNormalization", *more, epsilon=1e-5)

    def rms_norm(self):
        axis = 1 + self.up_to(3)
        rows = self.shape[axis - 1:]
        if math.prod(rows) < 8:  # it divides by the length of a row, which may be almost zero then
            return
        self.add("RMSNormalization", self.normal(*rows, deviation=1.0), axis=axis, epsilon=1e-2)

    def group_norm(self):
        channels, height, width = self.shape
        groups = self.pick(0, *(g for g in (1, 2, 4) if channels % g == 0))
        if height * width * channels // (groups or channels) < 8:
            return
        more = [self.normal(channels, deviation=1.0), self.normal(channels)]
        if groups:
            self.add("GroupNormalization", *more, num_groups=groups, epsilon=1e-2)
        else:
            self.add("InstanceNormalization", *more, epsilon=1e-2)

    def function(self):
        self.add(self.pick(*FUNCTIONS))

    def clip(self):
        self.add("Clip", self.constant([], [-0.3]), self.constant([], [0.8]))

    def lrn(self):
        self.add("LRN", size=self.pick(1, 3, 5, 9), alpha=1e-2, beta=0.75, bias=1.0)

    def pad(self):
        top, left, bottom, right = (self.up_to(3) for _ in range(4))
        channels, height, width = self.shape
        self.add("Pad", self.integers(0, 0, top, left, 0, 0, bottom, right),
                 shape=(channels, height + top + bottom, width + left + right))

    def resize(self):
        channels, height, width = self.shape
        scales = [self.pick(1, 2, 2, 3), self.pick(1, 2, 2, 3)]
        mode, coordinates = self.pick(("nearest", "half_pixel"), ("linear", "half_pixel"), ("linear", "align_corners"))
        self.add("Resize", "", self.constant([4], [1, 1, *scales]), mode=mode,
                 coordinate_transformation_mode=coordinates,
                 shape=(channels, height * scales[0], width * scales[1]))

    def branch(self):
        """Concatenates a value with a function of it."""
        before, (channels, height, width) = self.name, self.shape
        self.add("Tanh")
        join = self.pick("Concat", "Add", "Mul")
        if join == "Concat":
            self.add(join, before, shape=(2 * channels, height, width), axis=1)
        else:
            self.add(join, before)

    def slice(self):
        channels, height, width = self.shape
        if channels < 2:
            return
        start = self.up_to(channels - 1)
        end = start + 1 + self.up_to(channels - start)
        self.add("Slice", self.integers(start), self.integers(end), self.integers(1),
                 shape=(end - start, height, width))

    def average(self):
        self.add("GlobalAveragePool", shape=(self.shape[0], 1, 1))

    def dropout(self):
        self.add("Dropout")

    def transpose(self):
        channels, height, width = self.shape
        self.add("Transpose", shape=(channels, width, height), perm=[0, 1, 3, 2])

    def attend(self):
        """Attention of each channel's columns to each other, and a product with a matrix per channel."""
        before, (channels, height, width) = self.name, self.shape
        self.transpose()
        columns = self.name
        self.add("MatMul", before, shape=(channels, width, width))
        self.add("Mul", self.constant([], [height ** -0.5]))
        self.add("Softmax", axis=-1)
        self.add("MatMul", columns, shape=(channels, width, height))
        last = 1 + self.up_to(5)
        self.add("MatMul", self.normal(self.pick(1, channels), height, last), shape=(channels, width, last))

    def recurrent(self):
        """A layer over the channels as steps: all its states, or the last one of each direction."""
        channels, height, width = self.shape
        operator = self.pick("LSTM", "GRU", "RNN")
        if channels > 24 or height * width > 200:
            return
        rows = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator] * (hidden := self.pick(1, 2, 3, 5, 8))
        direction = self.pick("forward", "reverse", "bidirectional")
        ways = 2 if direction == "bidirectional" else 1
        more = {"linear_before_reset": self.up_to(2)} if operator == "GRU" else {}
        if operator == "RNN":
            more["activations"] = [self.pick("Relu", "Tanh")] * ways
        self.add("Reshape", self.integers(0, channels, height * width), shape=(channels, 1, height * width))
        self.add("Transpose", perm=[1, 0, 2])
        weights = [self.normal(ways, rows, height * width), self.normal(ways, rows, hidden)]
        if self.up_to(3):
            weights.append(self.normal(ways, 2 * rows))
        before = self.name
        self.add(operator, *weights, hidden_size=hidden, direction=direction, **more)
        if self.up_to(2):
            self.add("Transpose", shape=(channels, ways, hidden), perm=[2, 0, 1, 3])
        else:
            self.nodes[-1] = node(operator, [before, *weights], ["", self.name], hidden_size=hidden,
                                  direction=direction, **more)
            self.add("Transpose", perm=[1, 0, 2])
            self.add("Reshape", self.integers(0, ways, 1, hidden), shape=(ways, 1, hidden))

    LAYERS = (attend, conv, conv, conv, conv_transpose, pool, pool, batch_norm, rms_norm, group_norm, function, function,
              function, clip, lrn, pad, resize, branch, branch, slice, average, dropout, transpose,
              recurrent)

    def too_large(self):
        channels, height, width = self.shape
        return channels > CHANNELS_MAX or channels * height * width > ELEMENTS_MAX

    def finish(self):
        elements = self.shape[0] * self.shape[1] * self.shape[2]
        classes = self.pick(2, 3, 10, 17)
        self.add("Flatten")
        self.add("Gemm", self.normal(classes, elements, deviation=elements ** -0.5), transB=1)
        return model(self.nodes, self.tensors, [value_info("x", self.input)],
                     [value_info(self.name, ("N", classes))],
                     max(OPSETS.get(name, 17) for name in self.operators))


def upsampler():
    """The model of a network of the operators that grow and normalise images."""
    built = Network("upsampler")
    built.shape = (4, 3, 3)
    built.input = ("N", 4, 3, 3)
    built.add("Conv", built.normal(4, 4, 3, 3), built.normal(4), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    built.add("ConvTranspose", built.normal(4, 6, 3, 2), built.normal(6), shape=(6, 6, 5), kernel_shape=[3, 2],
              strides=[2, 2], pads=[0, 1, 1, 0])
    built.add("GroupNormalization", built.normal(6, deviation=1.0), built.normal(6), num_groups=2, epsilon=1e-2)
    built.add("Swish")
    built.add("Resize", "", built.constant([4], [1, 1, 2, 1]), shape=(6, 12, 5), mode="linear",
              coordinate_transformation_mode="half_pixel")
    built.add("InstanceNormalization", built.normal(6, deviation=1.0), built.normal(6), epsilon=1e-2)
    built.add("Erf")
    built.add("Resize", "", built.constant([4], [1, 1, 1, 2]), shape=(6, 12, 10), mode="nearest",
              coordinate_transformation_mode="half_pixel")
    built.add("Pow", built.constant([], [2.0]))
    return built.finish()


def network(seed):
    """(the model with that number, its operators in their order): the same each time."""
    for attempt in range(1000):
        built = Network("%s.%d" % (seed, attempt))
        for _ in range(1 + built.up_to(6)):
            if not built.too_large():
                built.pick(*Network.LAYERS)(built)
        if not built.too_large():
            return built.finish(), built.operators
    raise AssertionError("no network has the number %s" % seed)
