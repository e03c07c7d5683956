"""Batch normalisation by Caffe's layers BatchNorm and Scale. If the build's BatchNorm computes no statistics of
a batch, other layers of Caffe compute them and their gradient."""
import functools
import tempfile

import caffe
import numpy
from caffe.proto import caffe_pb2

import graph_analysis
from safetensors_io import elements

LAYERS = 12  # at most, for a composed one, with the Scale of the two parameters


class Statistics(object):
    """Running mean and variance of a composed normalisation: call `find` once, `follow` after each step.
    factors: of the blobs, which hold the negative mean and the variance divided by n."""

    def __init__(self, running, blobs, factors, momentum):
        self.running, self.blobs, self.factors = running, blobs, factors
        self.momentum = momentum

    def find(self, net):
        self.rows = [net.blobs[name].data[0] for name in self.blobs]

    def follow(self):
        for running, row, factor in zip(self.running, self.rows, self.factors):
            running *= self.momentum
            running += numpy.float32((1 - self.momentum) * factor) * row


def layers(net, node, a):
    """The row of the operator."""
    if net.training and not _normalises():
        _composed(net, node, a)
        return
    _own(net, node, a)


def _own(net, node, a):
    """BatchNorm normalises, Scale multiplies and adds. Caffe stores statistics as decaying sums, and their
    weight in a third blob. Once the weight has reached its limit, the sums are running means."""
    limit = 1.0 / (1.0 - a["momentum"])
    layer = net.layer("BatchNorm", node, name=node["name"] + ".norm")
    layer.batch_norm_param.moving_average_fraction = a["momentum"]
    layer.batch_norm_param.eps = a["epsilon"]
    layer.batch_norm_param.use_global_stats = not net.training
    for index, name in enumerate(node["inputs"][3:5]):
        net.places[name] = (layer.name, index)
        net.scales[name] = limit
    for _ in range(3):
        layer.param.add(lr_mult=0, decay_mult=0)
    net.fixed.append((layer.name, 2, limit))
    _parameters(net, node, layer.top[0])


def _parameters(net, node, blob):
    """Scale with the node's scale and bias, in place on `blob`."""
    scale = net.layer("Scale", node, bottom=[blob], top=blob)
    scale.scale_param.bias_term = True
    net.own(scale, node, 1, 2)


def _composed(net, node, a):
    """(x - mean) * (variance + epsilon)^(-1/2), then Scale. Statistics are blobs of samples x channels with
    equal rows, because Bias and Scale need that shape."""
    shape = net.case.shape(node["inputs"][0])
    count = elements(shape) // shape[1]
    name = node["name"] + "."
    x = net.tops[node["inputs"][0]]
    if len(shape) == 2:
        x = _reshaped(net, node, name + "map", x, shape + [1, 1])
    mean = _over_batch(net, node, name + "mean", x, "SUM", -1.0 / count)
    centred = net.layer("Bias", node, name=name + "centred", bottom=[x, mean], top=name + "centred")
    centred.bias_param.axis = 0
    variance = _over_batch(net, node, name + "variance", centred.top[0], "SUMSQ", 1.0 / count)
    root = net.layer("Power", node, name=name + "root", bottom=[variance], top=name + "root")
    root.power_param.power, root.power_param.shift = -0.5, a["epsilon"]
    normal = net.layer("Scale", node, name=name + "norm", bottom=[centred.top[0], root.top[0]],
                       top=name + "norm")
    normal.scale_param.axis = 0
    normal.scale_param.bias_term = False
    out = normal.top[0]
    if len(shape) == 2:
        out = _reshaped(net, node, name + "flat", out, shape)
    _parameters(net, node, out)
    running = [numpy.zeros(shape[1], numpy.float32) for _ in range(2)]
    net.states.update(zip(node["inputs"][3:5], running))
    net.statistics.append(Statistics(running, (mean, variance), (-1.0, count / (count - 1.0)),
                                     a["momentum"]))


def _over_batch(net, node, name, x, operation, factor):
    """A blob of samples x channels, with equal rows: the sum of each channel over all samples and positions.
    Reduction sums over positions, a convolution over samples, which it treats as channels."""
    samples, channels = net.case.shape(node["inputs"][0])[:2]
    places = net.layer("Reduction", node, name=name + ".places", bottom=[x], top=name + ".places")
    places.reduction_param.operation = caffe_pb2.ReductionParameter.ReductionOp.Value(operation)
    places.reduction_param.axis = 2
    turned = _reshaped(net, node, name + ".turned", places.top[0], [1, samples, channels, 1])
    total = net.layer("Convolution", node, name=name + ".samples", bottom=[turned],
                      top=name + ".samples")
    total.convolution_param.num_output = samples
    total.convolution_param.kernel_size.append(1)
    total.convolution_param.bias_term = False
    total.param.add(lr_mult=0, decay_mult=0)
    net.fixed.append((total.name, 0, factor))
    return _reshaped(net, node, name, total.top[0], [samples, channels])


def _reshaped(net, node, name, blob, shape):
    layer = net.layer("Reshape", node, name=name, bottom=[blob], top=name)
    layer.reshape_param.shape.dim.extend(shape)
    return layer.top[0]


@functools.lru_cache(maxsize=None)
def _normalises():
    """Whether this build of Caffe computes a batch's statistics; one vendor's build does not."""
    net = caffe_pb2.NetParameter()
    net.layer.add(name="x", type="Input", top=["x"]).input_param.shape.add(dim=[8, 1, 1, 1])
    layer = net.layer.add(name="y", type="BatchNorm", bottom=["x"], top=["y"])
    layer.batch_norm_param.use_global_stats = False
    with tempfile.NamedTemporaryFile("w", suffix=".prototxt") as out:
        out.write(str(net))
        out.flush()
        made = caffe.Net(out.name, caffe.TRAIN)
    made.blobs["x"].data[...] = numpy.arange(8.0).reshape(8, 1, 1, 1)
    made.forward()
    return abs(made.blobs["y"].data.std() - 1) < 0.01


def problem(case, node):
    """The reason if a BatchNormalization is not supported, else None."""
    if node["attributes"]["momentum"] >= 1:
        return "momentum 1 is not supported"
    return graph_analysis.statistics_problem(case, node)
