"""Runs steps on batches of the framework's own data loader (the input "native"). Data describes the data set for
it: the member `data` of case.json (docs/case-bundle.md)."""
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
    """Sorted paths of the pictures of a class. A folder without pictures is no class."""
    path = os.path.join(folder, name)
    if not os.path.isdir(path):
        return []
    return [os.path.join(path, file) for file in sorted(visible(path)) if file.lower().endswith(PICTURES)]


class Data(object):
    """The data set of a case. shape is that of a stored sample (channels first; 0: any size), shards a list
    of lists of paths, first and count say which of all samples are meant."""

    def __init__(self, case):
        given = case.data
        if given is None:
            raise WorkerError("invalid", "case.json says nothing of data for an own loader")
        self.name, self.format, self.shards = given["name"], given["format"], given["shards"]
        self.first, self.count = given["first"], given["count"]
        self.shape, self.training = given["shape"], given["training"]
        self.scale, self.mean, self.deviation = given["scale"], given["mean"], given["deviation"]
        # As the network takes a batch of them.
        self.batch_shape = case.shape(case.inputs[0])
        self.batch, self.seed = case.recipe["batch"], case.recipe["seed"]
        self.threads = case.recipe["threads"]
        # Stored as large as the network takes it, or flat: nothing is cut out or resized.
        self.as_stored = len(self.batch_shape) != 4 or list(self.shape) == list(self.batch_shape[1:])

    def problems(self):
        """List of str: why it cannot be read as it lies there."""
        if self.format != "images":
            return []
        folder = self.shards[0][0]
        if not os.path.isdir(folder) or not any(pictures(folder, name) for name in visible(folder)):
            return ["input native: %s is no folder with a folder for each class" % folder]
        return []

    def photographs(self):
        """List of (path, label), classes in the order of their names."""
        folder = self.shards[0][0]
        classes = [files for files in (pictures(folder, name) for name in sorted(visible(folder))) if files]
        found = [(path, label) for label, files in enumerate(classes) for path in files]
        if len(found) < self.first + self.count:
            raise WorkerError("invalid", "%s has %d photographs, not %d"
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
            raise WorkerError("invalid", "%d samples, not %d" % (len(labels), last))
        return values[self.first * size:last * size], labels[self.first:last]

    def order(self):
        """Endless numbers of samples: another random order in each epoch, that of the files to evaluate."""
        chance, numbers = random.Random(self.seed), list(range(self.count))
        while True:
            if self.training:
                chance.shuffle(numbers)
            for number in numbers:
                yield number


def read(path):
    """The bytes of a file, decompressed where it is gzip's."""
    with open(path, "rb") as source:
        data = source.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


class OwnLoader(object):
    """Takes batches of an adapter's loader, one for each step; waited and copied are nanoseconds since
    begin()."""

    def __init__(self, adapter, case):
        self.adapter, self.batches = adapter, adapter.loader(case)
        self.waited = self.copied = 0

    def begin(self):
        self.waited = self.copied = 0

    def stepping(self, step, now):
        """A step that waits for a batch, hands it over and steps; step None: it only waits."""
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
