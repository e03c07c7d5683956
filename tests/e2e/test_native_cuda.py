#!/usr/bin/env python3
"""native on cuda:0, with the fakes of tests/cuda for the driver, cuDNN and cuBLASLt.

The real program passes small networks through the gate. $PRONY names the program, $CUDA_FAKES the
folder of the fakes. Nothing here needs a GPU, CUDA or a framework.
"""
import json
import os
import sys

import counted
from prony_program import ProgramTest, read, write
from random_networks import upsampler

FAKES = os.path.abspath(os.environ["CUDA_FAKES"])
PRECISIONS = "fp32,tf32,fp16,bf16"


class CudaTest(ProgramTest):
    def setUp(self):
        super().setUp()
        # The fake driver has the kernels itself and takes any file for them.
        kernels = os.path.join(self.folder, "kernels")
        os.mkdir(kernels)
        write(os.path.join(kernels, "any.fatbin"), "")
        self.environment.update({
            "LD_LIBRARY_PATH": FAKES, "PRONY_CUDNN": FAKES, "PRONY_CUBLAS": FAKES,
            "PRONY_CUDA_KERNELS": kernels,
            # Plans by the heuristics: times on fakes differ from run to run.
            "PRONY_CUDA_MEASURE": "0",
            # Located by it; a device cuda:N does not load it.
            "PRONY_NATIVE_LIBRARY": os.path.join(FAKES, "libcuda.so.1")})

    def gate(self, networks, *words, precisions="fp32", stages="train", device="cuda:0", **more):
        """{(network, precision, stage): cell} after the gates."""
        framework = [] if "-f" in words else ["-f", "native"]
        done = self.prony("run", "-D", device, *framework, "-n", networks, "-p", precisions,
                          "-s", stages, "--gate-only", "--gate", "--store", self.store, "--format", "json",
                          *words, **more)
        self.assertTrue(done.stdout, done.stderr)
        return {(cell["network"], cell["precision"], cell["stage"]): cell
                for cell in json.loads(done.stdout)["cells"]}

    def assert_passed(self, cells, count):
        self.assertEqual({key: (cell["status"], cell.get("reason", "")) for key, cell in cells.items()
                          if cell["status"] != "ok"}, {})
        self.assertEqual(len(cells), count)


class GateTest(CudaTest):
    def test_networks_pass_as_captured_steps(self):
        leaks = os.path.join(self.folder, "leaks")
        cells = self.gate("mlp,lenet,tagger,lstm", "-b", "2", precisions=PRECISIONS, stages="forward,train",
                          FAKE_CUDA_LEAKS=leaks)
        self.assert_passed(cells, 32)
        self.assertFalse(os.path.exists(leaks) and read(leaks), "memory of the device is never freed")

    def test_networks_pass_command_by_command(self):
        self.assert_passed(self.gate("mlp,lenet", "-b", "2", stages="forward-backward,train",
                                     PRONY_CUDA_GRAPH="0", PRONY_CUDA_MEASURE="1"), 4)

    def test_products_without_epilogues(self):
        self.assert_passed(self.gate("mlp", "-b", "2", precisions="fp32,fp16", stages="forward,train",
                                     FAKE_CUBLASLT_PLAIN="1"), 4)

    def test_attention(self):
        """One call in 16 bits, without a mask and with a causal one; its separate operators in fp32 and on request."""
        for network, framework, precision, stage, note in (
                ("bert-tiny", "native", "bf16", "train", "2 of 2;"),
                ("llama-tiny", "native", "fp16", "train", "5 of 5;"),
                ("bert-tiny", "native", "fp32", "forward", "0 of 2 (cuDNN's attention takes fp16 and bf16 only)"),
                ("bert-tiny", "native+explicit", "bf16", "forward", "0 of 2 (explicit)")):
            cells = self.gate(network, "-b", "1", "--sequence", "8", "-f", framework, precisions=precision, stages=stage)
            self.assert_passed(cells, 1)
            self.assertIn("attention: fused " + note, cells[network, precision, stage]["details"]["notes"])

    def test_upsampling(self):
        """Operators that grow and normalise images."""
        path = os.path.join(self.folder, "upsampler.onnx")
        with open(path, "wb") as stream:
            stream.write(upsampler())
        self.assert_passed(self.gate(path, "-b", "2", "-d", "synthetic", precisions="fp32,bf16"), 2)

    def test_decode(self):
        self.assert_passed(self.gate("llama-tiny", "-b", "2", "--sequence", "8", precisions="fp32,bf16",
                                     stages="prefill,decode"), 4)

    def test_clipped_gradients(self):
        self.assert_passed(self.gate("mlp", "-b", "2", "--clip-norm", "1", precisions="fp32,fp16"), 2)
        cell, = self.gate("mlp", "-b", "2", "--clip-norm", "1", "--optimiser", "adamw").values()
        self.assertEqual(cell["status"], "ok")

    def test_convolutions(self):
        # Residual sums and normalisations within convolutions.
        self.assert_passed(self.gate("resnet50-cifar", "-b", "1", precisions="fp32,bf16", stages="forward"), 2)
        self.assertIn(" sum bias relu", self.plans())

    def test_convolutions_in_training(self):
        # Residual sums and normalisations are beside them. A run for each: instrumented builds are slow.
        for precision in ("fp32", "bf16"):
            self.assert_passed(self.gate("resnet50-cifar", "-b", "1", precisions=precision), 1)

    def test_convolutions_without_epilogues(self):
        self.assert_passed(self.gate("cnn", "-b", "2", precisions="fp32,fp16", stages="forward,train",
                                     FAKE_CUDNN_PLAIN="1"), 4)
        self.assertNotIn(" bias", self.plans())

    def plans(self):
        """The kept plans of convolutions."""
        folder = os.path.join(self.environment["XDG_CACHE_HOME"], "prony", "cuda-plans")
        return "".join(read(os.path.join(folder, name)) for name in os.listdir(folder))

    def test_skipped_work_fails_the_gate(self):
        trace = os.path.join(self.folder, "trace")
        self.assert_passed(self.gate("mlp", "-b", "2", FAKE_CUDA_TRACE=trace), 1)
        works = sorted({int(line.split()[1]) for line in read(trace).splitlines() if line.startswith("skip")})
        self.assertGreater(len(works), 10)
        passed = [i for i in works if self.gate("mlp", "-b", "2", FAKE_CUDA=f"skip:{i}")[
            "mlp", "fp32", "train"]["status"] == "ok"]
        self.assertEqual(passed, [])


class EngineTest(CudaTest):
    def test_strict_fp32_has_its_own_engines(self):
        """67 notes tensor cores, 17 notes nothing and is off; an executor that takes either fails the gate in fp32."""
        for engine in ("67", "17"):
            cell, = self.gate("lenet", "-b", "2", FAKE_CUDNN_ENGINE=engine).values()
            self.assertEqual(cell["status"], "unsupported")
            self.assertIn("no strict fp32 engine", cell["reason"])
        self.assert_passed(self.gate("lenet", "-b", "2", precisions="tf32", FAKE_CUDNN_ENGINE="67"), 1)


class MissingTest(CudaTest):
    def test_a_machine_without_a_driver(self):
        cell, = self.gate("mlp", LD_LIBRARY_PATH="").values()
        self.assertEqual(cell["status"], "missing")
        self.assertIn("no GPU with an NVIDIA driver", cell["reason"])

    def test_a_device_that_is_not_there(self):
        cell, = self.gate("mlp", device="cuda:3", FAKE_CUDA_DEVICES="2").values()
        self.assertEqual(cell["status"], "missing")
        self.assertIn("this machine has 2 GPUs", cell["reason"])

    def test_libraries_that_are_not_there(self):
        for variable, says in (("PRONY_CUDNN", "has no libcudnn.so.9"), ("PRONY_CUBLAS", "has neither libcublasLt"),
                               ("PRONY_CUDA_KERNELS", "has no files *.fatbin")):
            with self.subTest(variable):
                cell, = self.gate("mlp", **{variable: self.folder}).values()
                self.assertIn(cell["status"], ("missing", "unsupported"))
                self.assertIn(says, cell["reason"])


if __name__ == "__main__":
    sys.exit(counted.main())
