"""What the scripts of this folder share: their arguments, and the clock around their loop.

Each script is a framework's own published example with a synthetic batch in place of its data set, so that it can stand beside
our adapter in tests/bench/equivalence.py. It needs the framework's Python package and nothing of prony. Runs on 3.6 to 3.13.
"""
import argparse
import itertools
import json
import sys
import time

SLOTS = 8  # resident batches, in turn, as prony has them
TOKENS, WORDS = 128, 256  # of a sequence of gpt2-bytes, and its vocabulary
BLOCK_SECONDS = 0.25  # the framework is waited for after as many steps as take this long


def arguments(description, networks, stages=("train", "forward"), **more):
    """The parsed arguments; more: {option: help} of flags, or of files where the help begins with FILE: needed,
    or if it begins with FILE?, not."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--network", choices=networks, default=networks[0])
    parser.add_argument("--stage", choices=stages, default=stages[0])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warm-up", type=float, default=3.0, help="seconds")
    parser.add_argument("--seconds", type=float, default=5.0, help="of measuring")
    parser.add_argument("--serve", action="store_true",
                        help="measure what standard input asks for: a number of steps a line")
    for name, text in more.items():
        if text.startswith("FILE"):
            parser.add_argument("--" + name, metavar="FILE", help=text.replace("?", ""),
                                required=not text.startswith("FILE?"))
        else:
            parser.add_argument("--" + name, action="store_true", help=text)
    return parser.parse_args()


def image_shape(network):
    """(channels, rows, columns, classes) of a network's input and output."""
    return (1, 28, 28, 10) if network == "lenet" else (3, 224, 224, 1000)


def inputs(options):
    """NumPy's arrays of all slots for a network, channels first."""
    import numpy
    generator = numpy.random.default_rng(1)
    if options.network == "gpt2-bytes":
        return [generator.integers(0, WORDS, (options.batch, TOKENS)) for _ in range(SLOTS)]
    shape = (options.batch,) + image_shape(options.network)[:3]
    return [generator.standard_normal(shape, "float32") for _ in range(SLOTS)]


def block(step, finish, slots, steps):
    """Seconds of as many steps, waited for."""
    begin = time.perf_counter()
    for _ in range(steps):
        step(next(slots))
    finish()
    return time.perf_counter() - begin


def say(**members):
    """One line of JSON on standard output, which frameworks may write to as well."""
    sys.stdout.write("\n" + json.dumps(members, sort_keys=True) + "\n")
    sys.stdout.flush()


def serve(step, finish, slots, version):
    """Answers each line of standard input, a number of steps, with the seconds that they took."""
    say(version=version)
    for line in iter(sys.stdin.readline, ""):
        say(seconds=block(step, finish, slots, int(line)))


def run(step, options, version, finish=lambda: None):
    """Calls step(slot) until the time is over and prints one line of JSON: seconds of a step, mean of blocks, each waited for by
    finish()."""
    slots = itertools.cycle(range(SLOTS))
    end = time.perf_counter() + options.warm_up
    block(step, finish, slots, 3)
    while time.perf_counter() < end:
        block(step, finish, slots, 1)
    if options.serve:
        serve(step, finish, slots, version)
        return
    steps = max(1, int(round(BLOCK_SECONDS / block(step, finish, slots, 1))))
    times, end = [], time.perf_counter() + options.seconds
    while time.perf_counter() < end or not times:
        times.append(block(step, finish, slots, steps) / steps)
    say(step_seconds=sum(times) / len(times), blocks=len(times), steps=steps, version=version)
