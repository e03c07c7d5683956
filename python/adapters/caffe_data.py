"""Batches by Caffe's Data layer over LMDB, as its own examples have them: a thread of Caffe's reads, crops
and scales ahead (docs/frameworks-discontinued.md, "caffe")."""
import os
import tempfile

import caffe
import numpy
from caffe.proto import caffe_pb2


def sides(data):
    """(height, width) of what the network takes; of a flat input those of the sample."""
    return data.batch_shape[2:] if len(data.batch_shape) == 4 else data.shape[1:]


def problems(data):
    """List of str: why this data set cannot be loaded. What the layer finds itself ends the process."""
    if data.format != "lmdb":
        return ["input native: Caffe's Data layer reads lmdb, not %s" % data.format]
    height, width = sides(data)
    if min(data.shape[1:]) < max(height, width):
        return ["input native: Caffe's Data layer crops %dx%d out of photographs of one size: convert again with "
                "--size N, N of %d or more" % (height, width, max(height, width))]
    if height != width and list(data.shape[1:]) != [height, width]:
        return ["input native: Caffe's Data layer crops squares, not %dx%d" % (height, width)]
    return []


def described(data):
    """caffe_pb2.NetParameter: the Data layer, and a Scale layer where channels are divided by their own."""
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
    """Endless iterator over (images, labels): arrays of Caffe's own, until the next."""
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
