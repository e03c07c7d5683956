"""Adapters: one file per framework, found by its name (`worker.py --adapter NAME`).

A file (one without an underscore in its name; those with one are parts) imports its framework at the
top and defines a class `Adapter`, derived from the one here. The
worker imports the file during hello, calls the methods below in the order in which they stand,
and owns loop and clock: an adapter never reads time.
"""


class Target(object):
    """As what and on what the framework is to run: device ("cpu", "cuda:0"), backend ("" for none),
    options (list of words), rank and world_size (int; 0 and 1 alone)."""

    def __init__(self, device, backend, options, rank, world_size):
        self.device, self.backend, self.options = device, backend, options
        self.rank, self.world_size = rank, world_size


# Of this process. worker.py sets it before it imports an adapter's file, which may have to tell
# its framework before it imports that (environment variables).
target = None


class Adapter(object):
    """The contract. `case` is a case.Case; tensors are safetensors_io.Tensor."""

    options = ()     # the words that a target may have
    backends = ("",)  # its backends
    # Why it has no profile_begin and profile_end; empty: it has. Of the process: device, backend, options.
    no_layers = "no profiler of its own is read"

    def hello(self):
        """dict of hello's reply: name, version, libraries, devices, precisions, stages and, where
        it says so, instruction_set."""
        raise NotImplementedError

    def supports(self, case):
        """List of str: everything in the case that cannot run; empty when all can. Pure."""
        raise NotImplementedError

    def open(self, case):
        """Takes the target's device and the recipe's threads. dict of open's reply: device,
        threads, precision as they took effect, settings."""
        raise NotImplementedError

    def build(self, case):
        """Translates and compiles the graph for the stage and loads the weights. dict of build's
        reply: parameters, macs, notes. Leaves weights, state and random numbers as loaded."""
        raise NotImplementedError

    def feed(self, slot, inputs, labels):
        """Makes a batch resident in `slot`. inputs and labels are lists of Tensor in the order of
        case.inputs and case.labels; labels (I64) is empty where the network has none, and a label of -1
        is ignored by the loss."""
        raise NotImplementedError

    def loader_problems(self, case):
        """List of str: why the framework's own data loader cannot be driven on case.data."""
        return ["input native: prony cannot run a data loader of its own"]

    def loader(self, case):
        """An endless iterator over batches that the framework's own loader makes of case.data
        (own_loader.Data), with as many workers as the recipe has threads."""
        raise NotImplementedError

    def take(self, slot, batch):
        """Makes a batch of loader() resident in `slot`."""
        raise NotImplementedError

    def step(self, slot):
        """Issues one step of the stage on a slot. build may replace it by a closure."""
        raise NotImplementedError

    def fit(self, blocks, slot, mark):
        """Where `options` has the word fit: runs blocks of steps (list of int) by the framework's own loop over
        epochs, from the batch of a slot on, and calls mark() when a block begins and when it has ended."""
        raise NotImplementedError

    def sync(self):
        """Returns when all issued work is finished. open may replace it."""

    def read(self, what, tensors):
        """Fills the data (writable memoryviews of bytes, which hold anything) of every Tensor (F32)
        in the list, which is of `what`: logits, loss, weights, gradients or state."""
        raise NotImplementedError

    def profile_begin(self, steps):
        """From here on so many steps are profiled."""
        raise NotImplementedError

    def profile_end(self, instants):
        """List of dict, the events of docs/case-bundle.md ("profile.json"), of the steps whose begin and end
        follow each other in instants (ns of CLOCK_MONOTONIC)."""
        raise NotImplementedError

    def status_of(self, error):
        """Status of an exception that the framework raised (out-of-memory ...), or None."""
        return None

    def close(self):
        """Ends what the framework left running."""


def unsupported(case, **known):
    """List of str, one for each word of the recipe that is not among the words `known` for its
    key. For Adapter.supports."""
    return ["%s %s" % (key, case.recipe[key]) for key in sorted(known)
            if case.recipe[key] not in known[key]]
