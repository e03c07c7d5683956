#!/usr/bin/env python3
"""--public of export, report and compare: nothing of host, user, command line and paths is left, in any form.

$PRONY is the program, $REPORT_STORE fills a store with the runs of tests/unit/report_fixture.c.
"""
import hashlib
import json
import os
import sqlite3
import subprocess
import unittest

from prony_program import ProgramTest, read, read_bytes

REPORT_STORE = os.environ.get("REPORT_STORE", "build/tests/report_store")


class PublicTest(ProgramTest):
    SECRETS = ("secrethost", "secretuser", "secretword", "secretstore", "secretpath")
    TEXT = ("on secrethost: secretuser ran /home/secretuser/x, (/opt/secretpath/lib.so) -I/srv/secretpath "
            "file:///secretpath/y; secrethost.secretword.org: see https://example.org/kept: in '/srv/x/a secretword' or \u2018/srv/secretword\u2019: "
            "/srv/A b/My secretpath/c\\ secretword/d is\nnetworks=/srv/x/my secretword.onnx,/srv/my secretword,lenet\n")

    def setUp(self):
        super().setUp()
        subprocess.run([REPORT_STORE, self.store, "2"], check=True, timeout=240)
        base = sqlite3.connect(self.store)
        environment = {"must_match": {"cpu_model": "Example CPU", "cores_usable": 2},
                       "informational": {"host": "secrethost", "command_line": "root=secretword ro",
                                         "environment": {"PRONY_STORE": "secretstore.db", "PYTHONPATH": "secretpath"},
                                         "text": self.TEXT,
                                         "/opt/secretpath": ["/tmp/secretpath with", {"secrethost.example": 1.5}]}}
        with base:
            base.execute("update run set host = 'secrethost', suite = 'perf', spec = ?, environment = ?,"
                         " command = 'prony run secretword --store /tmp/secretstore.db --data /home/secretuser/data'",
                         (self.TEXT, json.dumps(environment)))
            for column in ("reason", "gate_log"):
                base.execute(f"update cell set {column} = ?", (self.TEXT,))
            for column in ("details", "evidence"):
                base.execute(f"update cell set {column} = json_set({column}, '$.note', ?) where {column} is not null",
                             (self.TEXT,))
            base.execute("update process set error = ?, null_reasons = ?", (self.TEXT, self.TEXT))
            base.execute("update process_log set log = ?", (self.TEXT,))
            base.execute("update process_series set absent = ?", (self.TEXT,))
        base.close()

    def output(self, *words):
        done = self.prony(*words, "--store", self.store)
        # A comparison may end with its verdict.
        self.assertIn(done.returncode, (0, 2, 3) if words[0] == "compare" else (0,), done.stderr)
        return done.stdout

    def forms(self):
        for form in ("json", "jsonl", "md", "latex", "bmf", "github", "openmetrics"):
            yield ("export", "--format", form)
        for layout in ("long", "cells", "wide", "ms"):
            yield ("export", "--layout", layout)
        for form in ("table", "json", "csv", "md"):
            yield ("compare", "1", "2", "--format", form)
        yield ("report", "-o", "-")

    def test_nothing_private_is_in_any_form(self):
        self.environment["LOGNAME"] = "must_match"  # as a member of the record
        found = ""
        for words in self.forms():
            text = self.output(*words, "--public")
            for secret in self.SECRETS:
                self.assertNotIn(secret, text, words)
            found += text
        folder = os.path.join(self.folder, "figures")
        self.output("report", "--figures", folder, "--public")
        for name in os.listdir(folder):
            found += read(os.path.join(folder, name))
        for secret in self.SECRETS:
            self.assertNotIn(secret, found)
        for kept in ("machine 1: [user] ran [path], ([path]) -I[path]", "https://example.org/kept", "Example CPU",
                     '"must_match"', "[path] is", "networks=[path],[path],lenet"):
            self.assertIn(kept, found)

    def test_they_are_there_without_the_option(self):
        found = "".join(self.output(*words) for words in self.forms())
        for secret in self.SECRETS:
            self.assertIn(secret, found)

    def test_the_store_keeps_them(self):
        before = hashlib.sha256(read_bytes(self.store)).hexdigest()
        self.output("export", "--public")
        self.assertEqual(hashlib.sha256(read_bytes(self.store)).hexdigest(), before)


if __name__ == "__main__":
    unittest.main()
