#!/usr/bin/env python3
"""XLA's library when it is damaged or told what it does not know: a status, and no harm to others.

$PRONY names the program, $FAKE_PJRT_PLUGIN a plug-in that goes wrong on request. A class of tests
is the argument: PluginTest needs nothing, InstalledTest takes the XLA of this machine.
"""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import counted  # noqa: E402
from prony_program import ProgramTest  # noqa: E402


class FailureTest(ProgramTest):
    def xla_ends(self, expect, device="cpu:1", **environment):
        done = self.prony("run", "-n", "mlp", "-f", "xla,fake", "-s", "forward", "-b", "8", "-D",
                          f"cpu:1,{device}", "--quick", "--steps", "1", "--warm-up", "0", "--repeat", "1", "--store",
                          self.store, "--format", "json", expect=expect, seconds=300,
                          **environment)
        cells = {(cell["framework"], cell["device"]): cell
                 for cell in json.loads(done.stdout)["cells"]}
        self.assertEqual(cells["fake", "cpu:1"]["status"], "ok")
        return cells["xla", device]["status"], cells["xla", device]["reason"]


class PluginTest(FailureTest):
    def test_damaged(self):
        path = os.path.join(self.folder, "damaged.so")
        with open(path, "wb") as stream:
            stream.write(b"\177ELF")
        status, reason = self.xla_ends(1, PRONY_XLA_LIBRARY=path)
        self.assertEqual(status, "missing")
        self.assertIn(path, reason)
        self.assertIn("file too short", reason)

    def test_another_version(self):
        status, reason = self.xla_ends(1, PRONY_XLA_LIBRARY=os.environ["FAKE_PJRT_PLUGIN"],
                                       FAKE_PJRT="major")
        self.assertEqual(status, "missing")
        self.assertIn("version 7.42 of the PJRT interface", reason)


    def test_another_device(self):
        """The plug-in is asked which devices it has; one of those gets as far as any."""
        plugin = {"PRONY_XLA_LIBRARY": os.environ["FAKE_PJRT_PLUGIN"], "FAKE_PJRT": "works"}
        self.assertEqual(self.xla_ends(1, device="tpu:0", **plugin),
                         ("unsupported", "device tpu:0: xla finds abacus:0, abacus:1 here"))


class InstalledTest(FailureTest):
    def setUp(self):
        super().setUp()
        done = subprocess.run([os.environ["PRONY"], "list", "frameworks", "--format", "json"],
                              text=True, stdout=subprocess.PIPE, check=True)
        if not any(row["framework"] == "xla" and row["status"] == "ready"
                   for row in json.loads(done.stdout)):
            self.skipTest("xla is not installed")

    def test_unknown_flag(self):
        """XLA ends the process; its last words are the reason."""
        status, reason = self.xla_ends(1, XLA_FLAGS="--xla_no_such_flag",
                                       XDG_DATA_HOME=os.environ.get("XDG_DATA_HOME", ""))
        self.assertEqual(status, "crashed")
        self.assertIn("Unknown flag in XLA_FLAGS: --xla_no_such_flag", reason)


if __name__ == "__main__":
    sys.exit(counted.main())
