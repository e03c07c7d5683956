#!/usr/bin/env python3
"""Real traffic of the workers against docs/schemas/worker-protocol.schema.json, and that schema
against docs/worker-protocol.md and samples/protocol.h.

$PRONY names the program.
"""
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import unittest

import counted
import json_schema
from prony_program import PRONY, read
from worker_driver import Bundle, Driver, small

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
VERBS = ["hello", "supports", "open", "build", "feed", "run", "read", "profile", "close"]


def source(*parts):
    return read(os.path.join(ROOT, *parts))


SCHEMA = json_schema.read("worker-protocol")


def problems(value, schema):
    return json_schema.problems(value, schema, SCHEMA)


def definition(name):
    return {"$ref": "#/$defs/" + name}


class CheckedDriver(Driver):
    """A driver that holds every line to the schema, and to the names that it documents."""

    def ask(self, verb, **members):
        reply = super().ask(verb, **members)
        request = dict(members, id=self.id, verb=verb)
        if reply["ok"]:
            self.check(request, verb + ".request")
            self.check(reply, verb + ".reply")
        else:
            self.check(reply, "failure.reply")
        self.check(reply, "reply")
        return reply

    @staticmethod
    def check(line, name):
        wrong = problems(line, definition(name))
        assert not wrong, "%s: %s" % (name, "; ".join(wrong))
        if name in SCHEMA["$defs"] and "properties" in SCHEMA["$defs"][name]:
            extra = set(line) - set(SCHEMA["$defs"][name]["properties"])
            assert not extra, "%s has members that no document names: %s" % (name, sorted(extra))


def workers():
    """{name: command} of the workers that can run here."""
    found = {"python null": [sys.executable, os.path.join(ROOT, "python", "worker.py"),
                             "--adapter", "null"]}
    if shutil.which("perl"):
        found["perl null"] = ["perl", os.path.join(ROOT, "tests", "workers", "null.pl")]
    for adapter in ("null", "fake"):
        found["C " + adapter] = [PRONY, "worker", "--adapter", adapter]
    return found


class TrafficTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.log = open(os.path.join(scratch.name, "log"), "w")
        self.addCleanup(self.log.close)

    def converse(self, command, stage, shared):
        bundle = Bundle(tempfile.mkdtemp(dir=self.folder), small(4), stage=stage)
        driver = CheckedDriver(command, shared=shared, stderr=self.log)
        self.addCleanup(driver.end)
        driver.prepare(bundle)
        driver.run(7, "end")
        driver.run(7, "step", slot=1)
        driver.run(7, "blocks", every=3, slot=2)
        self.assertEqual(list(driver.read("logits")), ["logits"])
        self.assertEqual(list(driver.read("weights")), list(bundle.weights))
        self.assertEqual(list(driver.read("state")), [])
        if stage != "forward":
            self.assertEqual(list(driver.read("loss")), ["loss"])
            self.assertEqual(list(driver.read("gradients")), list(bundle.weights))
        self.assertIs(driver.ask("profile", what="layers", steps=2, slot=0)["ok"], False)
        self.assertEqual(driver.close(), 0)

    def test_every_worker(self):
        for name, command in workers().items():
            for stage in ("forward", "forward-backward", "train"):
                # The Perl example knows files only.
                for shared in (False,) if "perl" in name else (True, False):
                    with self.subTest(worker=name, stage=stage, shared=shared):
                        self.converse(command, stage, shared)

    def test_refusals(self):
        for name, command in workers().items():
            if "perl" in name:
                continue  # an example that trusts its parent
            with self.subTest(worker=name):
                driver = CheckedDriver(command, stderr=self.log)
                self.addCleanup(driver.end)
                self.assertIs(driver.ask("dance")["ok"], False)
                self.assertIs(driver.ask("build")["ok"], False)
                self.assertIs(driver.ask("hello", **dict(driver.greeting(), protocol=9))["ok"], False)
                for line in (b"", b"[]", b"{}", b"\xff\xfe", b'{"id": 1, "verb": 7}'):
                    CheckedDriver.check(driver.send(line), "failure.reply")
                driver.hello()
                self.assertIs(driver.ask("open", bundle="/nowhere/at/all")["ok"], False)
                self.assertEqual(driver.close(), 0)


class ValidatorTest(unittest.TestCase):
    """The validator above refuses what it must: a check that cannot fail proves nothing."""

    GOOD = {"id": 3, "ok": True, "device": "cpu", "threads": 2, "precision": "fp32", "open_ns": 5}

    def test_good(self):
        self.assertEqual(problems(self.GOOD, definition("open.reply")), [])
        self.assertEqual(problems(self.GOOD, SCHEMA), [])

    def test_bad(self):
        for change in ({"id": 0}, {"id": True}, {"id": "3"}, {"ok": False}, {"ok": 1},
                       {"device": None}, {"threads": 0}, {"precision": "fp64"}, {"open_ns": -1},
                       {"open_ns": 1.5}, {"settings": []}, {"mxcsr": -1}):
            line = dict(self.GOOD, **change)
            self.assertTrue(problems(line, definition("open.reply")), change)
        for missing in self.GOOD:
            line = {key: value for key, value in self.GOOD.items() if key != missing}
            self.assertTrue(problems(line, definition("open.reply")), missing)
        self.assertTrue(problems({"id": 1, "verb": "dance"}, SCHEMA))


class DocumentTest(unittest.TestCase):
    """Schema, document and header name the same things."""

    DOCUMENT = source("docs", "worker-protocol.md")
    HEADER = source("samples", "protocol.h")

    def section(self, verb):
        return re.search(r"^### %s\n(.*?)^##" % verb, self.DOCUMENT, re.M | re.S).group(1)

    def test_verbs(self):
        self.assertEqual(re.findall(r"^### (\w+)$", self.DOCUMENT, re.M), VERBS)
        table = self.HEADER.split("#define PROTOCOL_VERBS(X)")[1].split("\n\n")[0]
        self.assertEqual(re.findall(r'X\([A-Z]+, "(\w+)"\)', table), VERBS)
        for kind in ("request", "reply"):
            self.assertTrue({"%s.%s" % (verb, kind) for verb in VERBS} <= set(SCHEMA["$defs"]))

    def test_members_are_documented(self):
        general = self.DOCUMENT[:self.DOCUMENT.index("### hello")]
        for verb in VERBS:
            section = self.section(verb)
            for kind in ("request", "reply"):
                for member in SCHEMA["$defs"]["%s.%s" % (verb, kind)]["properties"]:
                    text = general if member in ("id", "verb", "ok") else section
                    self.assertRegex(text, r"`[^`]*\b%s\b[^`]*`" % member,
                                     "%s of %s.%s" % (member, verb, kind))
        for member in SCHEMA["$defs"]["failure.reply"]["properties"]:
            self.assertIn("`%s`" % member, general)

    def test_documented_members_are_in_the_schema(self):
        request, reply = self.section("hello").split("The reply comes")
        for text, kind, more in ((request, "request", {"id", "verb", "shared_memory"}),
                                 (reply, "reply", {"id", "ok"})):
            rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", text, re.M)
            names = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
            self.assertEqual(names | more, set(SCHEMA["$defs"]["hello." + kind]["properties"]))

    def test_examples(self):
        channel = self.DOCUMENT[:self.DOCUMENT.index("## Verbs")]
        lines = re.search(r"```json\n(.*?)```", channel, re.S).group(1).splitlines()
        self.assertEqual(problems(json.loads(lines[0]), definition("open.request")), [])
        self.assertEqual(problems(json.loads(lines[2]), definition("failure.reply")), [])

    def test_constants(self):
        for name in re.findall(r'PROTOCOL_ENV_\w+ "(\w+)"', self.HEADER):
            self.assertIn("`%s`" % name, self.DOCUMENT)
        magic = re.search(r"SHARED_MAGIC (0x\w+?)u", self.HEADER).group(1)
        self.assertIn(magic, self.DOCUMENT)
        self.assertIn("(1 << 20)", self.HEADER)
        self.assertIn("1 MiB", self.DOCUMENT)
        for verb, key in (("run", "sync"), ("read", "what")):
            for word in SCHEMA["$defs"][verb + ".request"]["properties"][key]["enum"]:
                self.assertIn("`%s`" % word, self.section(verb))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(counted.main())
