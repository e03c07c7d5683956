#!/usr/bin/env python3
"""The fake adapter: right against a float64 reference, and wrong in each way that it offers.

$PRONY_WORKER is a C worker that takes --adapter and --option (prony worker, or tests/worker_host).
"""
import json
import math
import os
import re
import select
import shlex
import signal
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import counted  # noqa: E402
from c_worker import as_c_writes, end  # noqa: E402
from float64_reference import Reference  # noqa: E402
from worker_driver import Bundle, Driver, Network, mlp, small  # noqa: E402

# What float32 costs on these networks is below; what each mutant does is far above.
RIGHT, CHANGE_RIGHT = 1e-5, 1e-4
BLINK_S, PATIENCE_S = 0.4, 120


def distance(found, expected):
    apart = math.sqrt(sum((a - b) ** 2 for a, b in zip(found, expected)))
    return apart / (math.sqrt(sum(b * b for b in expected)) or 1.0)


def tiny(batch):
    """The smallest network that trains."""
    net = Network("tiny", [batch, 6])
    net.linear("f1", 5)
    net.relu("r1")
    net.linear("f2", 3)
    return net.graph()


class FakeTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.log_path = os.path.join(scratch.name, "log")
        self.log = open(self.log_path, "wb")
        self.addCleanup(self.log.close)

    def bundle(self, graph, **recipe):
        folder = tempfile.mkdtemp(dir=self.folder)
        return Bundle(folder, as_c_writes(graph), **recipe)

    def fake(self, option=""):
        # Its standard output belongs to the log, as under prony.
        command = ["sh", "-c", 'exec "$@" >&2', "sh"]
        command += shlex.split(os.environ["PRONY_WORKER"]) + ["--adapter", "fake"]
        driver = Driver(command + (["--option", option] if option else []), stderr=self.log)
        self.addCleanup(end, driver)
        return driver


class NumbersTest(FakeTest):
    def errors(self, graph=None, option="", **recipe):
        """Largest distance from the reference over three steps on three batches, by kind."""
        bundle = self.bundle(graph or small(4), options=option.split("+") if option else [], **recipe)
        driver, reference = self.fake(), Reference(bundle)
        built = driver.prepare(bundle)[2]
        self.assertEqual(built["parameters"], sum(map(len, bundle.weights.values())))
        stage, worst = bundle.recipe["stage"], {"logits": 0, "loss": 0, "gradient": 0, "change": 0}

        def note(kind, found, expected):
            self.assertEqual(len(found), len(expected))
            worst[kind] = max(worst[kind], distance(found, expected))
        for batch in range(3):
            driver.run(1, slot=batch)
            reference.step(batch)
            note("logits", driver.read("logits")["logits"][1], reference.logits)
            if stage != "forward":
                note("loss", driver.read("loss")["loss"][1], reference.loss)
                for name, (_, values) in driver.read("gradients").items():
                    note("gradient", values, reference.gradients[name])
        after = driver.read("weights")
        self.assertEqual(list(after), list(bundle.weights))
        for name, (_, values) in after.items():
            before = bundle.weights[name]
            if stage == "train":
                note("change", [a - b for a, b in zip(values, before)],
                     [a - b for a, b in zip(reference.weights[name], before)])
            else:
                self.assertEqual(values, before)
        self.assertEqual(driver.close(), 0)
        return worst

    def right(self, **recipe):
        worst = self.errors(**recipe)
        for kind in ("logits", "loss", "gradient"):
            self.assertLess(worst[kind], RIGHT, (kind, recipe))
        self.assertLess(worst["change"], CHANGE_RIGHT, recipe)

    def test_stages_and_optimisers(self):
        for recipe in ({"stage": "forward"}, {"stage": "forward-backward"}, {"optimiser": "sgd"},
                       {"optimiser": "momentum", "weight_decay": 0.01},
                       {"optimiser": "rmsprop", "learning_rate": 0.001}):
            with self.subTest(**recipe):
                self.right(**recipe)

    def test_mlp(self):
        self.right(graph=mlp(3, width=20))

    MUTANTS = (("wrong-logits", "logits"), ("no-momentum", "change"), ("lr-scale=1.01", "change"),
               ("no-bias-gradient", "gradient"), ("tf32", "logits"), ("frozen-layer", "change"),
               ("swapped-channels", "logits"))

    def test_mutants(self):
        for option, kind in self.MUTANTS:
            with self.subTest(option=option):
                # Swapped channels hardly move the logits of the network with every operator.
                graph = mlp(3, width=20) if option == "swapped-channels" else small(4)
                worst = self.errors(graph, option=option)
                self.assertGreater(worst[kind], 10 * RIGHT, worst)

    def test_swapped_channels_hide_in_the_weights(self):
        """The mutant that only logits can show: weights come back as they were given."""
        bundle = self.bundle(small(4), options=["swapped-channels"], stage="forward")
        driver = self.fake()
        driver.prepare(bundle)
        self.assertEqual({k: v for k, (_, v) in driver.read("weights").items()}, bundle.weights)

    def test_gate_and_timed_processes_are_told_apart(self):
        for slots, gate in ((3, True), (8, False)):
            for option, wrong in (("gate-only", gate), ("timed-only", not gate)):
                bundle = self.bundle(tiny(4), options=["wrong-threads", option], slots=slots)
                threads = self.fake().prepare(bundle)[1]["threads"]
                self.assertEqual(threads, 2 if wrong else 1, (slots, option))

    def test_dropout(self):
        """Masks change from step to step and keep the mean; off, there is none."""
        bundle = self.bundle(mlp(8, width=64), stage="forward-backward", dropout=True)
        driver = self.fake()
        driver.prepare(bundle)
        losses = []
        for _ in range(3):
            driver.run(1, slot=0)
            losses.append(driver.read("loss")["loss"][1][0])
        self.assertEqual(len(set(losses)), 3)


class ClaimsTest(FakeTest):
    """What it says that is not so."""

    def prepared(self, option, **recipe):
        driver = self.fake(option)
        return driver, driver.prepare(self.bundle(tiny(4), **recipe))

    def test_effective(self):
        for option, key, value in (("wrong-precision", "precision", "bf16"),
                                   ("wrong-precision=tf32", "precision", "tf32"),
                                   ("wrong-threads", "threads", 2)):
            self.assertEqual(self.prepared(option)[1][1][key], value)

    def test_loss(self):
        for option, when in (("nan-loss", 1), ("nan-loss=first", 1), ("nan-loss=last", 4)):
            driver = self.prepared(option)[0]
            for step in range(1, 6):
                driver.run(1, slot=0)
                loss = driver.read("loss")["loss"][1][0]
                self.assertEqual(math.isnan(loss), step >= when, (option, step))

    def test_times(self):
        for option in ("impossible-time", "impossible-time=before", "backwards-time"):
            driver = self.prepared(option)[0]
            with self.assertRaises(AssertionError):
                driver.run(10, "step")
        self.prepared("")[0].run(10, "step")

    def test_known_delay(self):
        for option, least_us in (("delay-us=2000", 2000), ("delay-ms=2", 2000),
                                 ("step-us=2000", 2000)):
            driver = self.prepared(option)[0]
            # Other work on the machine can only lengthen a step; at most so much of it is waited for.
            deadline, shortest_us = time.monotonic() + PATIENCE_S, math.inf
            while shortest_us >= least_us * 1.1 and time.monotonic() < deadline:
                records = driver.run(40, "step")
                shortest_us = min(shortest_us, *((end - begin) / 1e3 for begin, end in records))
            self.assertTrue(least_us <= shortest_us < least_us * 1.1, (option, shortest_us))

    def test_answers(self):
        driver = self.fake("missing")
        reply = driver.ask("hello", **driver.greeting())
        self.assertEqual((reply["ok"], reply["status"]), (False, "missing"))
        bundle = self.bundle(tiny(4), options=["unsupported"])
        driver = self.fake()
        driver.hello(**bundle.target)
        reply = driver.must("supports", bundle=bundle.folder)
        self.assertIs(reply["supported"], False)
        for option, verb, status in (("oom-reply", "build", "out-of-memory"),
                                     ("fail-at=open", "open", "crashed")):
            driver = self.fake(option)
            driver.hello()
            bundle = self.bundle(tiny(4))
            reply = driver.ask("open", bundle=bundle.folder)
            if verb == "build":
                reply = driver.ask("build")
            self.assertEqual((reply["ok"], reply["status"]), (False, status), option)

    def test_unknown_options(self):
        for option, text in (("crahs", "crash"), ("crash-at=lunch", "crash-at"),
                             ("delay-us=x", "delay-us"), ("crash=3", "crash"),
                             ("nan-loss=never", "nan-loss"), ("x" * 80, "too long")):
            driver = self.fake(option)
            reply = driver.ask("hello", **driver.greeting())
            self.assertIs(reply["ok"], False)
            self.assertIn(text, reply["error"])


class FaultTest(FakeTest):
    """What takes the process or the channel down."""

    def until(self, verb, option, **recipe):
        """A driver that is about to send `verb`, and the members to send."""
        driver = self.fake(option)
        bundle = driver.bundle = self.bundle(tiny(4), **recipe)
        members = {"hello": driver.greeting(**bundle.target), "supports": {"bundle": bundle.folder},
                   "open": {"bundle": bundle.folder}, "build": {}, "feed": {"slot": 0, "batch": 0},
                   "run": {"steps": 1, "sync": "end", "slot": 0}, "read": {"what": "loss"},
                   "close": {}}
        for before in members:
            if before == verb:
                return driver, members[verb]
            driver.must(before, **members[before])

    def ends(self, verb, option, code, **recipe):
        driver, members = self.until(verb, option, **recipe)
        with self.assertRaises((EOFError, json.JSONDecodeError)):
            driver.ask(verb, **members)
        self.assertEqual(driver.process.wait(PATIENCE_S), code, option)

    def test_crash(self):
        for verb in ("hello", "open", "build", "feed", "run", "read"):
            place = "step" if verb == "run" else verb
            self.ends(verb, "crash-at=" + place, -signal.SIGSEGV)
        self.ends("run", "crash", -signal.SIGSEGV)
        self.ends("run", "", -signal.SIGSEGV, options=["crash"])
        self.ends("build", "", -signal.SIGSEGV, options=["crash-at=build"])

    def test_crash_at_close(self):
        """The reply has left; only the exit code tells."""
        driver, _ = self.until("close", "crash-at=close")
        driver.must("close")
        self.assertEqual(driver.finish(), -signal.SIGSEGV)

    def test_exit(self):
        self.ends("run", "exit", 0)
        self.ends("run", "exit=3", 3)
        self.ends("open", "exit=7+exit-at=open", 7)

    def test_after(self):
        driver, _ = self.until("run", "crash+after=5", slots=1)
        driver.run(5)
        with self.assertRaises(EOFError):
            driver.ask("run", steps=1, sync="end", slot=0)

    def test_memory(self):
        self.ends("build", "oom=64", -signal.SIGKILL)

    def silent(self, driver, verb, members):
        driver.id += 1
        driver.requests.write(json.dumps(dict(members, id=driver.id, verb=verb)).encode() + b"\n")
        driver.requests.flush()
        self.assertEqual(select.select([driver.reply_read], [], [], BLINK_S)[0], [])
        self.assertIsNone(driver.process.poll())

    def test_hang(self):
        for verb in ("hello", "open", "run"):
            place = "step" if verb == "run" else verb
            driver, members = self.until(verb, "hang-at=" + place)
            self.silent(driver, verb, members)
            driver.process.kill()
            driver.finish()

    def test_grandchild(self):
        driver, members = self.until("open", "grandchild+hang-at=open")
        self.silent(driver, "open", members)
        deadline, left = time.monotonic() + PATIENCE_S, []
        # The one in the middle ends at once; until then it is there, too.
        while len(left) != 1 and time.monotonic() < deadline:
            left = [pid for pid in self.processes_of(driver) if pid != driver.process.pid]
        self.assertEqual(len(left), 1)
        while not self.ignores_signals(left[0]):
            self.assertLess(time.monotonic(), deadline, "it does not ignore signals")
        self.addCleanup(os.kill, left[0], signal.SIGKILL)
        driver.process.kill()
        driver.finish()
        os.kill(left[0], signal.SIGTERM)
        time.sleep(BLINK_S)
        os.kill(left[0], 0)  # still there

    @staticmethod
    def ignores_signals(pid):
        with open("/proc/%d/status" % pid) as source:
            bits = int(re.search(r"^SigIgn:\s*(\w+)", source.read(), re.M).group(1), 16)
        return all(bits >> (number - 1) & 1
                   for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))

    @staticmethod
    def processes_of(driver):
        """Processes that hold the write end of the reply channel, by what /proc shows."""
        pipe = os.readlink("/proc/self/fd/%d" % driver.reply_read)
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                links = [os.readlink("/proc/%s/fd/%s" % (pid, fd))
                         for fd in os.listdir("/proc/%s/fd" % pid)]
            except OSError:
                continue
            if pipe in links and int(pid) != os.getpid():
                found.append(int(pid))
        return found

    def reply_bytes(self, option):
        """What arrives on the reply channel after a run, until the worker has ended."""
        driver, members = self.until("run", option)
        driver.id += 1
        driver.requests.write(json.dumps(dict(members, id=driver.id, verb="run")).encode() + b"\n")
        driver.requests.flush()
        driver.requests.close()
        return driver, driver.replies.read()

    def test_garbage_reply(self):
        driver, data = self.reply_bytes("garbage-reply")
        first, second = data.split(b"\n")[:2]
        with self.assertRaises(ValueError):
            json.loads(first.decode("utf-8", "replace"))
        self.assertIs(json.loads(second.decode())["ok"], True)

    def test_long_line(self):
        driver, data = self.reply_bytes("long-line")
        self.assertGreater(len(data.split(b"\n")[0]), 2 << 20)

    def test_half_reply(self):
        driver, data = self.reply_bytes("half-reply")
        self.assertTrue(data.startswith(b"{") and not data.endswith(b"\n"))
        self.assertEqual(driver.process.wait(PATIENCE_S), 0)

    def test_wrong_id(self):
        driver, data = self.reply_bytes("wrong-id")
        self.assertNotEqual(json.loads(data.decode())["id"], driver.id)

    def test_garbage_stdout(self):
        """Floods of binary data and of lines like replies stay out of the channel."""
        driver, members = self.until("run", "garbage-stdout+garbage-stdout-at=step"
                                            "+garbage-stdout-at=open+garbage-stdout-at=build")
        driver.must("run", **members)
        self.assertEqual(driver.close(), 0)
        self.log.flush()
        with open(self.log_path, "rb") as log:
            data = log.read()
        self.assertGreater(len(data), 256 << 10)
        self.assertIn(b"\0", data)
        self.assertIn(b'{"id": 2, "ok": false', data)


if __name__ == "__main__":
    if "PRONY_WORKER" not in os.environ:
        sys.exit("PRONY_WORKER names no C worker")
    sys.exit(counted.main())
