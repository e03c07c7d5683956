#!/usr/bin/env python3
"""Verdicts of the gate kept between runs: taken over, repeated when asked for or in doubt, never a
failure. $PRONY names the program."""
import hashlib
import json
import os
import shutil
import sys

import counted
from prony_program import ProgramTest, read_bytes, write

QUICK = ("-n", "mlp", "-d", "synthetic", "-b", "8", "--quick", "--repeat", "1", "--steps",
         "2", "--warm-up", "1")
HEAD_BYTES = 192


class GateKeptTest(ProgramTest):
    def run_fake(self, *more, framework="fake", stage="forward", expect=0, **variables):
        return self.prony("run", "-f", framework, "-s", stage, *QUICK, *more, "--store",
                          self.store, expect=expect, **variables)

    def newest(self):
        """The cell of the newest run as JSON."""
        text = self.prony("show", "--store", self.store, "--format", "json", expect=0).stdout
        return json.loads(text)["cells"][0]

    def kept(self):
        folder = os.path.join(self.folder, "cache", "prony", "gates")
        return [os.path.join(folder, name) for name in os.listdir(folder)]

    def cached(self):
        return self.newest()["parity"]["evidence"].get("cached")

    def test_a_second_run_takes_the_verdict_over(self):
        first = self.run_fake()
        self.assertIn("parity: fake mlp", first.stderr)
        self.assertNotIn("passed on", first.stderr)
        self.assertIsNone(self.cached())
        checks = self.newest()["parity"]["evidence"]["checks"]
        second = self.run_fake()
        self.assertIn("passed on 2", second.stderr)
        self.assertIn("1 of them checked in an earlier run", " ".join(second.stdout.split()))
        self.assertRegex(self.cached(), r"^\d{4}-\d\d-\d\dT")
        self.assertEqual(self.newest()["parity"]["evidence"]["checks"], checks)
        log = self.prony("log", self.newest()["hash"], "--store", self.store, expect=0).stdout
        self.assertIn("parity gate: ok, in an earlier run on 2", log)
        # Where only how it is timed differs, the gate is the same.
        self.assertIn("passed on", self.run_fake("--sync", "step").stderr)
        again = self.run_fake("--gate")
        self.assertNotIn("passed on", again.stderr)
        self.assertIsNone(self.cached())

    def test_proofs_travel(self):
        shared, cache = os.path.join(self.folder, "shared"), os.path.join(self.folder, "cache", "prony")
        self.run_fake("-D", "cpu")
        keep = ("run", "-f", "fake,pytorch", "-s", "forward", *QUICK, "--keep-proofs", shared, "--store", self.store)
        done = self.prony(*keep, "-D", "cpu,cuda:0", "-p", "fp32,bf16", expect=0)
        self.assertIn("cache: the references of 4 and the first losses of 4 of 4 works, 1 passed gates", done.stdout)
        shutil.rmtree(cache)
        self.assertIn("passed on 2", self.run_fake(PRONY_SHARED=shared).stderr)
        self.assertFalse(os.path.exists(cache))
        # Another prony, or a worker with other variables: the reference alone.
        self.assertIn("parity: fake mlp", self.run_fake(PRONY_SHARED=shared, MKL_CBWR="COMPATIBLE").stderr)
        self.assertEqual(os.listdir(cache), ["gates"])

    def test_a_worker_that_says_otherwise_is_gated_again(self):
        self.run_fake()
        [path] = self.kept()
        verdict = json.loads(read_bytes(path)[HEAD_BYTES:])
        verdict["evidence"]["framework"]["version"] = "0.0.1"
        payload = json.dumps(verdict).encode()
        head = f"prony-cache 1 {os.path.basename(path)} {hashlib.sha256(payload).hexdigest()}\n"
        write(path, head.encode().ljust(HEAD_BYTES, b"\0") + payload)
        done = self.run_fake()
        self.assertIn("passed on", done.stderr)
        self.assertEqual(done.stderr.count("parity: "), 2, done.stderr)
        self.assertIsNone(self.cached())
        self.assertEqual(self.rows("select count(*) from process where status = 'ok'"), [(2,)])
        self.assertIn("passed on", self.run_fake().stderr)


if __name__ == "__main__":
    sys.exit(counted.main())
