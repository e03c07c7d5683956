#!/usr/bin/env python3
"""Drives the Python worker (and the Perl example) through the protocol.

null runs under every Python from 3.6 to 3.13 that is found (PATH, pyenv).
"""
import array
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import counted
from worker_driver import Bundle, Driver, mlp, small

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORKER = os.path.join(ROOT, "python", "worker.py")
PERL_WORKER = os.path.join(ROOT, "tests", "workers", "null.pl")
MINORS = range(6, 14)


def runs(python, code):
    """Standard output of a Python that runs `code`; None when it fails."""
    try:
        result = subprocess.run([python, "-c", code], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, timeout=120)
    except OSError:
        return None
    return result.stdout.decode().strip() if result.returncode == 0 else None


def find_pythons():
    """{"3.6": path ...} of the interpreters that work."""
    found = {}
    for minor in MINORS:
        word = "3.%d" % minor
        pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
        candidates = [os.environ.get("PRONY_PYTHON_3_%d" % minor), shutil.which("python" + word)]
        candidates += glob.glob(os.path.join(pyenv, "versions", word + ".*", "bin", "python" + word))
        for path in filter(None, candidates):
            if runs(path, "import sys; print('%d.%d' % sys.version_info[:2])") == word:
                found[word] = path
                break
    return found


PYTHONS = find_pythons()


class WorkerTest(unittest.TestCase):
    """A folder for bundles, and workers that end with the test."""

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.log = open(os.path.join(self.scratch.name, "stderr"), "w+")
        self.addCleanup(self.log.close)

    def bundle(self, graph, **recipe):
        folder = tempfile.mkdtemp(dir=self.scratch.name)
        return Bundle(folder, graph, **recipe)

    def driver(self, command, **how):
        driver = Driver(command, stderr=self.log, **how)
        self.addCleanup(lambda: driver.process.poll() is None and driver.finish())
        return driver

    def refused(self, reply, status, text):
        self.assertIs(reply["ok"], False, reply)
        self.assertEqual(reply["status"], status, reply)
        self.assertIn(text, reply["error"])
        self.assertNotIn("\n", reply["error"])


class NullTest(WorkerTest):
    """Every verb, with null."""

    def all_verbs(self, command, shared):
        bundle = self.bundle(small(4))
        driver = self.driver(command, shared=shared)
        greeting, opened, built = driver.prepare(bundle)
        self.assertEqual((greeting["protocol"], greeting["name"]), (2, "null"))
        self.assertIs(greeting["shared_memory"], shared and command[-1] != PERL_WORKER)
        self.assertEqual((greeting["rank"], greeting["world_size"]), (0, 1))
        self.assertEqual((opened["device"], opened["threads"], opened["precision"]),
                         ("cpu", 1, "fp32"))
        self.assertEqual((built["parameters"], built["macs"]), (None, None))
        self.assertEqual(len(driver.run(100, "end")), 1)
        self.assertEqual(len(driver.run(100, "step", slot=2)), 100)
        self.assertEqual(len(driver.run(100, "blocks", every=30)), 4)
        self.assertEqual(len(driver.run(90, "blocks", every=30)), 3)
        self.assertEqual(driver.read("logits"), {"logits": ([4, 5], [0.0] * 20)})
        self.assertEqual(driver.read("loss"), {"loss": ([], [0.0])})
        self.assertEqual(driver.read("state"), {})
        weights = {name: (bundle.shapes[name], data) for name, data in bundle.weights.items()}
        self.assertEqual(driver.read("weights"), weights)
        # Zeros, not the weights that lay in their place.
        self.assertEqual(driver.read("gradients"), {name: (shape, [0.0] * len(data))
                                                    for name, (shape, data) in weights.items()})
        self.assertEqual(driver.close(), 0)

    def python(self, version):
        if version not in PYTHONS:
            self.skipTest("no python%s on PATH or in pyenv, PRONY_PYTHON_%s is not set"
                          % (version, version.replace(".", "_")))
        for shared in (True, False):
            with self.subTest(shared=shared):
                self.all_verbs([PYTHONS[version], WORKER, "--adapter", "null"], shared)

    def test_perl(self):
        if not shutil.which("perl"):
            self.skipTest("no perl")
        self.all_verbs(["perl", PERL_WORKER], False)


for _minor in MINORS:
    setattr(NullTest, "test_python_3_%d" % _minor,
            lambda self, version="3.%d" % _minor: self.python(version))


EPOCHS = """
import sys
from adapters import null

class Adapter(null.Adapter):
    options = ("fit", "lazy")

    def fit(self, blocks, slot, mark):
        print(blocks, slot, file=sys.stderr)
        for _ in blocks:
            mark()
            if "lazy" not in self.case.options:
                mark()
"""


class EpochsTest(WorkerTest):
    """The option fit: blocks that a framework's own loop runs."""

    def started(self, *options):
        path = os.path.join(self.scratch.name, "epochs.py")
        with open(path, "w") as out:
            out.write(EPOCHS)
        driver = self.driver([sys.executable, WORKER, "--adapter", path])
        driver.prepare(self.bundle(small(4), options=list(options)))
        return driver

    def test_records(self):
        driver = self.started("fit")
        # Between epochs there is time that is none's, so records need not touch as they do without.
        for count, request in ((3, {"steps": 90, "sync": "blocks", "every": 30, "slot": 1}),
                               (1, {"steps": 7, "sync": "end", "slot": 0}),
                               (2, {"steps": 2, "sync": "step", "slot": 0})):
            reply = driver.must("run", **request)
            self.assertEqual(reply["records"], count)
            self.assertLess(reply["begin_at_ns"], reply["end_at_ns"])
        self.assertEqual(driver.close(), 0)
        self.log.seek(0)
        self.assertEqual(self.log.read(), "[30, 30, 30] 1\n[7] 0\n[1, 1] 0\n")

    def test_missing_end(self):
        driver = self.started("fit", "lazy")
        self.refused(driver.ask("run", steps=2, sync="step", slot=0), "crashed", "ran 1 of 2 blocks")

    def test_unknown(self):
        driver = self.driver([sys.executable, WORKER, "--adapter", "null"])
        self.refused(driver.ask("hello", **driver.greeting(options=["fit"])), "unsupported", "option fit")


class RefusalTest(WorkerTest):
    """What the worker refuses beside what `prony worker-check` asks of it (test_worker_check.py)."""

    def null(self, **how):
        return self.driver([sys.executable, WORKER, "--adapter", "null"], **how)

    def test_small_shared_memory(self):
        driver = self.null(tensors_bytes=4096)
        driver.prepare(self.bundle(mlp(2, width=16)))
        self.refused(driver.ask("read", what="weights"), "invalid", "shared memory has room for 4096")
        driver.run(1)
        self.assertEqual(len(driver.read("logits")["logits"][1]), 20)

    def test_bad_shared_memory(self):
        for size in (1 << 40, 8):
            driver = self.null()
            members = dict(driver.greeting(),
                           shared_memory={"fd": driver.shared_fd, "bytes": size})
            self.refused(driver.ask("hello", **members), "invalid", "shared memory")
        driver = self.null()
        driver.room[0] = 0
        self.refused(driver.ask("hello", **driver.greeting()), "invalid", "magic")

    def damaged(self, name, data):
        bundle, driver = self.bundle(small(4)), self.null()
        with open(os.path.join(bundle.folder, name), "wb") as out:
            out.write(data)
        driver.hello()
        return bundle, driver

    def test_damaged_tensors(self):
        far = json.dumps({"input.0": {"dtype": "F32", "shape": [4, 2, 9, 8],
                                  "data_offsets": [0, 2304]}}).encode()
        for data in (b"", b"abc", b"\xff" * 64, b"\x04" + bytes(7) + b"null",
                     array.array("Q", [len(far)]).tobytes() + far):
            bundle, driver = self.damaged("input.safetensors", data)
            driver.must("open", bundle=bundle.folder)
            driver.must("build")
            self.refused(driver.ask("feed", slot=0, batch=0), "invalid", "input.safetensors")

    def test_usage(self):
        for arguments in ([], ["--adapter"], ["--adapter", "nothing"]):
            result = subprocess.run([sys.executable, WORKER] + arguments, stderr=subprocess.PIPE)
            self.assertEqual(result.returncode, 64)
            self.assertIn(b"null, ", result.stderr)
            self.assertIn(b"pytorch", result.stderr)
        result = subprocess.run([sys.executable, WORKER, "--adapter", "null"],
                                stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 64)
        self.assertIn(b"docs/worker-protocol.md", result.stderr)

    def test_missing_framework(self):
        python = PYTHONS.get("3.6") or sys.executable
        if runs(python, "import torch") is not None:
            self.skipTest("this Python has torch")
        driver = self.driver([python, WORKER, "--adapter", "pytorch"])
        self.refused(driver.ask("hello", **driver.greeting()), "missing", "torch")
        self.assertEqual(driver.close(), 0)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(counted.main())
