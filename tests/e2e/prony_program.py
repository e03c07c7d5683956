"""build/prony in a test: a data home of its own, its store, and the processes that it started.

$PRONY names the program.
"""
import functools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

PRONY = os.environ.get("PRONY", "build/prony")
# What lends a test the frameworks that are installed on this machine.
HOME = {"XDG_DATA_HOME": os.environ.get("XDG_DATA_HOME", "")}
# Set in the environment of everything a test starts, so that what stays behind can be found.
MARK = "PRONY_TEST_MARK"
PATIENCE_S = 240


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def read_bytes(path):
    with open(path, "rb") as stream:
        return stream.read()


def write(path, content):
    """Text or bytes."""
    with open(path, "wb") as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


def timed(check, tries=3):
    """A check with bounds on times: what else runs on the machine may spoil one try, a fault spoils each.

    Every try has a folder of its own, and what failed in one that was not the last is written.
    """
    @functools.wraps(check)
    def tried(self, *words, **more):
        for left in reversed(range(tries)):
            try:
                return check(self, *words, **more)
            except AssertionError as error:
                if not left:
                    raise
                print(f"{self.id()}, {left} more tries: {error}", file=sys.stderr)
            self.doCleanups()
            self.setUp()
    return tried


def write_cifar10_sample(folder):
    """CIFAR-10's files with black pictures, enough for cifar10-sample; path of the evaluation file."""
    os.makedirs(folder)
    for name, count in (("data_batch_1.bin", 10000), ("test_batch.bin", 2000)):
        with open(os.path.join(folder, name), "wb") as stream:
            stream.writelines(bytes([i % 10]) + bytes(3072) for i in range(count))
    with open(os.path.join(folder, "batches.meta.txt"), "w", encoding="ascii") as stream:
        stream.write("".join(f"name{i}\n" for i in range(10)))
    return os.path.join(folder, "test_batch.bin")


def marked_processes(mark):
    """pid -> command line of the living processes that carry the mark."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as stream:
                if f"{MARK}={mark}".encode() not in stream.read().split(b"\0"):
                    continue
            with open(f"/proc/{pid}/cmdline", "rb") as stream:
                words = stream.read().split(b"\0")
            with open(f"/proc/{pid}/stat", "rb") as stream:
                if stream.read().rpartition(b")")[2].split()[0] in (b"Z", b"X"):
                    continue
        except OSError:
            continue
        found[int(pid)] = b" ".join(words).decode(errors="replace").strip()
    return found


class ProgramTest(unittest.TestCase):
    """A scratch folder and data home for each test; nothing of it may be running at its end."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="prony-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.mark = os.path.basename(self.folder)
        self.store = os.path.join(self.folder, "store.db")
        self.environment = {
            **os.environ, MARK: self.mark, "XDG_DATA_HOME": self.folder, "XDG_DATA_DIRS": "/nowhere",
            "XDG_CONFIG_HOME": os.path.join(self.folder, "config"),
            "XDG_CACHE_HOME": os.path.join(self.folder, "cache"),
            "TMPDIR": self.folder, "PRONY_LOCK": os.path.join(self.folder, "lock"),
        }
        self.addCleanup(self.end_all)

    def end_all(self):
        """Kills what carries the mark now, and says what that was."""
        found = marked_processes(self.mark)
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return found

    def prony(self, *words, expect=None, seconds=PATIENCE_S, **more):
        done = subprocess.run([PRONY, *words], env={**self.environment, **more}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds,
                              errors="replace", check=False)
        if expect is not None:
            self.assertEqual(done.returncode, expect,
                             f"{' '.join(words)}\n{done.stdout}\n{done.stderr}")
        return done

    def ready(self):
        """Rows of the frameworks that are ready on this machine, as `prony list` has them."""
        done = self.prony("list", "frameworks", "--format", "json", expect=0, **HOME)
        return [row for row in json.loads(done.stdout) if row["status"] == "ready"]

    def start(self, *words, log=None, program=PRONY, stdout=None):
        stream = open(log or os.devnull, "ab")
        self.addCleanup(stream.close)
        return subprocess.Popen([program, *words], env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=stream if stdout is None else stdout, stderr=stream)

    def assert_nothing_stays(self, seconds=60):
        """Waits for the last to be reaped; what is not told to end lives longer than that."""
        deadline = time.monotonic() + seconds
        while True:
            left = marked_processes(self.mark)
            if not left:
                return
            if time.monotonic() > deadline:
                self.fail(f"processes stayed behind: {left}")
            time.sleep(0.02)

    def rows(self, query, *values):
        """Rows of the store; none while it does not exist or has no tables yet."""
        try:
            base = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, timeout=10)
        except sqlite3.OperationalError:
            return []
        try:
            return base.execute(query, values).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error) or "unable to open" in str(error):
                return []
            raise
        finally:
            base.close()


class KeptReferencesTest(ProgramTest):
    """The tests of a class share `kept`, a folder with the cache of the reference's answers."""

    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.mkdtemp(prefix="prony-test-")
        cls.addClassCleanup(shutil.rmtree, cls.kept)

    def setUp(self):
        super().setUp()
        self.environment["XDG_CACHE_HOME"] = os.path.join(self.kept, "cache")
