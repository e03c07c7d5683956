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
            code, part = ((SQLITE_FULL, "free space on its disk"), (SQLITE_IOERR_WRITE, "its disk reports an error"),
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
            resumed = self.prony("run", *WORDS, "--store", self.store, "--resume", expect=0)
            self.assertEqual(self.processes(), 6, resumed.stderr)
        self.assertGreater(told, PLACES // 2)

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
