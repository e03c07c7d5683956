#!/usr/bin/env python3
"""Memory, power and energy of a GPU, from a played driver and NVML to tables and exports.

$PRONY names the program, $PRONY_SOURCE the source tree, $LD_LIBRARY_PATH the folder of the played libraries.
"""
import json
import os
import sys

import counted
from prony_program import ProgramTest, read, write

SOURCE = os.environ.get("PRONY_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
DESCRIPTOR = """name: mine
summary: plain Python that says that it is a GPU
worker:
  command: [python3, "{here}/mlp.py", mine]
devices: [cuda]
"""
# More than 0.7 s, so that the energy has a grade; a step takes 50 ms or more.
STEPS = "40"
WATTS, USED = 300, 2048 << 20


class GpuSensorsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        own = os.path.join(self.environment["XDG_CONFIG_HOME"], "prony", "frameworks")
        os.makedirs(own)
        worker = read(os.path.join(SOURCE, "tests", "workers", "mlp.py"))
        write(os.path.join(own, "mlp.py"), worker.replace('"cpu"', '"cuda:0"'))
        write(os.path.join(own, "mine.yaml"), DESCRIPTOR)

    def test_a_cell_on_a_gpu(self):
        table = self.prony("run", "-n", "mlp", "-d", "mnist-3000", "-b", "8", "-s", "forward", "-D", "cuda:0", "-f", "mine",
                           "--repeat", "1", "--warm-up", "2", "--steps", STEPS, "--store", self.store, expect=0,
                           seconds=900).stdout
        rows = [json.loads(line) for line in self.prony("export", "--format", "jsonl", "--store", self.store,
                                                        expect=0).stdout.splitlines()]
        process = next(row for row in rows if row["type"] == "process")
        self.assertEqual(process["gpu_source"], "nvml")
        self.assertEqual(process["gpu_memory_before"], USED)
        self.assertAlmostEqual(process["gpu_power_window"], WATTS, delta=0.1 * WATTS)
        self.assertIn(process["gpu_energy_grade"], ("B", "C"))
        self.assertAlmostEqual(process["gpu_power_held"], 0.25, delta=0.01)
        self.assertIn("GPU power", table)
        # All memory was in use before: it is not this worker's.
        cell = json.loads(self.prony("show", "--format", "json", "--store", self.store, expect=0).stdout)["cells"][0]
        self.assertIsNone(cell["gpu"]["memory_bytes"])
        self.assertAlmostEqual(cell["gpu"]["joules_per_sample"], process["gpu_energy_joules"] / process["steps"] / 8)

    def test_doctor_says_what_is_refused(self):
        for variable, refused in (("", "refused: temperature memory"), ("refuse=energy", "refused: energy, temperature memory"),
                                  ("mig gpus=1", "refused: energy, power, temperature memory, busy, bus")):
            text = self.prony("doctor", FAKE_NVML=variable).stdout
            self.assertIn("NVML 13.580.0, driver 580.0; " + refused, text)


if __name__ == "__main__":
    sys.exit(counted.main())
