#!/usr/bin/env python3
"""What `prony run` shows on a terminal and elsewhere while it works; no speed is tested.

$PRONY names the program.
"""
import datetime
import fcntl
import json
import os
import re
import shutil
import signal
import sys
import time

import counted
import terminal
from prony_program import PATIENCE_S, PRONY, ProgramTest, read, timed

HERE = os.path.dirname(os.path.abspath(__file__))
INTERRUPTED = 130
# A loaded test machine gives the program its turn late; without a tick the waits below are 3 s.
STILL_S = 2.5
# Each step lasts as long as it is told, a process 1.5 s.
STEADY = ["run", "--quick", "-f", "fake+step-us=100000", "-n", "mlp", "-d", "synthetic", "-b", "2", "-s",
          "forward", "-D", "cpu:1", "--steps", "8", "--warm-up", "4", "--repeat", "2"]
QUICK = ["run", "--quick", "-n", "mlp", "-d", "synthetic", "-b", "2", "-s", "forward", "-D", "cpu:1",
         "--steps", "3", "--warm-up", "0", "--repeat", "2"]


class TerminalTest(ProgramTest):
    def watch(self, *words, act=None, columns=100, **more):
        environment = {**self.environment, "TERM": "xterm", "CI": "", **more}
        return terminal.record([PRONY, *words, "--store", self.store], environment, columns, act)

    @timed
    def test_no_second_without_a_sign_of_life(self):
        """Through gate, warm-up, window, and a command of the user's that says nothing."""
        seen = self.watch(*STEADY, "--setup", "sleep 3")
        self.assertEqual(seen.code, 0, seen.screen.lines)
        still, since = seen.longest_still()
        self.assertLess(still, STILL_S, f"from second {since}: {seen.changes}")
        lines = [line for _, _, line in seen.changes]
        # It turns a sign four times a second, also while the user's command says nothing: 3 s in each of two rounds.
        self.assertGreater(sum("--setup" in line for line in lines), 12, lines)
        for stage in ("parity: ", "round 1: --setup, 2 s", "round 2: warm-up", "round 2: measuring"):
            self.assertTrue(any(stage in line for line in lines), f"{stage}: {lines}")
        # The number of processes is known.
        self.assertEqual({found for line in lines for found in re.findall(r"left \((.*?)\)", line)},
                         {"0 of 2 processes", "1 of 2 processes", "2 of 2 processes"})
        self.assertTrue(any(re.match(r"fake\S* mlp .*: ok  \S+ ms \+/- .*, 2 processes$", line)
                            for line in seen.screen.lines), seen.screen.lines)

    def test_the_time_left_stands_in_forty_columns(self):
        seen = self.watch(*QUICK, "-f", "fake", columns=40)
        self.assertEqual(seen.code, 0, seen.screen.lines)
        self.assertTrue(any(re.search(r"about \d+ s left", line) for _, _, line in seen.changes))
        self.assertTrue(all(len(line) < 40 for _, _, line in seen.changes))

    def test_a_log_of_ci_has_no_live_line(self):
        """Though CI may give it a terminal; messages are wrapped at words there."""
        seen = self.watch(*QUICK, "-f", "fake", columns=60, CI="true")
        self.assertEqual(seen.code, 0, seen.screen.lines)
        self.assertEqual([line[:8] for line in seen.screen.lines if line.startswith("[")], ["[1 of 2]", "[2 of 2]"])
        self.assertFalse(any(" left (" in line for _, _, line in seen.changes))

    def test_messages_wrap_at_words(self):
        words = ["run", "-f", "fake", "-n", "mlp", "--nosuchoption"]
        plain = self.prony(*words).stderr
        self.assertEqual(len(plain.splitlines()), 1)
        for shown in (self.watch(*words, columns=40).screen.lines, self.watch("tag", "--help", columns=40).screen.lines):
            self.assertGreater(len(shown), 1)
            self.assertTrue(all(len(line) <= 40 for line in shown), shown)
        self.assertEqual(" ".join(self.watch(*words, columns=40).screen.lines), plain.strip())

    def test_control_c_ends_a_setup_command(self):
        sent = []

        def press(recording, _, keyboard):
            if "--setup" in recording.screen.line and not sent:
                sent.append(os.write(keyboard, b"\x03"))

        seen = self.watch(*QUICK, "-f", "fake", "--setup", "sleep 60", act=press)
        self.assertEqual(seen.code, INTERRUPTED, seen.screen.lines)
        self.assertLess(seen.seconds, 30)
        self.assertTrue(any("--resume" in line for line in seen.screen.lines), seen.screen.lines)
        self.assert_nothing_stays()


class PlainTest(ProgramTest):
    def test_plain_lines(self):
        done = self.prony(*QUICK, "-f", "fake", "--store", self.store, expect=0)
        lines = done.stderr.splitlines()
        self.assertRegex(lines[0], r"^1 cell, quick effort: 2 processes, about \d+ s$")
        self.assertEqual([line[:8] for line in lines if line.startswith("[")], ["[1 of 2]", "[2 of 2]"])
        self.assertNotIn("\033", done.stderr)

    def test_the_dry_run_says_what_would_run(self):
        done = self.prony("run", "-f", "fake,fake@one", "-n", "mlp", "-s", "forward,train", "-b", "4", "-d", "synthetic",
                          "--dry-run", expect=0)
        self.assertEqual(done.stdout.splitlines(), [
            "mlp, synthetic, batch 4, cpu, fp32", "  forward: fake", "  train with momentum: fake", "2 of 4 cells cannot run:",
            "  fake@one (2 cells): missing: fake has no environments; write fake without @"])

    def test_the_dry_run_says_how_long_it_would_take(self):
        command = ["run", "-f", "fake", "-n", "mlp", "-s", "forward", "-b", "1,2,4"]
        done = self.prony(*command, "--dry-run", "--format", "json", expect=0)
        self.assertEqual(len(json.loads(done.stdout)), 3)
        self.assertRegex(done.stderr, r"3 cells, default effort: 15 to 36 processes, about \d+ min\n")
        long = self.prony(*command[:-1], "1..128*2", "--dry-run", expect=0).stderr
        self.assertIn("\nto take less time: --quick (for screening), or --budget 10m (ends within that time)\n", long)
        for more, words in (("--quick", r"quick effort: \d+ processes, "), ("--gate-only", r"cells: 3 gates to run, without timing, ")):
            self.assertRegex(self.prony(*command, "--dry-run", more, expect=0).stderr, words)
        self.assertEqual(self.rows("select * from run"), [])

    def test_show_command_runs_nothing(self):
        done = self.prony(*QUICK, "-f", "fake", "--show-command", "--store", self.store, expect=0)
        self.assertIn("worker --adapter fake", done.stdout)
        self.assertFalse(os.path.exists(self.store))


class WaitingTest(ProgramTest):
    def test_nothing_is_looked_at_before_the_other_one_is_done(self):
        """Its load would stand in the result, as found on the machine."""
        log = os.path.join(self.folder, "log")
        with open(self.environment["PRONY_LOCK"], "w", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            process = self.start(*QUICK, "-f", "fake", "--store", self.store, log=log)
            self.assertTrue(self.comes(log, "waiting: another prony is measuring"))
            self.assertEqual(self.rows("select * from run"), [])
            released = time.time()
        self.assertEqual(process.wait(PATIENCE_S), 0)
        (environment,), = self.rows("select environment from run")
        # Of the machine as it was when its turn came; in whole seconds.
        self.assertGreaterEqual(self.recorded_at(json.loads(environment)), int(released))

    @staticmethod
    def recorded_at(machine):
        told = machine["informational"]["recorded_at"]
        return datetime.datetime.strptime(told, "%Y-%m-%dT%H:%M:%S%z").timestamp()

    def test_a_program_that_was_replaced_meanwhile_measures_nothing(self):
        log, own = os.path.join(self.folder, "log"), os.path.join(self.folder, "prony")
        shutil.copy(PRONY, own)
        self.environment["PRONY_SHARE"] = os.path.dirname(os.path.dirname(HERE))
        with open(self.environment["PRONY_LOCK"], "w", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            process = self.start(*QUICK, "-f", "fake", "--store", self.store, log=log, program=own)
            self.assertTrue(self.comes(log, "waiting: another prony is measuring"))
            shutil.copy(PRONY, own + ".new")
            os.replace(own + ".new", own)
        self.assertNotEqual(process.wait(PATIENCE_S), 0)
        self.assertTrue(self.comes(log, "was replaced or removed during the wait"))
        self.assertEqual(self.rows("select * from process"), [])

    def test_a_self_test_waits_with_all_that_it_does(self):
        log = os.path.join(self.folder, "log")
        with open(self.environment["PRONY_LOCK"], "w", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            process = self.start("selftest", "--quick", log=log)
            self.assertTrue(self.comes(log, "waiting: another prony is measuring"))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(PATIENCE_S), INTERRUPTED)
        self.assertNotIn("measuring the cost of the sensors", read(log))

    def test_who_reads_slowly_keeps_nobody_waiting(self):
        """The output is larger than a pipe's buffer, and nothing reads it."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        while True:
            os.set_blocking(writing, False)
            try:
                os.write(writing, bytes(1 << 16))
            except BlockingIOError:
                break
        os.set_blocking(writing, True)
        process = self.start(*QUICK, "-f", "fake", "--store", self.store, stdout=writing)
        os.close(writing)
        self.assertTrue(self.happens(lambda: self.rows("select * from run where finished_wall_ns > 0")))
        with open(self.environment["PRONY_LOCK"], "w", encoding="utf-8") as lock:
            self.assertTrue(self.happens(lambda: self.taken(lock)))
        self.assertIsNone(process.poll())
        process.kill()
        process.wait()

    @staticmethod
    def taken(lock):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def test_waiting_can_be_interrupted(self):
        log = os.path.join(self.folder, "log")
        with open(self.environment["PRONY_LOCK"], "w", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            process = self.start(*QUICK, "-f", "fake", "--store", self.store, log=log)
            self.assertTrue(self.comes(log, "waiting: another prony is measuring"))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(PATIENCE_S), INTERRUPTED)
        self.assertNotIn("--resume", read(log))

    def test_who_only_looks_up_what_is_missing_does_not_wait(self):
        with open(self.environment["PRONY_LOCK"], "w", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.prony(*QUICK, "-f", "fake@none", "--store", self.store, expect=1)

    @staticmethod
    def happens(check):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if check():
                return True
            time.sleep(0.02)
        return False

    def comes(self, path, words):
        def said():
            return words in read(path)
        return self.happens(said)


class OutcomeTest(ProgramTest):
    def test_no_good_cell_is_a_failure_that_names_one(self):
        """`-f all` with nothing installed."""
        done = self.prony("run", "-f", "all", "-n", "mlp", "-s", "forward", "--store", self.store,
                          expect=1, PATH="/usr/bin:/bin")
        last = done.stderr.splitlines()[-1]
        self.assertIn("prony: no cell is ok: native mlp forward b64 fp32 cpu (missing), ", last)
        self.assertIn("prony list frameworks", last)

    def test_data_that_is_not_here_is_said_before_anybody_waits(self):
        words = ("2 of 4 cells cannot run: data set mnist was not found (searched: ", "prony data fetch mnist")
        command = ["run", "-f", "fake", "-n", "mlp", "-d", "synthetic,mnist", "-s", "forward,train", "-b", "2", "--steps", "3", "--warm-up",
                   "0", "--repeat", "2", "--store", self.store]
        before = self.prony(*command, expect=1, XDG_DATA_HOME=self.folder).stderr.partition("parity: ")[0]
        for part in words:
            self.assertEqual(before.count(part), 1, before)
        # Frameworks that are not here, and what they cannot do, the table says.
        self.assertNotIn("cannot run", self.prony(*QUICK, "-f", "fake,caffe", "--store", self.store, PATH="/usr/bin:/bin", expect=1,
                                                  XDG_DATA_HOME=self.folder).stderr)

    def test_what_all_networks_have_beyond_a_framework_is_none(self):
        """Networks that nobody named do not take every data set."""
        command = ["run", "-f", "null", "-d", "mnist-3000", "-s", "forward", "-b", "1", "--steps", "1", "--warm-up", "0", "--repeat",
                   "2", "--store", self.store]
        done = self.prony(*command, "-n", "mlp,alexnet", expect=1)
        self.assertIn("alexnet forward b1 fp32 cpu (unsupported)", done.stderr)
        self.prony(*command, "-n", "all", expect=0)

    def test_a_failure_is_named(self):
        done = self.prony(*QUICK, "-f", "fake,fake+wrong-logits", "--store", self.store, expect=1)
        self.assertRegex(done.stderr.splitlines()[-1],
                         r"^prony: not ok: fake\+wrong-logits mlp forward b2 fp32 cpu:1 \(mismatch\)$")

    def test_what_a_suite_lists_beyond_what_is_here_is_none(self):
        suite = os.path.join(self.folder, "mine.yaml")
        with open(suite, "w", encoding="utf-8") as stream:
            stream.write("frameworks: [fake, caffe]\nnetworks: [mlp]\ndatasets: [synthetic]\n"
                         "stages: [forward]\nbatches: [2]\n")
        self.prony("run", suite, "--steps", "3", "--warm-up", "0", "--repeat", "2", "--store",
                   self.store, expect=0)


if __name__ == "__main__":
    sys.exit(counted.main())
