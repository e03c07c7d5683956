#!/usr/bin/env python3
"""A run whose store is on a disk that fails, is taken away, or loses the run: it ends with 74, says what
to do, keeps what was stored, and goes on with --resume.

$PRONY is the program, $PRONY_FAULTS the same with a disk that fails (tests/prony_faults.c).
"""
import glob
import os
import shutil
import sqlite3
import subprocess
import time
import unittest

import prony_program

FAULTS = os.environ.get("PRONY_FAULTS", "build/tests/prony_faults")
WORDS = ("-f", "null,fake", "-n", "mlp", "-d", "synthetic", "-b", "1", "-s", "forward", "--quick", "--steps", "2",
         "--warm-up", "0", "--repeat", "3")
SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC = 13, 778, 1034
PLACES = 6  # of a run, at which its disk fails


class StoreFaultTest(prony_program.ProgramTest):
    def run_torn(self, fault, *words):
        return subprocess.run([FAULTS, "run", *WORDS, "--store", self.store, *words],
                              env={**self.environment, "PRONY_STORE_FAULT": fault,
                                   "PRONY_STORE_WRITES": os.path.join(self.folder, "writes"),
                                   "PRONY_SHARE": os.environ["PRONY_SOURCE"]},
                              text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=prony_program.PATIENCE_S)

    def processes(self, store=None):
        base = sqlite3.connect(store or self.store)
        try:
            self.assertEqual(base.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            return base.execute("SELECT count(*) FROM process").fetchone()[0]
        except sqlite3.OperationalError as error:
            self.assertIn("no such table", str(error))
            return 0
        finally:
            base.close()

    def remove_store(self):
        for path in glob.glob(self.store + "*"):
            os.remove(path)

    def test_disk_that_fails(self):
        done = self.run_torn("0 0")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "writes"), encoding="utf-8") as stream:
            writes = int(stream.read())
        self.assertEqual(self.processes(), 6)
        told = 0
        for place in range(PLACES):
            at = 1 + place * (writes - 10) // PLACES
            code, part = ((SQLITE_FULL, "its disk is full"), (SQLITE_IOERR_WRITE, "its disk reports an error"),
                          (SQLITE_IOERR_FSYNC, "its disk reports an error"))[place % 3]
            self.remove_store()
            done = self.run_torn(f"{at} {code} stays")
            self.assertIn(done.returncode, (0, 74), done.stderr)
            ended = done.stderr.count("  round ")
            if done.returncode:
                told += 1
                self.assertTrue(part in done.stderr or "must be writable" in done.stderr, done.stderr)
                self.assertIn(self.store, done.stderr)
            self.assertIn(self.processes() - ended, (0, 1), done.stderr)
            resumed = self.run_torn("0 0", "--resume")
            self.assertEqual((resumed.returncode, self.processes()), (0, 6), resumed.stderr)
        self.assertGreater(told, PLACES // 2)

    def test_another_program_resumes_nothing(self):
        """The program that fails has other bytes than prony: one run would have the figures of two."""
        self.run_torn("0 0")
        base = sqlite3.connect(self.store)
        base.executescript("UPDATE run SET finished_wall_ns = NULL")
        base.close()
        done = self.prony("run", *WORDS, "--store", self.store, "--resume", expect=0)
        self.assertIn("nothing to resume", done.stderr)
        self.assertEqual(self.rows("SELECT count(*) FROM run"), [(2,)])

    def test_a_store_on_a_full_disk_is_read(self):
        """The disk is a small tmpfs in a mount namespace of the test's own."""
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
            self.skipTest("no mount namespace here")
        self.prony("run", *WORDS, "--store", self.store, expect=0)
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        commands = [(0, "show"), (0, "list runs"), (0, "export --format csv"), (0, "log"), (74, "tag latest t"),
                    (74, f"import {self.store}"), (74, "delete 1 --yes"), (74, "report -o r.html"),
                    (74, " ".join(("run", *WORDS)))]
        script = f"""mount -t tmpfs -o size=2m tmpfs {disk} && cp {self.store} {disk}/s.db && cd {disk}
            cat /dev/zero >{disk}/filler 2>{self.folder}/filled
            """ + "".join(f"{prony_program.PRONY} {words} --store {disk}/s.db >{self.folder}/o{i} 2>{self.folder}/e{i};"
                          f" echo $?\n" for i, (_, words) in enumerate(commands))
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=prony_program.PATIENCE_S)
        codes = [int(line) for line in done.stdout.split()]
        for i, (expected, words) in enumerate(commands):
            with open(os.path.join(self.folder, f"e{i}"), encoding="utf-8") as stream:
                told = stream.read()
            self.assertEqual((codes[i], words), (expected, words), told)
            if expected:
                self.assertRegex(told, "its disk is full|No space left on device", words)

    def start_long(self, *words):
        """A run that has stored a result and goes on."""
        log = os.path.join(self.folder, "log")
        process = self.start("run", *WORDS[:-4], "--repeat", "200", "--store", self.store, *words, log=log)
        deadline = time.monotonic() + prony_program.PATIENCE_S
        while not self.rows("SELECT 1 FROM process"):
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        return process, log

    def end_of(self, process, log):
        self.assertEqual(process.wait(timeout=prony_program.PATIENCE_S), 74)
        with open(log, encoding="utf-8") as stream:
            return stream.read()

    def test_store_that_is_removed(self):
        process, log = self.start_long()
        self.remove_store()
        message = self.end_of(process, log)
        rescued = self.store + ".rescued"
        self.assertIn(f"prony import {rescued}", message)
        stored = self.processes(rescued)
        # Every process that was shown, and the one whose result found the store gone.
        self.assertIn(stored - message.count("  round "), (0, 1), message)
        self.prony("import", rescued, "--store", self.store, expect=0)
        self.assertEqual(self.processes(), stored)

    def test_store_that_is_replaced(self):
        other = os.path.join(self.folder, "other.db")
        self.prony("run", *WORDS, "--store", other, expect=0)
        process, log = self.start_long()
        os.replace(other, self.store)
        message = self.end_of(process, log)
        self.assertIn("removed or replaced", message)
        self.assertGreater(self.processes(self.store + ".rescued"), 0)
        for path in (self.store + "-wal", self.store + "-shm"):  # of the store that was there
            if os.path.exists(path):
                os.remove(path)
        self.assertEqual(self.processes(), 6)

    def test_run_that_is_deleted(self):
        process, log = self.start_long()
        self.prony("delete", "1", "--yes", "--store", self.store, expect=0)
        self.assertIn("was the run deleted?", self.end_of(process, log))
        self.assertEqual(self.processes(), 0)


if __name__ == "__main__":
    if not shutil.which(FAULTS) and not os.path.exists(FAULTS):
        raise SystemExit(f"{FAULTS} is not there")
    unittest.main()
