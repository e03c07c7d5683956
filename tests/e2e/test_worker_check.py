#!/usr/bin/env python3
"""prony worker-check: passes the workers that we ship, rejects the fake in every way that it fails.

$PRONY names the program.
"""
import json
import os
import re
import shutil
import signal
import sys
import time

import counted
from prony_program import PATIENCE_S, PRONY, ProgramTest, read

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PYTHON_WORKER = os.path.join(ROOT, "python", "worker.py")
CARELESS_WORKER = os.path.join(ROOT, "tests", "workers", "careless.py")
PERL_WORKER = os.path.join(ROOT, "tests", "workers", "null.pl")

# Fault of the fake -> (the check that must fail, what its line must hold).
PROTOCOL_FAULTS = {
    "crash": ("run, first step", "killed by signal 11"),
    "exit=3": ("run, first step", "exit code 3"),
    "exit-at=close,exit=3": ("close", "exit code 3"),
    "hang": ("run, first step", "no reply to run within 8 s"),
    "grandchild": ("close", "1 process that it started still ran after it ended"),
    "oom=64": ("build", "killed by signal 9"),
    "oom": ("build", "used more than 300 MiB"),
    "oom-reply": ("build", "out of memory"),
    "fail": ("run, first step", "failed, as requested"),
    "garbage-reply": ("run, first step", "not a JSON object"),
    "long-line": ("run, first step", "longer than 1 MiB"),
    "half-reply": ("run, first step", "in the middle of its reply to run"),
    "wrong-id": ("run, first step", "has id 2147483647 instead of"),
    "missing": ("hello", "not installed"),
    "unsupported": ("a network", "it supports no mlp, lenet"),
    "wrong-precision": ("open", "precision fp32 was requested, but 'bf16' is used"),
    "wrong-threads": ("open", "1 thread was requested, but 2 are used"),
    "nan-loss": ("read loss", "element 0 of loss is not finite"),
    "nan-loss=last": ("read loss again", "element 0 of loss is not finite"),
    "impossible-time": ("run, first step", "after its reply arrived"),
    "impossible-time=before": ("run, first step", "before the request was sent"),
    "backwards-time": ("run, first step", "record 0 ends before it begins"),
    "timed-only,fail": ("run, first step", "failed, as requested"),
    "after=2,fail": ("run, sync end", "failed, as requested"),
}
# Only the session without shared memory has as few slots as a gate.
FILES_FAULTS = {"gate-only,fail": ("run, first step", "failed, as requested")}
NUMERIC_FAULTS = ["wrong-logits", "no-momentum", "lr-scale=1.01", "no-bias-gradient", "tf32",
                  "frozen-layer", "swapped-channels"]
# No faults: standard output belongs to the framework, slow is not wrong, nor is another rule that is said.
INNOCENT = ["garbage-stdout", "delay-us=100", "delay-ms=1", "step-us=500", "cold-ms=5", "each-maximum=said",
            "reduce=sum,rank=0", "clips-each"]  # for several ranks; for gradients that are clipped


# What tests/workers/careless.py does wrong -> (the first check that must fail, what its line must hold).
CARELESS = {
    "records": ("hostile values: records beyond their region", '"steps": 257'),
    "unfed": ("places: after build", '"verb": "run"'),
    "early-read": ("places: after build", '"what": "logits"'),
    "after-failure": ("hello: after a failed request", '"verb": "hello"'),
    "any-target": ("hello: unknown option", "it accepts it"),
    "any-rank": ("hostile lines: bad hello", '"rank": 1, "world_size": 1'),
    "wrong-rank": ("shared memory: hello", "its rank is 1 of 2, but hello requested 0 of 1"),
    "other-devices": ("shared memory: hello", "devices does not contain cpu"),
    "old-protocol": ("hostile lines: bad hello", '"protocol": 1'),
    "any-verb": ("hostile lines: before hello", '"verb": "dance"'),
    "crashed": ("hostile lines: before hello", "the status 'crashed' instead of 'invalid'"),
    "forgets": ("hostile values: run after refusals", "has no batch: feed it before run"),
    "exit-5": ("end: stops at the end of requests", "exit code 5"),
    "second-hello": ("places: after hello", '"verb": "hello"'),
    "second-open": ("places: after open", '"verb": "open"'),
    "second-build": ("places: after build", '"verb": "build"'),
    "late-supports": ("places: after open", '"verb": "supports"'),
    "no-profile": ("shared memory: profile lines", "the worker's profile cannot be read"),
    "half-profile": ("shared memory: profile lines", "has 0 steps, but 3 were requested"),
    "long-profile": ("shared memory: profile lines", "total_ns in the worker's profile must be above 0"),
}


class CheckTest(ProgramTest):
    def check(self, *words, expect=0, **more):
        done = self.prony("worker-check", *words, expect=expect, **more)
        self.assertEqual([name for name in os.listdir(self.folder) if "prony-check" in name], [],
                         "temporary files stay")
        return done

    def fake(self, option, *words, expect):
        # What hangs is waited for; nothing before it may take as long, on a machine under load either.
        patience = "8" if option.startswith("hang") else "60"
        return self.check("--timeout", patience, "--memory-limit", "300", *words, PRONY, "worker",
                          "--adapter", "fake", "--option", option, expect=expect)

    def failures(self, done):
        return [line for line in done.stdout.splitlines() if line.startswith("FAILED")]

    def passes(self, *words):
        done = self.check(*words)
        lines = done.stdout.splitlines()
        self.assertEqual(done.stderr, "")
        self.assertRegex(lines[-1], r"^all \d+ checks passed$")
        self.assertTrue(all(line.startswith("ok      ") for line in lines[:-1]), done.stdout)
        # One that only goes forward is not asked for weights.
        self.assertGreater(len(lines), 40)
        self.assert_nothing_stays()


class ShippedTest(CheckTest):
    def test_c_workers(self):
        for adapter in ("null", "fake"):
            self.passes(PRONY, "worker", "--adapter", adapter)

    def test_perl_worker(self):
        if not shutil.which("perl"):
            self.skipTest("no perl on PATH")
        self.passes("--level", "protocol", "perl", PERL_WORKER)

    def test_python_worker(self):
        self.passes(sys.executable, PYTHON_WORKER, "--adapter", "null")

    def test_fake_numeric(self):
        self.passes("--level=numeric", PRONY, "worker", "--adapter", "fake")

    def test_innocent(self):
        for option in INNOCENT:
            with self.subTest(option):
                self.fake(option, expect=0)


class RejectedTest(CheckTest):
    def rejected(self, option, session, check, part):
        done = self.fake(option, expect=1)
        failed = self.failures(done)
        self.assertEqual(len(failed), 1, done.stdout)
        self.assertTrue(failed[0].startswith("FAILED  %s: %s: " % (session, check)), failed[0])
        self.assertIn(part, failed[0])
        self.assertRegex(done.stderr, r"^prony: 1 of \d+ checks failed; "
                                      r"later checks were not run\n$")
        self.assertTrue(done.stdout.endswith(failed[0] + "\n"))

    def test_every_fault(self):
        for option, (check, part) in PROTOCOL_FAULTS.items():
            with self.subTest(option):
                self.rejected(option, "shared memory", check, part)
        for option, (check, part) in FILES_FAULTS.items():
            with self.subTest(option):
                self.rejected(option, "files", check, part)
        self.assert_nothing_stays()

    def test_options_that_the_fake_has_not(self):
        for option, part in (("crahs", "crash"), ("crash-at=lunch", "crash-at"), ("delay-us=x", "delay-us"),
                             ("crash=3", "crash"), ("nan-loss=never", "nan-loss"), ("x" * 80, "too long")):
            with self.subTest(option):
                failed, = self.failures(self.fake(option, expect=1))
                self.assertRegex(failed, "^FAILED  shared memory: hello: .*" + part)

    def test_every_careless_worker(self):
        self.passes(sys.executable, CARELESS_WORKER, "none")
        for fault, (check, part) in CARELESS.items():
            with self.subTest(fault):
                failed = self.failures(self.check(sys.executable, CARELESS_WORKER, fault, expect=1))
                self.assertTrue(failed[0].startswith("FAILED  %s: " % check), failed)
                self.assertIn(part, failed[0])
        table = read(CARELESS_WORKER).split("\nFAULTS = {")[1].split("}")[0]
        self.assertEqual(set(re.findall(r'"([\w-]+)": ', table)), set(CARELESS) | {"none", "slow-lines"})

    def test_every_wrong_number(self):
        for option in NUMERIC_FAULTS:
            with self.subTest(option):
                done = self.fake(option, "--level", "numeric", expect=1)
                failed = self.failures(done)
                self.assertGreaterEqual(len(failed), 2, done.stdout)
                for line in failed:
                    self.assertRegex(line, r"^FAILED  parity: (mlp|lenet), [a-z-]+: mismatch: .*"
                                           r" differs from the reference by .*, allowed ")

    def test_no_fault_is_left_out(self):
        """The tables above name every option of the fake."""
        text = read(os.path.join(ROOT, "adapters", "fake", "options.c"))
        table = text[text.index("static const struct fake_option rows[]"):]
        table = table[:table.index("\n};")]
        options = set(re.findall(r'(?:FAULT|FLAG|NUMBER|FAULT_WITH_NUMBER)\(\s*"([\w-]+)"', table))
        options |= set(re.findall(r'\.name = "([\w-]+)"', table))
        self.assertGreater(len(options), 25)
        tried = [word for table in (PROTOCOL_FAULTS, FILES_FAULTS, NUMERIC_FAULTS, INNOCENT)
                 for option in table for word in option.split(",")]
        self.assertEqual(options, {word.split("=")[0] for word in tried
                                   if not word.split("=")[0].endswith("-at")})

    def test_null_does_not_compute(self):
        done = self.check("--level", "numeric", PRONY, "worker", "--adapter", "null", expect=1)
        self.assertEqual(len(self.failures(done)), 6, done.stdout)

    def test_no_worker(self):
        for words, part in ((["true"], "exit code 0"),
                            (["prony-no-such-program"], "cannot start 'prony-no-such-program'"),
                            ([os.path.join(self.folder, "nothing")], "cannot start"),
                            ([self.folder], "cannot start"),
                            (["sh", "-c", "echo usage: none >&2; exit 64"], "usage: none")):
            with self.subTest(words):
                done = self.check(*words, expect=1)
                self.assertEqual(done.stdout.count("\n"), 1)
                self.assertIn(part, done.stdout)

    def test_worker_that_refuses_everything(self):
        script = """
import json, os
requests = os.fdopen(int(os.environ["PRONY_REQUEST_FD"]))
replies = os.fdopen(int(os.environ["PRONY_REPLY_FD"]), "w")
for line in requests:
    print(json.dumps({"id": json.loads(line)["id"], "ok": False, "status": "crashed",
                      "error": "\\x1b[31mI would\\nrather not"}), file=replies, flush=True)
"""
        done = self.check(sys.executable, "-c", script, expect=1)
        self.assertIn("rather not", done.stdout)
        self.assertEqual(done.stdout.count("\n"), 1)
        self.assertNotIn("\x1b", done.stdout)


class CommandTest(CheckTest):
    def test_json(self):
        done = self.check("--format", "json", PRONY, "worker", "--adapter", "null")
        rows = json.loads(done.stdout)
        self.assertTrue(all(row["outcome"] == "ok" and row["detail"] == "" for row in rows))
        self.assertIn("hostile lines: line over 1 MiB", [row["check"] for row in rows])
        done = self.fake("crash", "--format", "json", expect=1)
        self.assertEqual([row["outcome"] for row in json.loads(done.stdout)],
                         ["ok"] * 5 + ["failed"])

    def test_usage(self):
        for words, part in (([], "which worker?"),
                            (["--"], "which worker?"),
                            (["--level", "deep", "x"], "use one of protocol, numeric"),
                            (["--level"], "--level needs a value"),
                            (["--timeout", "0", "x"], "out of range"),
                            (["--lvel", "numeric", "x"], "did you mean --level"),
                            (["--format=yaml", "x"], "use one of table, json")):
            with self.subTest(words):
                done = self.check(*words, expect=64)
                self.assertEqual(done.stdout, "")
                self.assertIn(part, done.stderr)

    def test_help(self):
        for words in (["--help"], ["--level", "numeric", "--help"]):
            done = self.check(*words)
            self.assertIn("Usage: prony worker-check [options] COMMAND [ARGUMENT...]", done.stdout)

    def test_options_of_the_worker_are_its_own(self):
        """With and without --; also words that are options of ours."""
        script = 'echo "$@" >&2; exit 7'
        for words in (["sh", "-c", script, "x", "--level", "-h"],
                      ["--", "sh", "-c", script, "x", "--level", "-h"],
                      ["--timeout=9", "--", "sh", "-c", script, "x", "--level", "-h"]):
            with self.subTest(words):
                done = self.check(*words, expect=1)
                self.assertIn("exit code 7; last output: --level -h", done.stdout)

    def test_interrupted(self):
        log = os.path.join(self.folder, "log")
        process = self.start("worker-check", PRONY, "worker", "--adapter", "fake", "--option",
                             "hang", log=log)
        self.wait_for_feed(log)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE_S), 130)
        self.assertIn("prony: interrupted", self.text(log))
        self.assertNotIn("FAILED", self.text(log))
        self.assert_nothing_stays()
        self.assertEqual([name for name in os.listdir(self.folder) if "prony-check" in name], [])

    def wait_for_feed(self, log):
        deadline = time.monotonic() + PATIENCE_S
        while "feed" not in self.text(log):
            self.assertLess(time.monotonic(), deadline, self.text(log))
            time.sleep(0.02)

    def text(self, path):
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()

    def test_killed(self):
        """Not even SIGKILL leaves a worker behind."""
        log = os.path.join(self.folder, "log")
        process = self.start("worker-check", PRONY, "worker", "--adapter", "fake", "--option",
                             "grandchild,hang", log=log)
        self.wait_for_feed(log)
        process.kill()
        process.wait(PATIENCE_S)
        self.assert_nothing_stays()


if __name__ == "__main__":
    sys.exit(counted.main())
