"""The base class of adapters. Each framework has a file, found by its name (`worker.py --adapter NAME`).

The file imports its framework at the top and defines a class `Adapter`, derived from the one here. Files with
an underscore in their name are parts of adapters. The worker imports the file during hello and calls the
methods below in their order. The worker has the loop and the clock: an adapter never reads time."""


class Target(object):
    """How the framework is to run: device ("cpu", "cuda:0"), backend ("" for none), options (list of str), rank
    and world_size (0 and 1 for a single process). Several ranks find each other by `folder`, empty at first, and
    `ports` of 127.0.0.1: one for a coordinator, then one for each rank."""

    def __init__(self, device, backend, options, rank, world_size, rendezvous=None):
        self.device, self.backend, self.options = device, backend, options
        self.rank, self.world_size = rank, world_size
        self.folder, self.ports = (rendezvous or {}).get("folder"), (rendezvous or {}).get("ports")


# The target of this process. worker.py sets it before it imports an adapter, which may need it to set
# environment variables before it imports its framework.
target = None


class Adapter(object):
    """The interface. `case` is a case.Case; tensors are safetensors_io.Tensor."""

    options = ()     # the options that a target may have
    backends = ("",)  # its backends
    # What sums the gradients of several ranks, for hello's reply; "": it runs one rank only. Its step then averages
    # the gradients over all ranks before the update.
    collectives = ""
    # Why it has no profile_begin and profile_end; "": it has them. May depend on the target.
    no_layers = "the adapter reads no profiler of this framework"

    def hello(self):
        """dict for hello's reply: name, version, libraries, devices, precisions, stages and, if known,
        instruction_set."""
        raise NotImplementedError

    def supports(self, case):
        """List of str: all reasons why the case cannot run; empty if it can. Has no side effects."""
        raise NotImplementedError

    def open(self, case):
        """Sets the target's device and the recipe's threads. dict for open's reply: settings, and the device,
        threads and precision that took effect."""
        raise NotImplementedError

    def build(self, case):
        """Translates and compiles the graph for the stage and loads the weights. dict for build's reply:
        parameters, macs, notes. Weights, state and random numbers are as loaded afterwards."""
        raise NotImplementedError

    def feed(self, slot, inputs, labels):
        """Makes a batch resident in `slot`. inputs and labels are lists of Tensor in the order of
        case.inputs and case.labels; labels (I64) is empty if the network has none; the loss ignores labels of
        -1."""
        raise NotImplementedError

    def loader_problems(self, case):
        """List of str: why the framework's own data loader cannot load case.data."""
        return ["input native: the adapter has no data loader for this framework"]

    def loader(self, case):
        """An endless iterator over the batches of the framework's own loader for case.data (own_loader.Data),
        with as many workers as the recipe has threads."""
        raise NotImplementedError

    def take(self, slot, batch):
        """Makes a batch of loader() resident in `slot`."""
        raise NotImplementedError

    def step(self, slot):
        """Starts one step of the stage on a slot. build may replace it by a closure."""
        raise NotImplementedError

    def fit(self, blocks, slot, mark):
        """For adapters with the option fit: runs blocks of steps (list of int) by the framework's own loop over
        epochs, from the batch of `slot` on, and calls mark() when a block begins and when it has ended."""
        raise NotImplementedError

    def sync(self):
        """Returns when all started work is finished. open may replace it."""

    def read(self, what, tensors):
        """Fills the data (writable memoryviews of uninitialised bytes) of each Tensor (F32) in the list. what:
        logits, loss, weights, gradients or state."""
        raise NotImplementedError

    def profile_begin(self, steps):
        """Starts profiling the next `steps` steps."""
        raise NotImplementedError

    def profile_end(self, instants):
        """List of dict: the events of the profiled steps (docs/case-bundle.md, "profile.json"). instants: begin
        and end of each step (ns of CLOCK_MONOTONIC)."""
        raise NotImplementedError

    def status_of(self, error):
        """The status (such as out-of-memory) of an exception that the framework raised, or None."""
        return None

    def close(self):
        """Stops everything that the framework still runs."""


def unsupported(case, **known):
    """For Adapter.supports: a reason for each setting of the recipe that is not among those in `known` {key:
    values}."""
    return ["%s %s is not supported" % (key, case.recipe[key]) for key in sorted(known)
            if case.recipe[key] not in known[key]]
