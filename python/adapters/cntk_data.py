"""Batches for CNTK by its UserMinibatchSource: the worker's own NumPy picks and scales them. CNTK's ImageDeserializer
does not load where libjpeg 8, libpng 1.2 and OpenCV 3.1 are not there (docs/frameworks-discontinued.md, "cntk")."""
import itertools

import adapters.cntk_setup  # before CNTK itself
import cntk
import numpy


class Source(cntk.io.UserMinibatchSource):
    """Of a data set of plain values, which are kept in memory; in the order of data.order()."""

    def __init__(self, data, classes):
        values, labels = data.plain()
        self.values = numpy.frombuffer(values, numpy.uint8).reshape([-1] + data.shape)
        self.labels, self.one_hot = numpy.frombuffer(labels, numpy.uint8), numpy.eye(classes, dtype=numpy.float32)
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
        chosen = list(itertools.islice(self.numbers, num_samples))
        images = (self.values[chosen] / self.scale - self.mean) / self.deviation
        parts = (images.reshape([num_samples] + self.shape), self.one_hot[self.labels[chosen]])
        return {stream: cntk.io.MinibatchData(cntk.Value(batch=part, device=device), num_samples, num_samples, False)
                for stream, part in zip(self.stream_infos(), parts)}


def loader(data, classes):
    """Endless iterator over (images, labels), cntk.io.MinibatchData."""
    source = Source(data, classes)
    while True:
        batch = source.next_minibatch(data.batch, 1, 0, cntk.cpu())
        yield batch[source.images], batch[source.classes]
