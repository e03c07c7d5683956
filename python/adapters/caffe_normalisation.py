"""Batch normalisation as Caffe's layers: BatchNorm and Scale; where a build's BatchNorm computes no statistics of
a batch, they are computed, and differentiated, by other layers of Caffe's."""
import functools
import tempfile

import caffe
import numpy
from caffe.proto import caffe_pb2

import graph_analysis
from safetensors_io import elements

LAYERS = 12  # of a composed one at the most, Scale with the two parameters included


class Statistics(object):
    """Running mean and variance of a composed normalisation: `find` the net's blobs once, `follow` after each
    step. factors: of the blobs, for what they hold is (a mean with its sign turned, a variance of n)."""

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
    """BatchNorm normalises, Scale multiplies and adds. Caffe keeps statistics as sums that decay, and
    their weight in a third blob; from its limit on they are means."""
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
    """Scale with the node's factors and summands, over `blob`."""
    scale = net.layer("Scale", node, bottom=[blob], top=blob)
    scale.scale_param.bias_term = True
    net.own(scale, node, 1, 2)


def _composed(net, node, a):
    """x - mean, times (variance + epsilon) to the power of -1/2, then Scale. Statistics are blobs of
    samples x channels whose rows are equal, so that Bias and Scale take them."""
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
    """The blob, samples x channels, of a sum over all samples and places of each channel, in each row: over the
    places by Reduction, over the samples by a convolution that takes them for channels."""
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
    """Whether this Caffe computes a batch's statistics: there is a vendor's that does not."""
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
    """Why a BatchNormalization cannot be these layers, or None."""
    if node["attributes"]["momentum"] >= 1:
        return "a momentum of 1"
    return graph_analysis.statistics_problem(case, node)
