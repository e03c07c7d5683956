"""Batches by CNTK's UserMinibatchSource: the worker selects and scales samples with NumPy, and reads
photographs with Pillow. CNTK's ImageDeserializer would need libjpeg 8, libpng 1.2 and OpenCV 3.1
(docs/frameworks-discontinued.md, "cntk")."""
import itertools
from concurrent.futures import ThreadPoolExecutor

import adapters.cntk_setup  # before CNTK itself
import cntk
import numpy
import photographs


class Plain(object):
    """MNIST and CIFAR-10, in memory."""

    def __init__(self, data):
        values, labels = data.plain()
        self.values = numpy.frombuffer(values, numpy.uint8).reshape([-1] + data.shape)
        self.labels = numpy.frombuffer(labels, numpy.uint8)

    def taken(self, numbers):
        """(bytes [sample, channel, height, width], labels [sample])."""
        return self.values[numbers], self.labels[numbers]


class Photographs(object):
    """JPEG files, read by as many threads as the cell has cores (Pillow decodes without Python's lock)."""

    def __init__(self, data):
        self.read, self.pool = photographs.Photographs(data), ThreadPoolExecutor(data.threads)
        self.shape = [-1, self.read.height, self.read.width, 3]

    def taken(self, numbers):
        pixels, labels = zip(*self.pool.map(self.read.sample, numbers))
        values = numpy.frombuffer(b"".join(pixels), numpy.uint8).reshape(self.shape)
        return numpy.ascontiguousarray(values.transpose(0, 3, 1, 2)), numpy.array(labels)


class Source(cntk.io.UserMinibatchSource):
    """Reads samples in the order of data.order()."""

    def __init__(self, data, classes):
        self.samples = Photographs(data) if data.format == "images" else Plain(data)
        self.one_hot = numpy.eye(classes, dtype=numpy.float32)
        self.scale, self.shape, self.numbers = numpy.float32(data.scale), data.batch_shape[1:], data.order()
        self.mean, self.deviation = (numpy.array(channel, numpy.float32).reshape(-1, 1, 1)
                                     for channel in (data.mean, data.deviation))
        self.images, self.classes = (
            cntk.io.StreamInformation(name, number, "dense", numpy.float32, tuple(shape))
            for number, (name, shape) in enumerate([("images", self.shape), ("classes", [classes])]))
        super(Source, self).__init__()

    def stream_infos(self):
        return [self.images, self.classes]

    def is_infinite(self):
        return True

    def next_minibatch(self, num_samples, number_of_workers, worker_rank, device=None):
        values, labels = self.samples.taken(list(itertools.islice(self.numbers, num_samples)))
        images = (values / self.scale - self.mean) / self.deviation
        parts = (images.reshape([num_samples] + self.shape), self.one_hot[labels])
        return {stream: cntk.io.MinibatchData(cntk.Value(batch=part, device=device), num_samples, num_samples, False)
                for stream, part in zip(self.stream_infos(), parts)}


def loader(data, classes):
    """Endless iterator over (images, labels), cntk.io.MinibatchData."""
    source = Source(data, classes)
    while True:
        batch = source.next_minibatch(data.batch, 1, 0, cntk.cpu())
        yield batch[source.images], batch[source.classes]
