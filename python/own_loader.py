"""Runs steps on batches of the framework's own data loader (--input native). Data describes the data set: the
member `data` of case.json (docs/case-bundle.md)."""
import gzip
import os
import random

from errors import WorkerError

PICTURES = (".jpeg", ".jpg", ".png")
HEADS = {"idx": (16, 8)}  # bytes before the samples and before the labels
CIFAR10_RECORD = 1 + 3 * 32 * 32


def visible(folder):
    """Names in a folder, without hidden ones."""
    return [name for name in os.listdir(folder) if not name.startswith(".")]


def pictures(folder, name):
    """Sorted paths of the pictures of a class; empty if the folder has none and so is no class."""
    path = os.path.join(folder, name)
    if not os.path.isdir(path):
        return []
    return [os.path.join(path, file) for file in sorted(visible(path)) if file.lower().endswith(PICTURES)]


class Data(object):
    """The data set of a case. shape: of a stored sample (channels first; 0: any size); shards: list of lists of
    paths; first and count: which of all samples are used."""

    def __init__(self, case):
        given = case.data
        if given is None:
            raise WorkerError("invalid", "case.json has no member data for the framework's own loader")
        self.name, self.format, self.shards = given["name"], given["format"], given["shards"]
        self.first, self.count = given["first"], given["count"]
        self.shape, self.training = given["shape"], given["training"]
        self.scale, self.mean, self.deviation = given["scale"], given["mean"], given["deviation"]
        # The shape of the network's input.
        self.batch_shape = case.shape(case.inputs[0])
        self.batch, self.seed = case.recipe["batch"], case.recipe["seed"]
        self.threads = case.recipe["threads"]
        # Whether samples are used as stored: no crop and no change of size.
        self.as_stored = len(self.batch_shape) != 4 or list(self.shape) == list(self.batch_shape[1:])

    def problems(self):
        """List of str: why the files cannot be read."""
        if self.format != "images":
            return []
        folder = self.shards[0][0]
        if not os.path.isdir(folder) or not any(pictures(folder, name) for name in visible(folder)):
            return ["input native: %s must be a folder with one folder of pictures for each class" % folder]
        return []

    def photographs(self):
        """List of (path, label), classes in the order of their names."""
        folder = self.shards[0][0]
        classes = [files for files in (pictures(folder, name) for name in sorted(visible(folder))) if files]
        found = [(path, label) for label, files in enumerate(classes) for path in files]
        if len(found) < self.first + self.count:
            raise WorkerError("invalid", "%s has only %d of the %d photographs needed"
                              % (folder, len(found), self.first + self.count))
        return found[self.first:self.first + self.count]

    def plain(self):
        """(values, labels) of all samples as bytes, read into memory."""
        values, labels = bytearray(), bytearray()
        for paths in self.shards:
            if self.format == "cifar10":
                records = memoryview(read(paths[0]))
                for begin in range(0, len(records), CIFAR10_RECORD):
                    labels.append(records[begin])
                    values += records[begin + 1:begin + CIFAR10_RECORD]
            else:
                values += read(paths[0])[HEADS["idx"][0]:]
                labels += read(paths[1])[HEADS["idx"][1]:]
        size = len(values) // max(len(labels), 1)
        last = self.first + self.count
        if len(labels) < last:
            raise WorkerError("invalid", "%s has only %d of the %d samples needed"
                              % (self.name, len(labels), last))
        return values[self.first * size:last * size], labels[self.first:last]

    def order(self):
        """Endless sample numbers: a new random order in each epoch when training, else the order of the
        files."""
        chance, numbers = random.Random(self.seed), list(range(self.count))
        while True:
            if self.training:
                chance.shuffle(numbers)
            for number in numbers:
                yield number


def read(path):
    """The bytes of a file; gzip files are decompressed."""
    with open(path, "rb") as source:
        data = source.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


class OwnLoader(object):
    """Takes one batch per step from an adapter's loader. waited and copied: nanoseconds since begin()."""

    def __init__(self, adapter, case):
        self.adapter, self.batches = adapter, adapter.loader(case)
        self.waited = self.copied = 0

    def begin(self):
        self.waited = self.copied = 0

    def stepping(self, step, now):
        """Returns a step that waits for a batch, hands it over and steps. Without a step (None) it only
        waits."""
        batches, take = self.batches, self.adapter.take

        def own(slot):
            begin = now()
            batch = next(batches)
            taken = now()
            self.waited += taken - begin
            if step:
                take(slot, batch)
                self.copied += now() - taken
                step(slot)
        return own
