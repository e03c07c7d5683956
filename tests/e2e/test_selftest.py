#!/usr/bin/env python3
"""`prony selftest`, with as little time as it takes: what it says, keeps, and later runs make of it.

$PRONY names the program.
"""
import json
import os
import sys

import counted
from prony_program import ProgramTest, read, timed

VERDICTS = {"SAME", "FASTER", "SLOWER", "INCONCLUSIVE"}
RUN = ("run", "-n", "mlp", "-d", "synthetic", "-b", "8", "-s", "forward", "-D", "cpu:1",
       "-f", "fake", "--repeat", "3", "--steps", "5", "--warm-up", "1")


class SelftestTest(ProgramTest):
    def check_noise(self, noise):
        self.assertGreaterEqual(noise["apart"], 0.01)
        # Twice the floor is beyond the threshold by more than five pairs of the same ever are.
        self.assertGreater(2 * noise["floor"], noise["apart"] + 4.3 * noise["spread"] / 5 ** 0.5)
        self.assertGreaterEqual(noise["rounds"], 2)
        same = noise["same"]
        self.assertTrue(same["low"] <= same["ratio"] <= same["high"])
        injected = [delay["injected"] for delay in noise["delays"]]
        self.assertEqual(len(injected), 3)
        self.assertEqual(injected, sorted(injected))
        self.assertTrue(0 < injected[0] < 0.05 and injected[2] < 0.25, injected)
        for delay in noise["delays"]:
            self.assertIn(delay["verdict"], VERDICTS)
            self.assertEqual(delay["found"], delay["low"] > 1)
            if noise["rounds"] > 5:
                self.assertTrue(0 <= delay["found_by_5_pairs"] <= 1)
            else:
                self.assertIsNone(delay["found_by_5_pairs"])

    def check_ceilings(self, ceilings):
        for name in ("fma_fp32", "bandwidth"):
            self.assertGreater(ceilings[name]["one"], 0, name)
        for name in ("fma_fp32", "fma_bf16", "matrix_fp32", "matrix_fp16", "matrix_bf16", "bandwidth"):
            self.assertEqual(ceilings[name]["one"] is None, ceilings[name]["absent"] is not None)

    @timed
    def test_what_it_keeps_is_in_later_runs(self):
        self.environment["XDG_DATA_HOME"] = os.path.join(self.folder, "data")
        found = json.loads(self.prony("selftest", "--seconds", "1", "--format", "json",
                                      expect=0).stdout)
        self.check_noise(found["noise"])
        self.check_ceilings(found["ceilings"])
        self.assertGreater(found["clock"]["read_ns"], 0)
        self.assertGreaterEqual(found["observer"]["share_of_core"], 0)
        self.assertLess(found["observer"]["share_of_core"], 0.05)
        # On a machine that does other things it is not the machine's own, and not kept.
        kept = found["noise"]["apart"] <= 0.1
        self.assertEqual(found["noise"]["kept"], kept)
        self.assertEqual("Noise floor:" in self.prony("doctor", expect=0).stdout, kept)

        self.prony(*RUN, "--store", self.store, expect=0)
        export = json.loads(self.prony("export", "--format", "json", "--store", self.store,
                                       expect=0).stdout)
        measured = export["run"]["environment"]["informational"]["measured"]
        self.assertEqual(measured.get("noise", {}).get("floor"),
                         found["noise"]["floor"] if kept else None)
        cell = export["cells"][0]
        self.assertEqual(cell["precision_proved"], "fp32")
        peak = cell["peak"]
        self.assertGreaterEqual(peak["flops_per_second"], found["ceilings"]["fma_fp32"]["one"])
        self.assertAlmostEqual(peak["share"], cell["flops_per_second"] / peak["flops_per_second"])
        self.check_doctor_of_other_surroundings()

    def check_doctor_of_other_surroundings(self):
        machines = os.path.join(self.environment["XDG_DATA_HOME"], "prony", "machines")
        file, = (os.path.join(machines, name) for name in os.listdir(machines))
        kept = json.loads(read(file))
        now = kept["ceilings"]["surroundings"]
        for surroundings, said in ((now, False), ({**now, "kernel": "2.6.32"}, True)):
            kept["noise"] = {"floor": 0.04, "measured_at": "2026-11-01T11:06:40Z", "surroundings": surroundings}
            with open(file, "w", encoding="utf-8") as stream:
                json.dump(kept, stream)
            text = self.prony("doctor", expect=0).stdout
            self.assertIn("Noise floor: 4 % (prony selftest, 2026-11-01T11:06:40Z)", text)
            self.assertEqual("other conditions: kernel: then 2.6.32, now " in text, said, text)

    def test_usage(self):
        self.assertIn("takes no arguments", self.prony("selftest", "now", expect=64).stderr)
        self.assertIn("--cpus", self.prony("ceilings", expect=64).stderr)
        self.assertIn("--cpus", self.prony("ceilings", "--cpus", "0,x", expect=64).stderr)


if __name__ == "__main__":
    sys.exit(counted.main())
