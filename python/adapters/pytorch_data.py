"""Batches by torch's DataLoader, as in a training script: one process per core, samples in a Dataset, torch's
collation (docs/frameworks-python.md, "pytorch")."""
import io

import photographs
import torch
from errors import WorkerError
from torch.utils.data import DataLoader, Dataset, Sampler


class Plain(Dataset):
    """MNIST and CIFAR-10: stored values in one tensor, scaled when a sample is read."""

    def __init__(self, data):
        values, labels = data.plain()
        self.values = torch.frombuffer(values, dtype=torch.uint8).reshape([-1] + data.shape)
        self.labels = torch.frombuffer(labels, dtype=torch.uint8).long()
        self.scaled = Scaling(data)
        self.shape = data.batch_shape[1:]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, number):
        return self.scaled(self.values[number]).reshape(self.shape), self.labels[number]


class Scaling(object):
    """Converts the bytes of a sample, channels first, to the network's input."""

    def __init__(self, data):
        self.scale = data.scale
        self.mean, self.deviation = (torch.tensor(channel, dtype=torch.float32).reshape(-1, 1, 1)
                                     for channel in (data.mean, data.deviation))

    def __call__(self, value):
        return value.to(torch.float32).div_(self.scale).sub_(self.mean).div_(self.deviation)


def problems(data):
    """List of str: why this data set cannot be loaded here."""
    if data.format == "lmdb":
        try:
            import lmdb  # noqa: F401
        except ImportError:
            return ["option lmdb needs the package lmdb, which this Python environment lacks; "
                    "install it there, or run 'prony framework install pytorch'"]
        if data.as_stored:
            return []
    return photographs.problems(data)


def planes(pixels, height, width):
    """A tensor [3, height, width] from the bytes of an image, channels last."""
    values = torch.frombuffer(bytearray(pixels), dtype=torch.uint8)
    return values.reshape(height, width, 3).permute(2, 0, 1).contiguous()


class Photographs(Dataset):
    """JPEG files: ToTensor and Normalize in torch."""

    def __init__(self, data):
        self.read, self.scaled = photographs.Photographs(data), Scaling(data)

    def __len__(self):
        return len(self.read)

    def __getitem__(self, number):
        pixels, label = self.read.sample(number)
        return self.scaled(planes(pixels, self.read.height, self.read.width)), label


def _varint(message, at):
    """(value, position after it) of a protobuf varint."""
    value = shift = 0
    while True:
        byte, at = message[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def read_datum(message):
    """The fields of Caffe's Datum by number: 1 channels, 2 height, 3 width, 4 data, 5 label, 7 encoded. Raises
    IndexError if it is truncated."""
    fields, at = {}, 0
    while at < len(message):
        key, at = _varint(message, at)
        value, end = _varint(message, at) if key & 7 in (0, 2) else (None, at + (8 if key & 7 == 1 else 4))
        if key & 7 == 2:
            at, end = end, end + value
            value = message[at:end]
        fields[key >> 3], at = value, end
    return fields


class Records(Dataset):
    """An LMDB of Datum messages; each process opens it itself."""

    def __init__(self, data):
        self.path, self.scaled, self.shape = data.shards[0][0], Scaling(data), data.batch_shape[1:]
        self.view = None if data.as_stored else photographs.View(data)
        self.records = None
        with self.opened() as base, base.begin() as records:
            keys = list(records.cursor().iternext(values=False))
        if len(keys) < data.first + data.count:
            raise WorkerError("invalid", "%s has only %d of the %d samples needed"
                              % (self.path, len(keys), data.first + data.count))
        self.keys = keys[data.first:data.first + data.count]

    def opened(self):
        import lmdb
        return lmdb.open(self.path, readonly=True, lock=False, readahead=False, meminit=False)

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, number):
        if self.records is None:
            self.records = self.opened().begin()
        datum = read_datum(self.records.get(self.keys[number]))
        return self.scaled(self.pixels(datum)).reshape(self.shape), datum.get(5, 0)

    def pixels(self, datum):
        """The sample as bytes, [channel, height, width]."""
        value, channels, height, width = datum[4], datum[1], datum[2], datum[3]
        if not self.view and not datum.get(7):
            return torch.frombuffer(bytearray(value), dtype=torch.uint8).reshape(channels, height, width)
        from PIL import Image
        if datum.get(7):
            image = Image.open(io.BytesIO(value)).convert("RGB")
        else:
            size = height * width
            image = Image.merge("RGB", [Image.frombytes("L", (width, height), value[begin:begin + size])
                                        for begin in range(0, 3 * size, size)])
        seen = self.view.seen(image) if self.view else image
        return planes(seen.tobytes(), seen.height, seen.width)


class Endless(Sampler):
    """Lists of sample numbers, one per batch; a batch may span two epochs."""

    def __init__(self, data):
        self.data = data

    def __iter__(self):
        numbers = self.data.order()
        while True:
            yield [next(numbers) for _ in range(self.data.batch)]


def loader(data):
    """Endless iterator over (images, labels)."""
    samples = {"images": Photographs, "lmdb": Records}.get(data.format, Plain)(data)
    made = DataLoader(samples, batch_sampler=Endless(data), num_workers=data.threads)
    return iter(made)
