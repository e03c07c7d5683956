#!/usr/bin/env python3
"""Tests whether the time of an epoch from a framework's callbacks (`--loop fit`) agrees with the time measured outside.

    fit_loop.py [--epochs N] [--steps N] [--batch N] [--pairs N] [NAME:BACKEND...]      all of Keras without a name

Runs of N and of 2 N epochs alternate in one worker. The difference between 2 N and N by the parent's clock, divided by N, is an epoch
as seen from outside, without the start and end of a call of `fit`. The median of the epochs of both runs by the callbacks is an epoch
as seen from inside. Printed: inside / outside with its 95 % interval over pairs of runs (Student's t on logarithms), the share of a run of
2 N epochs that no epoch has, and an epoch's steps run one by one (`--loop step`). AGREES: the interval lies within 5 % of 1; DIFFERS:
it lies outside of that; INCONCLUSIVE: neither (more --pairs, a quieter machine). Exit status 1 when one DIFFERS, or an epoch began before
or ended after its run. Standard library only; run by hand, on a machine that does nothing else.
"""
import argparse
import array
import math
import os
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(TOP, "tests", "e2e")]

from equivalence import interval  # noqa: E402
from worker_driver import PAGE, Bundle, Driver, lenet  # noqa: E402


KERAS = ["keras3:tensorflow", "keras3:jax", "keras3:torch", "keras2:tensorflow", "keras2:theano", "keras2:cntk"]
BOUND = 0.05


def interpreter(name, backend):
    """The Python of an installed environment, or None."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    for folder in (name + "=" + backend, name):
        path = os.path.join(data, "prony", "frameworks", folder, "bin", "python")
        if os.path.exists(path):
            return path
    return None


class Run(object):
    """A worker that trains LeNet, in its framework's loop or step by step."""

    def __init__(self, path, name, backend, options, fit):
        self.folder = tempfile.TemporaryDirectory(prefix="prony-fit-")
        self.log = open(os.path.join(self.folder.name, "stderr"), "w+")
        bundle = Bundle(self.folder.name, lenet(options.batch), backend=backend, slots=options.steps,
                        threads=options.threads, options=["fit"] if fit else [])
        self.steps = options.steps
        self.driver = Driver([path, os.path.join(TOP, "python", "worker.py"), "--adapter", name],
                             stderr=self.log, tensors_bytes=16 << 20)
        self.driver.prepare(bundle)

    def epochs(self, count):
        """([seconds of each epoch by the worker], seconds of all by the parent's clock)."""
        reply = self.driver.must("run", steps=count * self.steps, sync="blocks", every=self.steps, slot=0)
        data = self.driver.room[PAGE:PAGE + 16 * reply["records"]]
        instants = array.array("q", data).tolist()
        outside = self.driver.after_ns - self.driver.before_ns
        # Both clocks are the machine's monotonic one.
        assert self.driver.before_ns <= instants[0] and instants[-1] <= self.driver.after_ns, "an epoch outside of its run"
        assert instants == sorted(instants), "epochs overlap"
        return [(b - a) / 1e9 for a, b in zip(instants[::2], instants[1::2])], outside / 1e9

    def close(self):
        self.driver.close()
        self.log.close()
        self.folder.cleanup()


def judge(options, spelling):
    """The line of a framework, and whether its callbacks pass the test."""
    name, backend = spelling.split(":")
    path = interpreter(name, backend)
    if not path:
        return "%-18s not installed: prony framework install %s" % (spelling, spelling), True
    if backend == "theano":
        os.environ["PRONY_THEANO_COMPILEDIR"] = os.path.join(options.cache, name, "theano")
    os.environ["KERAS_HOME"] = os.path.join(options.cache, name)
    run = Run(path, name, backend, options, True)
    run.epochs(options.epochs)  # builds, compiles
    logs, apart, inside = [], [], []
    for _ in range(options.pairs):
        few, few_outside = run.epochs(options.epochs)
        many, many_outside = run.epochs(2 * options.epochs)
        outside = (many_outside - few_outside) / options.epochs
        inside.append(statistics.median(few + many))
        if outside > 0:
            logs.append(math.log(inside[-1] / outside))
        apart.append(1 - sum(many) / many_outside)
    run.close()
    run = Run(path, name, backend, options, False)
    run.epochs(1)
    alone = statistics.median(run.epochs(2 * options.epochs)[0])
    run.close()
    if len(logs) < 2:
        return "%-18s NOT MEASURED: more epochs took no longer; give more --epochs" % spelling, False
    ratio, low, high = interval(logs)
    word = "INCONCLUSIVE"
    if 1 - BOUND <= low and high <= 1 + BOUND:
        word = "AGREES"
    elif high < 1 - BOUND or low > 1 + BOUND:
        word = "DIFFERS"
    return ("%-18s %-12s inside / outside %.3f, 95 %% interval %.3f to %.3f; an epoch %.2f ms, %.1f %% of a run outside of epochs; "
            "step by step %.2f ms" % (spelling, word, ratio, low, high,
                                      1e3 * statistics.median(inside), 100 * statistics.median(apart), 1e3 * alone)), word != "DIFFERS"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("frameworks", nargs="*", metavar="NAME:BACKEND", help=", ".join(KERAS))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=20, help="of an epoch")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=7)
    options = parser.parse_args()
    unknown = [word for word in options.frameworks if word not in KERAS]
    if unknown:
        parser.error("no loop of its own, or no framework: %s; there are %s" % (", ".join(unknown), ", ".join(KERAS)))
    good = True
    with tempfile.TemporaryDirectory(prefix="prony-fit-cache-") as options.cache:
        for spelling in options.frameworks or KERAS:
            line, agrees = judge(options, spelling)
            print(line, flush=True)
            good = good and agrees
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
