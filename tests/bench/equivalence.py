#!/usr/bin/env python3
"""Whether an adapter is as fast as the framework's own published example (tests/native): interleaved pairs of processes until the 95 %
half width of the ratio is small enough.

    equivalence.py [--build BUILD] [--python NAME=INTERPRETER]... [PAIR...]     all pairs without a name

A pair is one process of the script and one of `prony run` (--repeat 1, gated once), in random order. The ratio is adapter / script of
the time of a step, its interval Student's t on the logarithms over pairs. EQUIVALENT: the interval lies within 0.98 to 1.02;
DIFFERENT: it lies outside; INCONCLUSIVE: neither, when the half width is reached or the time is over. Exit status 0 when no pair is
DIFFERENT. Scripts run in the environments that prony installed; where one has no Python of its own (onnxruntime, openvino, mxnet),
--python or PRONY_NATIVE_PYTHON names one that imports the package. Standard library only.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
NATIVE = os.path.join(TOP, "tests", "native")
BOUNDS = 0.98, 1.02
PAIRS_LEAST = 5

# name: (script, its words, variables, environment that has its Python, the same to prony run)
PAIRS = {
    "pytorch-lenet": ("pytorch", "--network lenet", {}, "pytorch", "-f pytorch -n lenet -b 64"),
    "pytorch-resnet50": ("pytorch", "--network resnet50 --batch 4", {}, "pytorch",
                         "-f pytorch -n resnet50 -b 4"),
    "pytorch-lenet-compile": ("pytorch", "--network lenet --compile", {}, "pytorch",
                              "-f pytorch+compile -n lenet -b 64"),
    "pytorch-resnet50-compile": ("pytorch", "--network resnet50 --batch 4 --compile", {}, "pytorch",
                                 "-f pytorch+compile -n resnet50 -b 4"),
    "keras3-tensorflow-lenet": ("keras", "--network lenet", {"KERAS_BACKEND": "tensorflow"},
                                "keras3=tensorflow", "-f keras3:tensorflow -n lenet -b 64"),
    "keras3-jax-lenet": ("keras", "--network lenet", {"KERAS_BACKEND": "jax"}, "keras3=jax",
                         "-f keras3:jax -n lenet -b 64"),
    "keras3-jax-vgg16": ("keras", "--network vgg16 --batch 4", {"KERAS_BACKEND": "jax"}, "keras3=jax",
                         "-f keras3:jax -n vgg16 -b 4 --dropout off"),
    "jax-lenet": ("jax", "--network lenet", {}, "jax", "-f jax -n lenet -b 64"),
    "tensorflow-python-lenet": ("tensorflow", "", {}, "tensorflow-python",
                                "-f tensorflow-python -n lenet -b 64"),
    "tensorflow-lenet": ("tensorflow", "", {}, "tensorflow-python", "-f tensorflow -n lenet -b 64"),
    "mxnet-lenet": ("mxnet", "", {}, "keras2=mxnet", "-f mxnet -n lenet -b 64"),
    "onnxruntime-resnet50": ("onnxruntime", "--network resnet50 --batch 4 --stage forward", {}, None,
                             "-f onnxruntime -n resnet50 -b 4"),
    "openvino-resnet50": ("openvino", "--network resnet50 --batch 4 --stage forward", {}, None,
                          "-f openvino -n resnet50 -b 4"),
}
# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
       2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]


class Failed(Exception):
    """A side that did not run, with its last words."""


def interval(logs):
    """(ratio, lower, upper) of logarithms of ratios; at least two."""
    n = len(logs)
    mean = sum(logs) / n
    deviation = math.sqrt(sum((x - mean) ** 2 for x in logs) / (n - 1))
    half = (T95[n - 2] if n <= len(T95) else 1.96 + 2.5 / n) * deviation / math.sqrt(n)
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def verdict(low, high, wanted):
    """Word for an interval of a ratio; None while it is wider than wanted and undecided."""
    narrow = (high - low) / 2 <= wanted
    if BOUNDS[0] <= low and high <= BOUNDS[1] and narrow:
        return "EQUIVALENT"
    if high < BOUNDS[0] or low > BOUNDS[1]:
        return "DIFFERENT"
    return "INCONCLUSIVE" if narrow else None


def interpreter(options, script, environment):
    """The Python of a script; Failed when there is none."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    candidates = [options.pythons.get(script)]
    if environment:
        candidates.append(os.path.join(data, "prony/frameworks", environment, "bin/python"))
    candidates.append(os.environ.get("PRONY_NATIVE_PYTHON"))
    for path in filter(None, candidates):
        if os.path.exists(path):
            return path
    raise Failed("no Python with %s: --python %s=INTERPRETER" % (script, script))


def answer(command, environment):
    """The last line of what a program prints, and how it ended."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment, check=False)
    return done.returncode, done.stdout, "\n".join(done.stderr.splitlines()[-3:])


class Pair(object):
    """Both sides of one row of PAIRS."""

    def __init__(self, options, name, folder):
        script, words, variables, environment, same = PAIRS[name]
        forward = options.stage == "forward" or "--stage forward" in words
        stage = "forward" if forward else "train"
        self.threads = options.threads
        self.command = [interpreter(options, script, environment),
                        os.path.join(NATIVE, script + "_loop.py"), "--threads", str(options.threads),
                        "--seconds", str(options.seconds)] + words.split()
        if "--stage" not in words:
            self.command += ["--stage", stage]
        self.environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **variables)
        for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            self.environment[variable] = str(options.threads)
        program = os.path.join(options.build, "prony")
        if script in ("onnxruntime", "openvino"):
            file, words = os.path.join(folder, name + ".onnx"), same.split()
            subprocess.run([program, "network", words[words.index("-n") + 1], "--onnx", file], check=True,
                           stdout=subprocess.DEVNULL)
            self.command += ["--model", file]
        self.run = [program, "run"] + same.split() + [
            "-s", stage, "-D", "cpu:%d" % options.threads, "-d", "synthetic", "--repeat", "1", "--store",
            os.path.join(folder, name + ".db"), "--format", "json"]

    def script(self):
        """Seconds of a step of the script."""
        # As many cores as the adapter's worker is bound to.
        bound = ["taskset", "-c", ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:self.threads])]
        code, out, err = answer(bound + self.command, self.environment)
        if code != 0:
            raise Failed("%s: exit code %d: %s" % (" ".join(self.command), code, err))
        return json.loads(out.splitlines()[-1])["step_seconds"]

    def adapter(self):
        """Seconds of a step of the adapter."""
        code, out, err = answer(self.run, None)
        try:
            cell = json.loads(out)["cells"][0]
        except (ValueError, IndexError):
            raise Failed("%s: exit code %d: %s" % (" ".join(self.run), code, err))
        if cell["status"] != "ok":
            raise Failed("%s: %s: %s" % (" ".join(self.run), cell["status"], cell["reason"]))
        return cell["step"]["center_ns"] / 1e9


def judge(options, name, folder):
    """The line of a pair, and its verdict."""
    pair, logs, end = Pair(options, name, folder), [], time.monotonic() + options.limit
    pair.adapter()  # the gate, and files that are read for the first time
    pair.script()
    word = None
    while word is None and time.monotonic() < end:
        sides = [("script", pair.script), ("adapter", pair.adapter)]
        random.shuffle(sides)
        seen = {side: measure() for side, measure in sides}
        logs.append(math.log(seen["adapter"] / seen["script"]))
        if len(logs) >= PAIRS_LEAST:
            ratio, low, high = interval(logs)
            word = verdict(low, high, options.half_width)
            print("%s: %d pairs, %.4f [%.4f, %.4f]" % (name, len(logs), ratio, low, high),
                  file=sys.stderr)
    if len(logs) < 2:
        return "%-26s INCONCLUSIVE: the time was over after %d pairs" % (name, len(logs)), "INCONCLUSIVE"
    ratio, low, high = interval(logs)
    word = word or "INCONCLUSIVE"
    return ("%-26s %-12s adapter / script %.4f, 95 %% interval %.4f to %.4f, %d pairs, last %.3f ms / %.3f ms"
            % (name, word, ratio, low, high, len(logs), 1e3 * seen["adapter"], 1e3 * seen["script"])), word


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="*", metavar="PAIR", help=", ".join(PAIRS))
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--python", action="append", default=[], metavar="NAME=INTERPRETER")
    parser.add_argument("--stage", choices=["train", "forward"], default="train")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a script's measuring")
    parser.add_argument("--half-width", type=float, default=0.01)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for a pair of PAIRS")
    options = parser.parse_args()
    options.pythons = dict(word.split("=", 1) for word in options.python)
    unknown = [name for name in options.pairs if name not in PAIRS]
    if unknown:
        parser.error("no pair %s; there are %s" % (", ".join(unknown), ", ".join(PAIRS)))
    words = []
    with tempfile.TemporaryDirectory(prefix="prony-equivalence-") as folder:
        for name in options.pairs or PAIRS:
            try:
                line, word = judge(options, name, folder)
            except Failed as failure:
                line, word = "%-26s NOT MEASURED: %s" % (name, failure), "NOT MEASURED"
            print(line, flush=True)
            words.append(word)
    sys.exit(1 if "DIFFERENT" in words else 0)


if __name__ == "__main__":
    main()
