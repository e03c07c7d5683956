#!/usr/bin/env python3
"""What somebody puts in prony's way: limits, pipes, masks, variables, copies of the tree.

$PRONY names the program, $PRONY_SOURCE the source tree.
"""
import json
import os
import resource
import shutil
import stat
import subprocess
import sys
import unittest

import counted
from prony_program import PRONY, ProgramTest, read, write

SOURCE = os.path.abspath(os.environ.get("PRONY_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..")))
USAGE = 64


class SturdyTest(ProgramTest):
    def child(self, *words, before=None, program=PRONY, stdout=subprocess.PIPE, **more):
        return subprocess.run([program, *words], env={**self.environment, **more}, text=True, cwd=self.folder,
                              stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, timeout=120,
                              preexec_fn=before, check=False)

    def run_words(self):
        return ("run", "-n", "mlp", "-f", "fake", "-b", "4", "-s", "forward", "-d", "synthetic", "--quick", "--steps", "2",
                "--warm-up", "1", "--repeat", "1", "--store", self.store)


class LimitTest(SturdyTest):
    def limited(self, *words, **more):
        done = self.child(*words, before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)), **more)
        self.assertGreater(done.returncode, 0, done.stderr)
        return done.stderr

    def test_a_limit_of_file_sizes_is_said(self):
        self.assertIn("ulimit -f", self.limited("network", "lenet", "--onnx", "lenet.onnx"))
        with open(os.path.join(self.folder, "out"), "wb") as out:
            self.assertIn("ulimit -f", self.limited("list", "metrics", "--format", "json", stdout=out))

    def test_limits_of_stack_and_open_files_are_said(self):
        def limit(which, most):
            return self.child(*self.run_words(), before=lambda: resource.setrlimit(which, (most, most)))
        done = limit(resource.RLIMIT_STACK, 100 << 10)
        self.assertIn("the stack is limited to 100 KiB (ulimit -s)", done.stderr)
        for most in (6, 12, 24):
            self.assertIn("ulimit -n", limit(resource.RLIMIT_NOFILE, most).stderr)

    def test_a_store_that_cannot_grow_says_so(self):
        text = self.limited(*self.run_words())
        self.assertIn(self.store, text)
        self.assertIn("ulimit -f", text)

    def test_a_worker_gets_its_signal_as_usual(self):
        done = self.child("run", "--worker", "mine=sh -c 'ulimit -f 1; head -c 100000 /dev/zero >zeros'", "-f", "mine",
                          "-n", "mlp", "-b", "4", "-s", "forward", "--store", self.store, "--format", "json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertLessEqual(os.path.getsize(os.path.join(self.folder, "zeros")), 1024)


class LockTest(SturdyTest):
    def test_a_pipe_in_its_place_is_refused(self):
        lock = self.environment["PRONY_LOCK"]
        os.mkfifo(lock)
        done = self.child(*self.run_words())
        self.assertGreater(done.returncode, 0)
        self.assertIn(f"the lock {lock} is a pipe", done.stderr)


    def test_a_lock_that_is_removed_ends_the_run(self):
        lock = self.environment["PRONY_LOCK"]
        words = [word if word != "1" or before != "--repeat" else "3"
                 for before, word in zip(("",) + self.run_words(), self.run_words())]
        done = self.child(*words, "--setup", f"if [ -e begun ]; then rm -f '{lock}'; fi; touch begun")
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn(f"the lock {lock} was removed or replaced", done.stderr)
        self.assertEqual(self.rows("SELECT count(*) FROM process"), [(2,)])


class MaskTest(SturdyTest):
    def test_what_is_trusted_later_is_not_everybodys_to_write(self):
        done = self.child(*self.run_words(), before=lambda: os.umask(0))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.child("list", "frameworks", before=lambda: os.umask(0))
        found = 0
        for top in ("prony", "cache"):
            for folder, folders, files in os.walk(os.path.join(self.folder, top)):
                for name in folders + files:
                    path = os.path.join(folder, name)
                    found += 1
                    self.assertFalse(os.stat(path).st_mode & stat.S_IWOTH, path)
        self.assertGreater(found, 2)


class CopyTest(SturdyTest):
    def test_a_copied_build_has_its_own_files(self):
        copy = os.path.join(self.folder, "copy")
        build = os.path.join(copy, "build")
        os.makedirs(os.path.join(build, "meson-info"))
        os.makedirs(os.path.join(copy, "suites"))
        shutil.copy(PRONY, os.path.join(build, "prony"))
        original = os.path.dirname(os.path.abspath(PRONY))
        shutil.copy(os.path.join(original, "meson-info", "meson-info.json"), os.path.join(build, "meson-info"))
        with open(os.path.join(copy, "meson.build"), "w", encoding="utf-8"):
            pass
        shutil.copy(os.path.join(SOURCE, "suites", "quickstart.yaml"), os.path.join(copy, "suites", "mine.yaml"))
        done = self.child("list", "suites", "--format", "json", program=os.path.join(build, "prony"))
        self.assertEqual([row["suite"] for row in json.loads(done.stdout)], ["mine"], done.stderr)


class ReplacedTest(SturdyTest):
    def test_a_program_that_is_replaced_ends_the_run(self):
        program = os.path.join(self.folder, "prony")
        shutil.copy(PRONY, program)
        # Before the second of three processes: the third would be another program's.
        setup = f"if [ -e begun ]; then cp '{program}' new && mv new '{program}'; fi; touch begun"
        words = [word if word != "1" or before != "--repeat" else "3"
                 for before, word in zip(("",) + self.run_words(), self.run_words())]
        done = self.child(*words, "--setup", setup, program=program, PRONY_SHARE=SOURCE)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("was replaced or removed during this run", done.stderr)
        shown = json.loads(self.child("export", "--format", "json", "--store", self.store).stdout)
        self.assertEqual(len(shown["cells"][0]["processes"]), 2)


class SudoTest(SturdyTest):
    @unittest.skipIf(os.geteuid() != 0, "needs root's rights")
    def test_variables_that_decide_what_root_loads_are_said(self):
        more = {"PRONY_NATIVE_LIBRARY": "/home/somebody/libdnnl.so", "PRONY_SHARE": SOURCE}
        done = self.child("list", "networks", SUDO_UID="1000", **more)
        self.assertEqual(done.returncode, 0)
        for name, value in more.items():
            self.assertIn(f"under sudo, {name}={value} selects code that runs as root", done.stderr)
        self.assertNotIn("sudo", self.child("list", "networks", SUDO_UID="0", **more).stderr)


class WorkerTest(SturdyTest):
    def cell_of(self, old, new, before=""):
        """The cell of null.pl with a piece of its source replaced, and with commands before it."""
        text = read(os.path.join(SOURCE, "tests", "workers", "null.pl")).replace("name => 'null'", "name => 'mine'")
        self.assertIn(old, text)
        worker = os.path.join(self.folder, "worker.pl")
        write(worker, text.replace(old, new))
        done = self.child("run", "--worker", f"mine={before}perl {worker}", "-f", "mine", "-n", "mlp", "-b", "4", "-s",
                          "forward", "-d", "synthetic", "--quick", "--steps", "2", "--repeat", "1", "--timeout", "60",
                          "--store", self.store, "--format", "json")
        return json.loads(done.stdout)["cells"][0]

    def test_a_count_is_a_whole_number_or_unknown(self):
        for value in ("-9223372036854775808", "-1", "1.5", "'many'"):
            cell = self.cell_of("parameters => undef", "parameters => " + value)
            self.assertEqual(cell["status"], "invalid", cell)
            self.assertIn("parameters in its reply to build", cell["reason"])

    def test_a_hello_that_cannot_be_shown_is_refused(self):
        for old, new, part in (("version => ", "versions => ", "has no version"),
                               ("version => ", "version => undef, versions => ", "has no version"),
                               ("libraries => {", "libraries => {a => qq(\\e[31m), ", "control character in libraries"),
                               ("import_ns => ", "import_ns => -7, not_ns => ", "states import_ns -7")):
            cell = self.cell_of(old, new)
            self.assertEqual(cell["status"], "crashed", cell)
            self.assertIn(part, cell["reason"])

    def test_a_worker_that_traces_itself_goes_on(self):
        """Its guard is the tracer then: it stops at every signal and at exec."""
        tracer = os.path.join(self.folder, "tracer.py")
        with open(tracer, "w", encoding="utf-8") as stream:
            stream.write("import ctypes, os, sys\nctypes.CDLL(None).ptrace(0, 0, None, None)\n"
                         "os.execvp(sys.argv[1], sys.argv[1:])\n")
        cell = self.cell_of("libraries => {", "libraries => {", before=f"{sys.executable} {tracer} ")
        self.assertEqual(cell["status"], "mismatch", cell["reason"])  # null.pl computes nothing


class WordsTest(SturdyTest):
    def test_limits_and_words_are_said(self):
        done = self.child("run", "-n", "mlp", "-f", "fake", "--learning-rate", "1e-30", "--dry-run")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("a number from 1e-12 to 1000", done.stderr)
        done = self.child("run", "-n", "mlp", "-f", "fake", "--learning-rate", "1e-12", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("IDX", self.child("data", "--help").stdout)


if __name__ == "__main__":
    sys.exit(counted.main())
