"""Batches by Caffe's Data layer over LMDB, as in Caffe's examples: one of its threads reads, crops and scales
ahead (docs/frameworks-discontinued.md, "caffe")."""
import os
import tempfile

import caffe
import numpy
from caffe.proto import caffe_pb2


def sides(data):
    """(height, width) of the network's input, or of the sample if the input is flat."""
    return data.batch_shape[2:] if len(data.batch_shape) == 4 else data.shape[1:]


def problems(data):
    """List of str: why this data set cannot be loaded. Errors that the layer itself finds end the process."""
    if data.format != "lmdb":
        return ["input native: Caffe's Data layer reads lmdb, not %s" % data.format]
    height, width = sides(data)
    if min(data.shape[1:]) < max(height, width):
        return ["input native: to crop %dx%d, Caffe's Data layer needs photographs of one size: convert them "
                "again with --size N, N at least %d" % (height, width, max(height, width))]
    if height != width and list(data.shape[1:]) != [height, width]:
        return ["input native: Caffe's Data layer crops squares, not %dx%d" % (height, width)]
    return []


def described(data):
    """caffe_pb2.NetParameter: a Data layer, and a Scale layer if channels have different deviations."""
    net = caffe_pb2.NetParameter(name="loader")
    layer = net.layer.add(name="data", type="Data", top=["data", "label"])
    layer.data_param.source = data.shards[0][0]
    layer.data_param.backend = caffe_pb2.DataParameter.LMDB
    layer.data_param.batch_size = data.batch
    transform = layer.transform_param
    transform.mean_value.extend(data.scale * mean for mean in data.mean)
    if len(set(data.deviation)) == 1:
        transform.scale = 1 / (data.scale * data.deviation[0])
    else:
        transform.scale = 1 / data.scale
        divided = net.layer.add(name="deviation", type="Scale", bottom=["data"], top=["data"])
        divided.scale_param.axis = 1
    if list(data.shape[1:]) != list(sides(data)):
        transform.crop_size = sides(data)[0]
        transform.mirror = data.training
    return net


def loader(data):
    """Endless iterator over (images, labels), arrays of Caffe that are valid until the next batch."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "loader.prototxt")
        with open(path, "w") as out:
            out.write(str(described(data)))
        net = caffe.Net(path, caffe.TRAIN if data.training else caffe.TEST)
    if "deviation" in net.params:
        net.params["deviation"][0].data[...] = 1 / numpy.array(data.deviation)
    images, labels = net.blobs["data"], net.blobs["label"]
    while True:
        net.forward()
        yield images.data.reshape(data.batch_shape), labels.data
