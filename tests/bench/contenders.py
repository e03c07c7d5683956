"""The two sides that equivalence.py compares. Each is a process that computes blocks of steps on request and is stopped (SIGSTOP)
while the other one runs: a script of tests/native, and the worker of an adapter, as `prony run` starts it.

Standard library only.
"""
import glob
import json
import os
import signal
import subprocess
import sys
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
NATIVE = os.path.join(TOP, "tests", "native")
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
import worker_driver  # noqa: E402

MARK = "PRONY_EQUIVALENCE_MARK"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
LOOK_S = 0.05  # between two looks at the processes of `prony run`
LOG_LINES = 3
# The largest read of a worker is none: nothing is read here.
NOTHING_READ = 1 << 16


class Failed(Exception):
    """A side that did not run, with its last words."""


def last_words(path):
    with open(path, "rb") as stream:
        lines = stream.read()[-4000:].decode(errors="replace").splitlines()
    return "; ".join([line.strip() for line in lines if line.strip()][-LOG_LINES:]).replace("|", "/")


class Side(object):
    """A process that computes blocks on request. Only the id of `process` is used here."""

    def block(self, steps):
        """{"wall", "cpu"}: seconds of a step on the clock and of all its threads; the process runs from here to the end of the block
        only."""
        os.kill(self.process.pid, signal.SIGCONT)
        # The cost of waking up, threads and caches, belongs to neither side.
        self.steps(self.settle)
        begin = self.cpu_seconds()
        wall = self.steps(steps)
        took = {"wall": wall / steps, "cpu": (self.cpu_seconds() - begin) / steps}
        os.kill(self.process.pid, signal.SIGSTOP)
        return took

    def cpu_seconds(self):
        # clock_getcpuclockid(3): Linux derives the clock of a process from its id.
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def warm_up(self, seconds, settle_seconds):
        """Runs for that time; returns the seconds of a step after it."""
        end = time.monotonic() + seconds
        step = self.steps(1)
        while time.monotonic() < end:
            step = self.steps(max(1, int(0.1 / step)))
            step = self.steps(1)
        self.settle = max(1, int(settle_seconds / step))
        os.kill(self.process.pid, signal.SIGSTOP)
        return step


class Script(Side):
    """A script of tests/native with --serve."""

    def __init__(self, command, variables, threads, log):
        self.log = log
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **variables)
        environment.update((name, str(threads)) for name in THREAD_VARIABLES)
        with open(log, "wb") as stream:
            self.process = subprocess.Popen(
                command + ["--serve", "--warm-up", "1", "--threads", str(threads)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=stream, env=environment, cwd=os.path.dirname(log))
        self.version = self.answer("version")

    def answer(self, member):
        """That member of the script's next own line; frameworks may print other lines."""
        for line in iter(self.process.stdout.readline, b""):
            try:
                return json.loads(line.decode())[member]
            except (ValueError, KeyError, TypeError):
                continue
        code = self.process.wait()
        self.end()
        raise Failed("the script ended with exit code %d: %s" % (code, last_words(self.log)))

    def steps(self, count):
        try:
            self.process.stdin.write(b"%d\n" % count)
            self.process.stdin.flush()
        except OSError:
            pass  # answer() says why
        return self.answer("seconds")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Worker(object):
    """How `prony run` starts the worker of a cell, and the worker's bundle; the cell passed the gate and was timed."""

    def __init__(self, program, words, folder):
        self.folder, bundles = folder, os.path.join(folder, "bundles")
        self.argv = None
        command = [program, "run"] + words + [
            "-d", "synthetic", "--repeat", "1", "--steps", "1", "--warm-up", "1", "--keep-bundle", bundles,
            "--store", os.path.join(folder, "store.db"), "--timeout", "1200", "--format", "json"]
        mark = folder
        environment = dict(os.environ, **{MARK: mark})
        with open(os.path.join(folder, "run.json"), "wb") as out, open(os.path.join(folder, "run.log"), "wb") as err:
            process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        try:
            while process.poll() is None and not self.argv:
                self.look(mark)
                time.sleep(LOOK_S)
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        self.cell = self.read_cell(command)
        if not self.argv:
            raise Failed("%s: its worker was not seen" % " ".join(command))
        bundle = glob.glob(os.path.join(bundles, "*-case"))[0]
        with open(os.path.join(bundle, "case.json"), encoding="utf-8") as stream:
            recipe = json.load(stream)["recipe"]
        self.bundle = types.SimpleNamespace(folder=bundle, recipe=recipe, target=self.target())

    def read_cell(self, command):
        with open(os.path.join(self.folder, "run.json"), encoding="utf-8") as stream:
            text = stream.read()
        try:
            cell = json.loads(text)["cells"][0]
        except (ValueError, LookupError):
            raise Failed("%s: %s" % (" ".join(command), last_words(os.path.join(self.folder, "run.log"))))
        if cell["status"] != "ok":
            raise Failed("prony run: %s: %s" % (cell["status"], cell["reason"]))
        return cell

    def look(self, mark):
        """Keeps command and environment of the worker if one is running; the gate's worker has the same."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as stream:
                    rows = stream.read().split(b"\0")
                if ("%s=%s" % (MARK, mark)).encode() not in rows:
                    continue
                with open("/proc/%s/cmdline" % pid, "rb") as stream:
                    words = stream.read().decode().split("\0")[:-1]
            except OSError:
                continue
            if "--adapter" in words and words[1] != "guard":
                self.argv = words
                self.variables = dict(row.decode().split("=", 1) for row in rows if b"=" in row)

    def target(self):
        """The target of the hello request; the recipe contains the cores."""
        name, *options = self.cell["framework"].split("+")
        return {"device": self.cell["device"].split(":")[0], "backend": name.partition(":")[2],
                "options": options}


class Adapter(Side):
    """A worker, built and fed."""

    def __init__(self, worker, log):
        self.slot, self.slots = 0, worker.bundle.recipe["slots"]
        with open(log, "wb") as stream:
            self.driver = worker_driver.Driver(worker.argv, tensors_bytes=NOTHING_READ, stderr=stream, stdout=stream,
                                               variables=worker.variables)
        self.process = self.driver.process
        try:
            self.version = self.driver.prepare(worker.bundle)[0]["version"]
        except (AssertionError, EOFError, OSError) as problem:
            self.end()
            raise Failed("the worker: %s: %s" % (problem, last_words(log)))

    def steps(self, count):
        try:
            records = self.driver.run(count, "end", self.slot)
        except (AssertionError, EOFError, OSError) as problem:
            raise Failed("the worker: %s" % problem)
        self.slot = (self.slot + count) % self.slots
        return (records[-1][1] - records[0][0]) / 1e9

    def end(self):
        self.process.kill()
        self.process.wait()
        self.driver.finish()
