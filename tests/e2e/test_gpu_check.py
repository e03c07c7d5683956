#!/usr/bin/env python3
"""tools/gpu-check, rehearsed on the fakes of NVIDIA's libraries that the environment names.

$PRONY names the program, $PRONY_SOURCE the source tree.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import counted

PRONY = os.path.abspath(os.environ.get("PRONY", "build/prony"))
SCRIPT = os.path.join(os.environ.get("PRONY_SOURCE", "."), "tools", "gpu-check")
# Files that come back from a lent machine: at most eight.
FILES = {"device.json", "log.txt", "plans.json", "profile.json", "report.html", "results.jsonl", "runs.jsonl.gz"}
REHEARSED = "machine,properties,gates-lenet,gates-transformers,one-by-one,race-lenet,energy,plans,profile"


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="prony-gpu-check-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = os.path.join(self.folder, "out")

    def check(self, *words, prony=PRONY):
        """The exit status, the last line and the recorded checks."""
        environment = dict(os.environ, PRONY_LOCK=os.path.join(self.folder, "lock"),
                           # Native is located by it; a device cuda:N does not load it.
                           PRONY_NATIVE_LIBRARY=os.path.join(os.environ["PRONY_CUDNN"], "libcuda.so.1"))
        done = subprocess.run([sys.executable, SCRIPT, "--out", self.out, "--prony", prony, *words], env=environment,
                              stdout=subprocess.PIPE, text=True, timeout=300, check=False)
        with open(os.path.join(self.out, "results.jsonl"), encoding="utf-8") as stream:
            found = [json.loads(line) for line in stream]
        return done.returncode, done.stdout.splitlines()[-1], found

    def program(self, body):
        path = os.path.join(self.folder, "program")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("#!/bin/sh\n" + body)
        os.chmod(path, 0o755)
        return path

    def test_every_part_on_the_fakes(self):
        status, last, found = self.check("--small", "--batch", "8", "--frameworks", "native", "--parts",
                                         REHEARSED)
        failed = [line for line in found if line["result"] == "failed"]
        passed = [line for line in found if line["result"] == "passed"]
        self.assertEqual((status, failed), (0, []))
        self.assertEqual(last, f"{len(passed)} passed, 0 failed")
        self.assertEqual({line["part"] for line in passed}, set(REHEARSED.split(",")))
        self.assertEqual({line["check"] for line in passed if line["part"] == "gates-lenet"},
                         {f"gate native lenet {stage} 8 {precision}" for stage in ("forward", "train")
                          for precision in ("fp32", "tf32", "fp16", "bf16")})
        self.assertLessEqual(FILES, set(os.listdir(self.out)))
        self.assertLessEqual(len(os.listdir(self.out)), 8)
        with open(os.path.join(self.out, "device.json"), encoding="utf-8") as stream:
            self.assertEqual(json.load(stream)["deviceVer"], 900)

    def test_a_machine_without_the_device(self):
        status, last, found = self.check("--device", "cuda:7")
        self.assertEqual((status, last), (1, "0 passed, 1 failed"))
        self.assertEqual(found[0]["reason"], "there is no cuda:7: nothing else is run")
        self.assertEqual({line["reason"] for line in found[1:]}, {"no time is left for this part"})

    def test_parts_that_fail(self):
        """Neither a program without an answer nor one without an end takes the other parts along."""
        status, last, found = self.check("--parts", "gates-lstm,gates-lenet", prony=self.program("echo nonsense\n"))
        self.assertEqual((status, last), (1, "0 passed, 2 failed"))
        self.assertIn("no JSON", found[0]["reason"])
        # 15 s of these are kept for the report.
        status, last, found = self.check("--parts", "gates-lstm,gates-lenet", "--seconds", "19",
                                         prony=self.program("test $1 != run || exec sleep 100\n"))
        self.assertEqual((status, last), (1, "0 passed, 2 failed"))
        self.assertEqual([line["reason"] for line in found[2:]],
                         ["ended at its limit", "ended at its limit", "no time is left for this part"])


if __name__ == "__main__":
    sys.exit(counted.main())
