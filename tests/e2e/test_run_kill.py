#!/usr/bin/env python3
"""kill -9 at random instants: nothing stored is lost or repeated, nothing stays behind, --resume
completes. $PRONY names the program; $PRONY_KILLS the instants of each kind (4 unless given)."""
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time

import counted
from prony_program import PATIENCE_S, PRONY, ProgramTest, marked_processes, read, write

KILLS = int(os.environ.get("PRONY_KILLS", "4"))
REPEAT = 4
FRAMEWORKS = "null,fake,fake+step-us=3000"
CELLS = 6
# Written in the output, so that a failure can be run again.
SEED = int(os.environ.get("PRONY_KILL_SEED", "0")) or random.randrange(1 << 30)


class KillTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(f"{SEED} {self.id()}")
        self.starts = os.path.join(self.folder, "starts")
        self.log = os.path.join(self.folder, "log")
        self.words = ("run", "-f", FRAMEWORKS, "-n", "mlp", "-d", "mnist-3000", "-b", "4",
                      "-s", "forward,train", "--quick", "--repeat", str(REPEAT), "--steps", "10",
                      "--warm-up", "2", "--timeout", "120", "--store", self.store,
                      # Counts timed processes from outside: one line for each that was begun.
                      "--setup", f"echo x >> {self.starts}")

    def committed(self):
        """(cell, replicate) -> (start, status) of each stored process."""
        rows = self.rows("select cell, replicate, started_wall_ns, status from process")
        keys = [row[:2] for row in rows]
        self.assertEqual(len(keys), len(set(keys)), "a replicate is stored twice")
        return {row[:2]: row[2:] for row in rows}

    def started(self):
        if not os.path.exists(self.starts):
            return 0
        with open(self.starts, encoding="ascii") as stream:
            return len(stream.readlines())

    def output(self):
        with open(self.log, encoding="utf-8", errors="replace") as stream:
            return f"seed {SEED}\n{stream.read()[-3000:]}"

    def whole_run_s(self):
        """How long an undisturbed run takes here; its files are removed."""
        begin = time.monotonic()
        process = self.start(*self.words, log=self.log)
        self.assertEqual(process.wait(PATIENCE_S), 0, self.output())
        passed = time.monotonic() - begin
        for name in (self.store, self.starts):
            os.remove(name)
        for name in (self.store + "-wal", self.store + "-shm"):
            if os.path.exists(name):
                os.remove(name)
        return passed

    def check_complete(self, before):
        after = self.committed()
        for key, row in before.items():
            self.assertEqual(after.get(key), row, "a stored result was changed or lost")
        self.assertEqual(self.rows("select count(*) from run"), [(1,)], "resume began another run")
        self.assertEqual(self.rows("select count(*) from cell where status = 'ok'"), [(CELLS,)],
                         self.output())
        self.assertEqual(sum(row[1] == "ok" for row in after.values()), CELLS * REPEAT)
        return after

    def test_leftovers_are_tidied_up(self):
        """Folders of ended runs are removed; one that is locked or not a folder stays."""
        folders = [os.path.join(self.folder, "prony-run-" + name)
                   for name in ("killed", "held")]
        for folder in folders:
            os.mkdir(folder)
            write(os.path.join(folder, "case.json"), "{}")
        killed, held = folders
        link, other = (os.path.join(self.folder, name) for name in ("prony-run-link", "prony-other"))
        os.mkdir(other)
        os.symlink(other, link)
        lock = os.open(held, os.O_RDONLY)
        self.addCleanup(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = ("run", "-f", "null", "-n", "mlp", "-d", "synthetic", "--quick", "--repeat", "1", "--steps", "5",
                 "--store", self.store)
        self.prony(*words, expect=0)
        self.assertEqual(sorted(name for name in os.listdir(self.folder)
                                if name.startswith("prony-")),
                         ["prony-other", "prony-run-held", "prony-run-link"])
        self.assertFalse(os.path.exists(killed))
        self.assertTrue(os.path.exists(os.path.join(held, "case.json")))

    def test_a_killed_run_leaves_what_the_next_tidies_up(self):
        process = self.start(*self.words, log=self.log)
        deadline = time.monotonic() + PATIENCE_S

        def runs():
            return [name for name in os.listdir(self.folder) if name.startswith("prony-run-")]
        while not self.started() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(len(runs()), 1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assert_nothing_stays()
        left = runs()
        self.assertEqual(len(left), 1)
        self.prony(*self.words, "--resume", expect=0)
        self.assertEqual(runs(), [])

    def test_orchestrator(self):
        whole = self.whole_run_s()
        kills, before, since = 0, {}, 0
        while kills < KILLS:
            process = self.start(*self.words, "--resume", log=self.log)
            # The first third of a run suffices to get anywhere in it after a few rounds.
            time.sleep(self.random.uniform(0, whole / 3))
            if process.poll() is not None:
                self.assertEqual(process.returncode, 0, self.output())
                # Complete before all kills were done: from the start again.
                self.check_complete(before)
                os.remove(self.store)
                os.remove(self.starts)
                before, since = {}, 0
                continue
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills, since = kills + 1, since + 1
            self.assert_nothing_stays()
            after = self.committed()
            for key, row in before.items():
                self.assertEqual(after.get(key), row, f"lost or changed; seed {SEED}")
            before = after
        finished_starts = self.started()
        process = self.start(*self.words, "--resume", log=self.log)
        self.assertEqual(process.wait(PATIENCE_S), 0, self.output())
        after = self.check_complete(before)
        self.assert_nothing_stays()
        # What was missing ran, and nothing else: each kill costs one replicate.
        self.assertEqual(self.started() - finished_starts, len(after) - len(before))
        self.assertLessEqual(self.started(), len(after) + since, f"seed {SEED}")

    def workers(self):
        return [pid for pid, command in marked_processes(self.mark).items()
                if " worker " in f" {command} " and " guard " not in f" {command} "]

    def test_worker(self):
        kills = 0
        while kills < KILLS:
            process = self.start(*self.words, log=self.log)
            time.sleep(self.random.uniform(0, 1.0))
            while process.poll() is None and kills < KILLS:
                victims = self.workers()
                if not victims:
                    time.sleep(0.001)
                    continue
                try:
                    os.kill(victims[0], signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass
                # Two failures in a row end a cell, so the next comes a few processes later.
                time.sleep(self.random.uniform(0.3, 1.5))
            status = process.wait(PATIENCE_S)
            self.assertIn(status, (0, 1), self.output())
            self.assert_nothing_stays()
            self.committed()
            left = self.rows("select status, reason from cell where status != 'ok'")
            self.assertEqual(status, 1 if left else 0, f"{left} {self.output()}")
            for ended, reason in left:
                self.assertEqual(ended, "crashed", reason)
                self.assertIn("signal 9", reason)
            self.prony(*self.words, "--resume")
            self.committed()
            os.remove(self.store)

    def test_interrupt_shows_what_was_measured_and_how_to_go_on(self):
        page = os.path.join(self.folder, "page.html")
        process = self.start(*self.words, "--report", page, log=self.log)
        deadline = time.monotonic() + PATIENCE_S
        while self.started() < CELLS * REPEAT // 3:
            self.assertLess(time.monotonic(), deadline, self.output())
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE_S), 130, self.output())
        self.assertRegex(self.output(), r"(?s)[12] of 3 processes, no rank.*\nprony: interrupted\n.*add --resume")
        self.assertIn(f"not finished: {CELLS} of {CELLS} cells", self.output())
        self.assertIn("of 3 processes, no rank", read(page))
        self.assert_nothing_stays()
        before = self.committed()
        self.prony(*self.words, "--resume", expect=0)
        self.check_complete(before)

    def test_an_early_interrupt_leaves_json(self):
        with open(self.log, "w", encoding="utf-8") as log, \
                subprocess.Popen([PRONY, *self.words, "--setup", f"echo >>{self.starts}; sleep 60", "--format", "json"],
                                 env=self.environment, stdout=subprocess.PIPE, stderr=log) as process:
            while not self.started():
                self.assertIsNone(process.poll(), self.output())
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            document = json.loads(process.communicate(timeout=PATIENCE_S)[0])
        self.assertEqual(process.returncode, 130)
        self.assertEqual({cell["status"] for cell in document["cells"]}, {"pending"})


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    sys.exit(counted.main())
