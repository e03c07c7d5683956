#!/usr/bin/env python3
"""Tests whether an adapter is as fast as the framework's own published example (tests/native). Both processes are alive and run in
turn until the 95 % half width of the ratio is small enough.

    equivalence.py [--build BUILD] [--python NAME=INTERPRETER]... [PAIR...]     all pairs without a name
    equivalence.py --budget 5400 --page PAGE.md --heading "Quiet machine"       unattended: the table goes into that section of a page

A process of the script and one of the adapter's worker, started in random order, run blocks of the same number of steps as ABBA, BAAB,
...; the other one is stopped meanwhile. A pair of processes gives one ratio adapter / script: the mean of the middle half of its
rounds' logarithms. Its interval is Student's t on these ratios over pairs of processes, which differ more than blocks do. EQUIVALENT: the
interval lies within 0.98 to 1.02 (two one-sided tests of 2.5 % each) and is narrow or the time is over; SLOWER: the adapter is, by
more than that; FASTER: the script is slower (its Python loop has more to do), so the adapter is not handicapped; INCONCLUSIVE: neither. Exit status 0 when no pair is SLOWER. The worker is the one that `prony run` starts for
the cell, with its variables and bundle, after its gate. Scripts run in the environments that prony installed; where one has no Python
of its own (onnxruntime, openvino), --python or PRONY_NATIVE_PYTHON names one that imports the package. Standard library only.
"""
import argparse
import datetime
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from contenders import NATIVE, TOP, Adapter, Failed, Script, Worker

BOUNDS = 0.98, 1.02
# Wall time, and CPU time: other programs change CPU time less, spinning threads more.
CLOCKS = "wall", "cpu"
PROCESSES_LEAST = 3
# Seconds of a block, of the unrecorded steps in front of it, and of warming up.
BLOCK_S, SETTLE_S, WARM_UP_S = 0.25, 0.05, 2.0
PATIENCE_S = 900  # how much longer than its limit a pair may take before it is given up

# name: (script and its words, variables, environment that has its Python, words of prony run); the most telling first.
LENET, RESNET50 = "-n lenet -b 64 -s train", "-n resnet50 -b 4 -s train"
SEEN = "-n %s -b %d -s forward"
GPT2 = "-n gpt2-bytes -b 8 --sequence 128 -s "
PAIRS = {
    "tensorflow-lenet": ("tensorflow", {}, "tensorflow-python", "-f tensorflow " + LENET),
    "mxnet-lenet": ("mxnet", {}, "keras2=mxnet", "-f mxnet " + LENET),
    "xla-lenet": ("jax --plugin {xla}", {}, "jax", "-f xla " + LENET),
    "onnxruntime-resnet50": ("onnxruntime", {}, None, "-f onnxruntime " + SEEN % ("resnet50", 4)),
    "openvino-resnet50": ("openvino", {}, None, "-f openvino " + SEEN % ("resnet50", 4)),
    "pytorch-lenet": ("pytorch", {}, "pytorch", "-f pytorch " + LENET),
    "jax-lenet": ("jax", {}, "jax", "-f jax " + LENET),
    "keras3-tensorflow-lenet": ("keras", {"KERAS_BACKEND": "tensorflow"}, "keras3=tensorflow",
                                "-f keras3:tensorflow " + LENET),
    "keras3-jax-lenet": ("keras", {"KERAS_BACKEND": "jax"}, "keras3=jax", "-f keras3:jax " + LENET),
    "keras3-torch-lenet": ("keras", {"KERAS_BACKEND": "torch"}, "keras3=torch", "-f keras3:torch " + LENET),
    "tensorflow-resnet50": ("tensorflow", {}, "tensorflow-python", "-f tensorflow " + RESNET50),
    "tensorflow-fused-resnet50": ("tensorflow --fused", {}, "tensorflow-python", "-f tensorflow " + RESNET50),
    "mxnet-resnet50": ("mxnet", {}, "keras2=mxnet", "-f mxnet " + RESNET50),
    "pytorch-resnet50": ("pytorch", {}, "pytorch", "-f pytorch " + RESNET50),
    "xla-resnet50": ("jax --plugin {xla}", {}, "jax", "-f xla " + RESNET50),
    "xla-closed-resnet50": ("jax --plugin {xla} --closed", {}, "jax", "-f xla " + RESNET50),
    "pytorch-compile-lenet": ("pytorch --compile", {}, "pytorch", "-f pytorch+compile " + LENET),
    "pytorch-compile-resnet50": ("pytorch --compile", {}, "pytorch", "-f pytorch+compile " + RESNET50),
    "onnxruntime-lenet": ("onnxruntime", {}, None, "-f onnxruntime " + SEEN % ("lenet", 64)),
    "openvino-lenet": ("openvino", {}, None, "-f openvino " + SEEN % ("lenet", 64)),
    "pytorch-gpt2": ("pytorch", {}, "pytorch", "-f pytorch " + GPT2 + "train"),
    "jax-gpt2": ("jax", {}, "jax", "-f jax " + GPT2 + "train"),
    "tensorflow-python-gpt2": ("tensorflow", {}, "tensorflow-python", "-f tensorflow-python " + GPT2 + "train"),
    "keras3-jax-gpt2": ("keras", {"KERAS_BACKEND": "jax"}, "keras3=jax", "-f keras3:jax " + GPT2 + "train"),
    "keras3-tensorflow-gpt2": ("keras", {"KERAS_BACKEND": "tensorflow"}, "keras3=tensorflow",
                               "-f keras3:tensorflow " + GPT2 + "train"),
    "onnxruntime-gpt2": ("onnxruntime", {}, None, "-f onnxruntime " + GPT2 + "forward"),
    "openvino-gpt2": ("openvino", {}, None, "-f openvino " + GPT2 + "forward"),
    "tensorflow-python-lenet": ("tensorflow", {}, "tensorflow-python", "-f tensorflow-python " + LENET),
}
PAIRS.update((name + "-lenet", (name, {}, name, "-f %s %s" % (name, LENET)))
             for name in ("paddle", "chainer", "theano", "cntk", "caffe", "caffe2"))
# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
       2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]


def interval(logs):
    """(ratio, lower, upper) of logarithms of ratios; from one ratio alone it is only known to be above 0."""
    n = len(logs)
    mean = sum(logs) / n
    if n < 2:
        return math.exp(mean), 0.0, math.inf
    deviation = math.sqrt(sum((x - mean) ** 2 for x in logs) / (n - 1))
    half = (T95[n - 2] if n <= len(T95) + 1 else 1.96 + 2.5 / n) * deviation / math.sqrt(n)
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def verdict(low, high, wanted):
    """Word for an interval of a ratio; None while it is wider than wanted (math.inf: the time is over) and undecided."""
    narrow = (high - low) / 2 <= wanted
    if BOUNDS[0] <= low and high <= BOUNDS[1] and narrow:
        return "EQUIVALENT"
    if high < BOUNDS[0] or low > BOUNDS[1]:
        return "FASTER" if high < 1 else "SLOWER"
    return "INCONCLUSIVE" if narrow else None


def middle_mean(values):
    """Mean of the middle half: a disturbance of one block by another program does not count."""
    values = sorted(values)
    cut = len(values) // 4
    values = values[cut:len(values) - cut]
    return sum(values) / len(values)


def library(name, data):
    """The library that `prony framework install` installed for a framework."""
    found = {"xla": "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"}[name]
    return os.environ.get("PRONY_%s_LIBRARY" % name.upper()) or os.path.join(data, name, found)


class Pair(object):
    """Both sides of one row of PAIRS."""

    def __init__(self, options, name, folder):
        words, self.variables, environment, same = PAIRS[name]
        self.options, self.folder = options, folder
        same = same.split()
        asked = dict(zip(same[::2], same[1::2]))
        data = os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"),
                            "prony", "frameworks")
        words = [word.format(xla=library("xla", data)) if "{" in word else word for word in words.split()]
        self.command = [self.interpreter(words[0], environment and os.path.join(data, environment, "bin/python")),
                        os.path.join(NATIVE, words[0] + "_loop.py"), "--network", asked["-n"], "--batch",
                        asked["-b"], "--stage", asked["-s"]] + words[1:]
        program = os.path.join(options.build, "prony")
        if words[0] in ("onnxruntime", "openvino"):
            file = os.path.join(folder, "network.onnx")
            length = ["--sequence", asked["--sequence"]] if "--sequence" in asked else []
            subprocess.run([program, "network", asked["-n"], "-b", asked["-b"], "--onnx", file] + length, check=True,
                           stdout=subprocess.DEVNULL)
            self.command += ["--model", file]
        self.worker = Worker(program, same + ["-D", "cpu:%d" % options.threads], folder)

    def interpreter(self, script, installed):
        """The Python of a script; raises Failed if there is none."""
        for path in (self.options.pythons.get(script), installed, os.environ.get("PRONY_NATIVE_PYTHON")):
            if path and os.path.exists(path):
                return path
        raise Failed("no Python with %s: --python %s=INTERPRETER" % (script, script))

    def start(self, side):
        log = os.path.join(self.folder, side + ".log")
        return (Adapter(self.worker, log) if side == "adapter"
                else Script(self.command, self.variables, self.options.threads, log))

    def measure(self):
        """One process of each: {"logs": {clock: logarithm of the ratio}, "seconds": {side: of a step}, "versions": {side: text}}."""
        sides = {}
        try:
            for side in random.sample(["adapter", "script"], 2):
                sides[side] = self.start(side)
                step = sides[side].warm_up(WARM_UP_S, SETTLE_S)
            steps = max(1, int(round(BLOCK_S / step)))
            rounds, seen = [], {"adapter": [], "script": []}
            for turn in range(self.options.rounds):
                first, second = ("adapter", "script") if turn % 2 else ("script", "adapter")
                logs = dict.fromkeys(CLOCKS, 0.0)
                for side in (first, second, second, first):
                    took = sides[side].block(steps)
                    seen[side].append(took["wall"])
                    for clock in CLOCKS:
                        logs[clock] += math.log(took[clock]) / (2 if side == "adapter" else -2)
                rounds.append(logs)
            return {"logs": {clock: middle_mean([logs[clock] for logs in rounds]) for clock in CLOCKS},
                    "seconds": {side: middle_mean(times) for side, times in seen.items()},
                    "versions": {side: sides[side].version for side in sides}}
        finally:
            for side in sides.values():
                side.end()


class Judged(object):
    """The result of a pair: its row of the table. measured: as Pair.measure returns it, of each pair of processes."""

    def __init__(self, name, word, why="", measured=()):
        self.name, self.word, self.why, self.measured = name, word, why, list(measured)

    def limits(self, clock):
        ratio, low, high = interval([one["logs"][clock] for one in self.measured])
        return "%.3f | %s" % (ratio, "%.3f to %.3f" % (low, high) if len(self.measured) > 1 else "-")

    def row(self):
        if not self.measured:
            return "| `%s` | - | - | - | - | - | - | - | - | - | %s: %s |" % (self.name, self.word, self.why)
        last = self.measured[-1]
        return "| `%s` | %s | %s | %.2f | %.2f | %d | %s | %s | %s |" % (
            self.name, last["versions"]["adapter"], last["versions"]["script"], 1e3 * last["seconds"]["adapter"],
            1e3 * last["seconds"]["script"], len(self.measured), self.limits("wall"), self.limits("cpu"), self.word)


def judge(options, name, folder, end):
    """Measures pairs of processes until the pair is decided or the time is over; returns Judged."""
    pair, measured, word = Pair(options, name, folder), [], None
    while word is None and (not measured or time.monotonic() < end):
        measured.append(pair.measure())
        ratio, low, high = interval([one["logs"][options.clock] for one in measured])
        if len(measured) >= PROCESSES_LEAST:
            word = verdict(low, high, options.half_width)
        last = measured[-1]
        print("%s: %d processes each, %.4f [%.4f, %.4f]; this one %s, %.3f ms / %.3f ms" % (
            name, len(measured), ratio, low, high,
            ", ".join("%s %.4f" % (clock, math.exp(log)) for clock, log in last["logs"].items()),
            1e3 * last["seconds"]["adapter"], 1e3 * last["seconds"]["script"]), file=sys.stderr)
    if len(measured) >= PROCESSES_LEAST:
        word = word or verdict(low, high, math.inf)
    return Judged(name, word or "INCONCLUSIVE", "", measured)


def table(options, judged):
    lines = ["%s, %d threads; `tests/bench/equivalence.py --clock %s --half-width %g --limit %g --rounds %d`. Times of a step are those "
             "of the last processes; ratios are adapter / script." % (
                 datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), options.threads,
                 options.clock, options.half_width, options.limit, options.rounds), "",
             "| pair | adapter | script | adapter ms | script ms | processes of each | step | 95 % interval "
             "| processor time | 95 % interval | verdict |",
             "| --- | --- | --- | ---: | ---: | ---: | ---: | --- | ---: | --- | --- |"]
    return "\n".join(lines + [row.row() for row in judged]) + "\n"


def put_section(path, heading, text):
    """Replaces the section `## heading` of a page, or adds it at the end."""
    page, head = "", "## %s\n" % heading
    if os.path.exists(path):
        with open(path, encoding="utf-8") as stream:
            page = stream.read()
    before, found, rest = page.partition(head)
    behind = rest.partition("\n## ")
    after = "\n## " + behind[2] if found and behind[1] else ""
    with open(path + ".new", "w", encoding="utf-8") as stream:
        stream.write(before if found else page.rstrip("\n") + "\n\n" if page else "")
        stream.write(head + "\n" + text + after)
    os.replace(path + ".new", path)


def give_up(signum, frame):
    raise Failed("no answer within %d s of its limit" % PATIENCE_S)


def try_pair(options, name, end):
    if time.monotonic() >= end:
        return Judged(name, "NOT RUN", "the time was over")
    limit = min(options.limit, end - time.monotonic())
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(int(limit) + PATIENCE_S)
    try:
        with tempfile.TemporaryDirectory(prefix="prony-equivalence-") as folder:
            return judge(options, name, folder, time.monotonic() + limit)
    except (Failed, subprocess.CalledProcessError) as failure:
        return Judged(name, "NOT MEASURED", str(failure))
    finally:
        signal.alarm(0)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="*", metavar="PAIR", help=", ".join(PAIRS))
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--python", action="append", default=[], metavar="NAME=INTERPRETER")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=12, help="ABBA rounds of a pair of processes")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="the ratio that is judged")
    parser.add_argument("--half-width", type=float, default=0.01)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for a pair")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds for all of them")
    parser.add_argument("--page", metavar="FILE", help="Markdown page that gets the table after each pair")
    parser.add_argument("--heading", default="Adapter against native script", help="of its section there")
    options = parser.parse_args()
    options.pythons = dict(word.split("=", 1) for word in options.python)
    unknown = [name for name in options.pairs if name not in PAIRS]
    if unknown:
        parser.error("no pair %s; there are %s" % (", ".join(unknown), ", ".join(PAIRS)))
    if options.rounds < 1:
        parser.error("--rounds %d: one at least" % options.rounds)
    return options


def main():
    options, judged = parsed(), []
    end = time.monotonic() + options.budget
    # As many cores as the adapter's worker is bound to.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    for name in options.pairs or PAIRS:
        judged.append(try_pair(options, name, end))
        print(judged[-1].row(), flush=True)
        if options.page:
            put_section(options.page, options.heading, table(options, judged))
    if not options.page:
        print("\n" + table(options, judged))
    sys.exit(1 if any(row.word == "SLOWER" for row in judged) else 0)


if __name__ == "__main__":
    main()
