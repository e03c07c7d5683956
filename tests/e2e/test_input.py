#!/usr/bin/env python3
"""How batches arrive: synthetic, resident, stream, and loading alone. $PRONY is the program."""
import array
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib

import counted
from prony_program import PRONY, ProgramTest, read, timed, write
from worker_driver import PAGE, Bundle, Driver, Network

PRONY_WORKER = [os.path.abspath(PRONY), "worker", "--adapter"]
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PYTHON_WORKER = [sys.executable, os.path.join(ROOT, "python", "worker.py"), "--adapter"]
SLOTS, BATCH, WIDTH = 3, 4, 6
STRIDE = 2 * PAGE
LATE_S = 0.02
FIXED = ("--quick", "--steps", "12", "--warm-up", "3", "--repeat", "3")


def tiny():
    net = Network("tiny", [BATCH, WIDTH])
    net.linear("f1", 5)
    return net.graph()


class Feeder(threading.Thread):
    """Fills the ring with batch n = all values n, each `late` seconds after the last, or stops after
    `count`."""

    def __init__(self, driver, count, late):
        super().__init__(daemon=True)
        self.driver, self.count, self.late = driver, count, late

    def run(self):
        driver = self.driver
        place = driver.total - driver.ring_bytes
        for n in range(self.count):
            if n >= SLOTS:
                os.read(driver.free, 1)
            time.sleep(self.late)
            begin = place + n % SLOTS * STRIDE
            values = array.array("f", [n] * (BATCH * WIDTH)).tobytes()
            driver.room[begin:begin + len(values)] = values
            labels = array.array("q", [n % 5] * BATCH).tobytes()
            driver.room[begin + PAGE:begin + PAGE + len(labels)] = labels
            os.write(driver.ready, b"\0")
        os.close(driver.ready)


class WorkerTest(unittest.TestCase):
    """The ring, from the parent's side."""

    def worker(self, command, stage="train", **recipe):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        driver = Driver(command, ring_bytes=SLOTS * STRIDE)
        self.addCleanup(driver.end)
        bundle = Bundle(folder.name, tiny(), slots=SLOTS, stage=stage, input="stream", **recipe)
        return driver, bundle

    def test_slow_loader_is_waiting(self):
        for command in (PRONY_WORKER + ["null"], PYTHON_WORKER + ["null"], PRONY_WORKER + ["fake"]):
            with self.subTest(command=command[-3:]):
                driver, bundle = self.worker(command)
                driver.prepare(bundle)
                feeder = Feeder(driver, 20, LATE_S)
                feeder.start()
                driver.run(5)
                records = driver.run(10, slot=5 % SLOTS)
                passed = records[-1][1] - records[0][0]
                self.assertGreater(passed, 0.9 * 9 * LATE_S * 1e9)
                self.assertGreater(driver.reply["wait_ns"], 0.8 * 9 * LATE_S * 1e9)
                self.assertLessEqual(driver.reply["wait_ns"] + driver.reply["copy_ns"], passed)

    @timed
    def test_fast_loader_is_not(self):
        """Batches that are there before they are needed are not waited for, whatever the step takes."""
        driver, bundle = self.worker(PRONY_WORKER + ["fake", "--option", "delay-ms=20"])
        driver.prepare(bundle)
        Feeder(driver, 20, 0).start()
        driver.run(2)
        records = driver.run(10, slot=2)
        passed = records[-1][1] - records[0][0]
        self.assertGreater(passed, 10 * 0.02 * 1e9)
        self.assertLess(driver.reply["wait_ns"], passed / 2)

    def test_batches_in_order(self):
        """Each step computes on its own batch: the loss after n steps is that of batch n - 1."""
        losses = {}
        for name, stream in (("stream", True), ("resident", False)):
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            graph = tiny()
            driver = Driver(PRONY_WORKER + ["fake"], ring_bytes=SLOTS * STRIDE if stream else 0)
            self.addCleanup(driver.end)
            bundle = Bundle(folder.name, graph, slots=SLOTS if stream else 7,
                            input="stream" if stream else "resident")
            if not stream:
                bundle.batches = [{"x": [float(n)] * (BATCH * WIDTH), "y": [n % 5] * BATCH} for n in range(7)]
                bundle.write()
            driver.prepare(bundle)
            if stream:
                Feeder(driver, 8, 0).start()
            losses[name] = []
            for n in range(7):
                driver.run(1, slot=n % bundle.recipe["slots"])
                losses[name].append(driver.read("loss")["loss"][1][0])
        self.assertEqual(losses["stream"], losses["resident"])

    def test_loader_ends(self):
        for command in (PRONY_WORKER + ["null"], PYTHON_WORKER + ["null"]):
            with self.subTest(command=command[-3:]):
                driver, bundle = self.worker(command)
                driver.prepare(bundle)
                Feeder(driver, 2, 0).start()
                reply = driver.ask("run", steps=5, sync="end", slot=0)
                self.assertEqual((reply["ok"], reply["status"]), (False, "invalid"), reply)
                self.assertRegex(reply["error"], "no more batches|closed the ring of batches")

    def test_feed_is_refused(self):
        for command in (PRONY_WORKER + ["null"], PYTHON_WORKER + ["null"]):
            driver, bundle = self.worker(command)
            driver.prepare(bundle)
            reply = driver.ask("feed", slot=0, batch=0)
            self.assertEqual((reply["ok"], reply["status"]), (False, "invalid"), reply)

    def test_bad_rings(self):
        for command in (PRONY_WORKER + ["null"], PYTHON_WORKER + ["null"]):
            for ring in ({"ready_fd": 900, "free_fd": 901}, {"ready_fd": "x", "free_fd": 5}, [], {}):
                with self.subTest(command=command[-3:], ring=ring):
                    driver, _ = self.worker(command)
                    reply = driver.ask("hello", **dict(driver.greeting(), ring=ring or {"a": 1}))
                    self.assertEqual((reply["ok"], reply["status"]), (False, "invalid"), reply)

    def test_no_ring(self):
        for command in (PRONY_WORKER + ["null"], PYTHON_WORKER + ["null"]):
            driver, bundle = self.worker(command)
            driver.ring = None
            driver.hello()
            driver.must("supports", bundle=bundle.folder)
            reply = driver.ask("open", bundle=bundle.folder)
            self.assertEqual((reply["ok"], reply["status"]), (False, "invalid"), reply)


class OwnLoaderTest(unittest.TestCase):
    """What the adapters' loaders have in common."""

    def test_classes_of_photographs(self):
        """As prony numbers them: hidden names and folders without pictures are no classes."""
        sys.path.insert(0, os.path.join(ROOT, "python"))
        self.addCleanup(sys.path.pop, 0)
        import own_loader
        with tempfile.TemporaryDirectory() as folder:
            for name in (".hidden/a.png", "a-empty/labels.txt", "b/x.png", "b/._x.png", "c/y.PNG", "c/notes"):
                os.makedirs(os.path.join(folder, os.path.dirname(name)), exist_ok=True)
                with open(os.path.join(folder, name), "wb"):
                    pass
            data = own_loader.Data.__new__(own_loader.Data)
            data.shards, data.first, data.count, data.format = [[folder]], 0, 2, "images"
            self.assertEqual(data.photographs(),
                             [(os.path.join(folder, "b/x.png"), 0), (os.path.join(folder, "c/y.PNG"), 1)])
            self.assertEqual(data.problems(), [])
            data.shards = [[os.path.join(folder, "b")]]
            self.assertIn("must be a folder with one folder of pictures for each class", data.problems()[0])

    def test_locks_have_what_loaders_need(self):
        locks = os.path.join(ROOT, "frameworks", "locks")
        found = [name for name in os.listdir(locks) if name.startswith("pytorch")]
        self.assertGreaterEqual(len(found), 3)
        for name in found:
            text = read(os.path.join(locks, name))
            for package in ("lmdb==", "pillow=="):
                self.assertIn("\n" + package, text, name)


class InputTest(ProgramTest):
    def run_cells(self, *words, **more):
        self.prony("run", "--store", self.store, *words, expect=0, **more)
        text = self.prony("export", "--store", self.store, "--format", "json", expect=0).stdout
        return json.loads(text)

    def processes(self, exported, **axes):
        found = [cell for cell in exported["cells"]
                 if all(cell[key] == value for key, value in axes.items())]
        self.assertEqual(len(found), 1, [cell["key"] for cell in exported["cells"]])
        return found[0], found[0]["processes"]

    def test_inputs(self):
        exported = self.run_cells("-f", "fake", "-n", "mlp", "-d", "mnist-3000", "-b", "8", "-s",
                                  "train", "--input", "synthetic,resident,stream", *FIXED)
        first = {}
        for word in ("synthetic", "resident", "stream"):
            cell, processes = self.processes(exported, input=word)
            self.assertEqual(cell["status"], "ok", cell["reason"])
            first[word] = {process["loss_first"] for process in processes}
            for process in processes:
                if word == "stream":
                    self.assertGreaterEqual(process["input_wait_ns"], 0)
                    self.assertGreater(process["input_copy_ns"], 0)
                    self.assertLess(process["input_wait_ns"] + process["input_copy_ns"],
                                    process["step_mean_ns"])
                else:
                    self.assertIsNone(process["input_wait_ns"])
                    self.assertIsNone(process["load_batches"])
        shown = self.prony("show", "--store", self.store, expect=0).stdout
        self.assertRegex(" ".join(shown.split()), r"input: fake waits .* resident is .* synthetic is")
        # The same batches, or random ones.
        self.assertEqual(first["stream"], first["resident"])
        self.assertNotEqual(first["synthetic"], first["resident"])
        self.assertNotIn("input synthetic", "".join(
            cell["reason"] or "" for cell in exported["cells"]))

    def test_forward(self):
        exported = self.run_cells("-f", "fake", "-n", "mlp", "-d", "mnist-3000", "-b", "8", "-s",
                                  "forward", "--input", "resident,stream", *FIXED)
        first = [{p["loss_first"] for p in self.processes(exported, input=word)[1]}
                 for word in ("resident", "stream")]
        self.assertEqual(*first)

    def test_default_is_in_no_title(self):
        done = self.prony("run", "--dry-run", "-f", "fake", "-n", "mlp", "--input", "resident,stream",
                          "-d", "mnist-3000", expect=0)
        self.assertIn("stream", done.stdout + done.stderr)

    def test_nothing_to_load(self):
        done = self.prony("run", "--store", self.store, "-f", "fake", "-n", "mlp", "-d", "synthetic",
                          "--input", "stream", expect=1)
        self.assertIn("is generated, not loaded", done.stdout)
        done = self.prony("run", "--store", self.store, "-f", "fake", "-n", "mlp", "-d",
                          "mnist-3000", "-s", "load", expect=1)
        self.assertIn("only the framework native", done.stdout)
        done = self.prony("run", "-f", "native", "-n", "lenet", "-d", "mnist-3000", "-s", "load,forward", "--input", "cold",
                          "--dry-run")
        text = " ".join(done.stdout.split())
        for said in ("samples of mnist-3000 stay in memory", "measures storage, with the stage load only"):
            self.assertIn(said, text)

    def test_synthetic_needs_no_files(self):
        exported = self.run_cells("-f", "fake", "-n", "mlp", "-d", "mnist", "-b", "8", "--input",
                                  "synthetic", *FIXED, PRONY_DATA="")
        cell, _ = self.processes(exported, input="synthetic")
        self.assertEqual((cell["status"], cell["dataset"]), ("ok", "mnist"), cell["reason"])

    @timed
    def test_load(self):
        """Loading alone takes what null waits for when batches arrive: it computes nothing."""
        exported = self.run_cells("-f", "null", "-n", "mlp", "-d", "mnist-3000", "-b", "64", "-s",
                                  "forward,load", "--input", "stream", "--steps", "400", "--warm-up",
                                  "50", "--repeat", "3")
        for stage in ("forward", "load"):
            cell, processes = self.processes(exported, stage=stage)
            self.assertEqual((cell["status"], cell["input"]), ("ok", "stream"), cell["reason"])
            for process in processes:
                self.assertGreater(process["input_wait_ns"], 0.5 * process["step_mean_ns"])
                self.assertGreaterEqual(process["load_batches"], 400 - 8)
                self.assertGreater(process["load_decode_ns"], 0)

    def test_broken_photograph(self):
        """The loader's own words, not those of the worker that it left waiting."""
        def chunk(kind, data):
            return (struct.pack(">I", len(data)) + kind + data
                    + struct.pack(">I", zlib.crc32(kind + data)))
        pixels = zlib.compress(b"".join(b"\0" + bytes(3 * 40) for _ in range(40)))
        png = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", 40, 40, 8, 2, 0, 0, 0))
               + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))
        train = os.path.join(self.folder, "pictures", "imagenet-sample", "train")
        for n in range(100):
            os.makedirs(os.path.join(train, "n%08d" % n))
            write(os.path.join(train, "n%08d" % n, "a.JPEG"), png if n != 40 else png[:-30])
        words = ("-f", "null", "-n", "googlenet", "-d", "imagenet-sample", "--data",
                 os.path.join(self.folder, "pictures"), "-b", "8", "-s", "load", "--steps", "20",
                 "--warm-up", "1", "--repeat", "1")
        done = self.prony("run", "--store", self.store, *words, expect=1)
        self.assertIn("n00000040/a.JPEG", done.stdout)
        write(os.path.join(train, "n00000040", "a.JPEG"), png)
        self.prony("run", "--store", self.store, *words, "--input", "stream,cold", expect=0)
        exported = json.loads(self.prony("export", "--format", "json", "--store", self.store, expect=0).stdout)
        self.assertEqual([(cell["input"], cell["status"]) for cell in exported["cells"]], [("stream", "ok"), ("cold", "ok")])

    def test_native_is_refused_with_reason(self):
        done = self.prony("run", "--store", self.store, "-f", "fake", "-n", "mlp", "-d",
                          "mnist-3000", "--input", "native", expect=1)
        self.assertIn("prony cannot run a data loader of fake", done.stdout)

    def test_native_thesis_is_whole(self):
        """Each of the five frameworks reads by itself: none of the 45 cells is unsupported."""
        done = self.prony("run", "thesis", "--quick", "-D", "cpu", "--input", "native", "--dry-run", "--format",
                          "json", expect=0)
        cells = json.loads(done.stdout)
        self.assertEqual(len(cells), 45)
        self.assertEqual({cell["framework"] for cell in cells}, {"caffe", "tensorflow-python", "pytorch", "mxnet", "cntk"})
        self.assertEqual({cell["status"] for cell in cells} - {"missing", "pending"}, set())


class FrameworkTest(unittest.TestCase):
    """Frameworks' own loaders, where they are installed."""

    DATA = os.environ.get("XDG_DATA_HOME", os.path.expanduser("~/.local/share"))
    MODULES = {"pytorch": "pytorch", "tensorflow-python": "tensorflow", "caffe": "caffe", "cntk": "cntk"}
    # And a file of it.
    FORMATS = {"mxnet": ("recordio", "data.rec"), "caffe": ("lmdb", "data.mdb"), "pytorch+lmdb": ("lmdb", "data.mdb"),
               "tensorflow-python+tfrecord": ("tfrecord", "data-00000.tfrecord")}

    def first_case(self, framework, folder, environment, *words):
        """Folder of the case of an evaluation with the framework's own loader, after a run that must be ok."""
        kept = os.path.join(folder, "kept")
        run = [PRONY, "run", "--store", os.path.join(folder, "store.db"), "-f", framework, "-s", "forward", "--input",
               "native", "--keep-bundle", kept, "--steps", "3", "--warm-up", "0", "--repeat", "1", *words]
        done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("input: %s waits" % framework, done.stdout)
        self.assertEqual("fed-by-script" in done.stdout, framework == "cntk")
        case, = [name for name in os.listdir(kept) if name.endswith("-case")]
        return os.path.join(kept, case)

    def first_batch(self, framework, python, environment, *cases):
        """What own_loader_reader.py says of the first batch of evaluation."""
        done = subprocess.run(
            [python, os.path.join(HERE, "readers/own_loader_reader.py"), os.path.join(ROOT, "python"),
             self.MODULES[framework.split("+")[0]], *cases],
            env=dict(environment, CUDA_VISIBLE_DEVICES=""), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout.splitlines()[-1])
        self.assertTrue(said["values"] and said["labels"], said)
        return said

    def test_batches_are_copied_in_time(self):
        """Frameworks that only note what to do train on the batch of the step, not on what its slot holds later."""
        here = [name for name in ("jax", "xla", "tensorflow")
                if os.path.isdir(os.path.join(self.DATA, "prony/frameworks", name))]
        if not here:
            self.skipTest("no such framework is installed")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        done = subprocess.run(
            [PRONY, "run", "--store", os.path.join(folder.name, "store.db"), "-f", ",".join(here), "-D", "cpu:1", "-n",
             "lenet", "-d", "mnist-3000", "--learning-rate", "0.01", "--until", "accuracy=0.85", "--max-steps", "121",
             "--repeat", "1", "--quick", "--format", "json"], capture_output=True, text=True, check=False)
        cells = json.loads(done.stdout)["cells"]
        self.assertEqual({cell["framework"]: cell["target"].get("reached") for cell in cells},
                         dict.fromkeys(here, 1), done.stderr)

    def test_own_loaders(self):
        """Evaluation in the order of the files: the first batch is the one that prony makes."""
        found = 0
        for framework in [*self.MODULES, "pytorch+lmdb", "tensorflow-python+tfrecord"]:
            python = os.path.join(self.DATA, "prony/frameworks", framework.split("+")[0], "bin/python")
            if not os.path.exists(python):
                continue
            found += 1
            with self.subTest(framework=framework), tempfile.TemporaryDirectory() as folder:
                environment = dict(os.environ, PRONY_LOCK=os.path.join(folder, "lock"))
                if framework in self.FORMATS:
                    kind = self.FORMATS[framework][0]
                    subprocess.run([PRONY, "data", "convert", "mnist-3000", "--to", kind, "-o",
                                    os.path.join(folder, "mnist-3000-" + kind)],
                                   capture_output=True, check=True)
                case = self.first_case(framework, folder, environment, "-n", "lenet", "-d", "mnist-3000", "-b", "16",
                                       "--data", folder)
                said = self.first_batch(framework, python, environment, case)
                self.assertLess(said["largest"], 1e-5)
        if not found:
            self.skipTest("not installed: prony framework install " + ", ".join(self.MODULES))

    GOOGLENET = ("-n", "googlenet", "-d", "imagenet-sample", "-b", "2", "--data")

    def test_own_loaders_of_photographs(self):
        """The same, but for what decoders round."""
        data = os.path.join(ROOT, "../shared/data")
        if not os.path.isdir(os.path.join(data, "imagenet/train")):
            self.skipTest("no photographs in %s" % data)
        found = 0
        for framework in ("pytorch", "cntk", "pytorch+lmdb"):
            python = os.path.join(self.DATA, "prony/frameworks", framework.split("+")[0], "bin/python")
            if not os.path.exists(python):
                continue
            found += 1
            with self.subTest(framework=framework), tempfile.TemporaryDirectory() as folder:
                environment = dict(os.environ, PRONY_LOCK=os.path.join(folder, "lock"))
                if framework in self.FORMATS:
                    self.convert("imagenet-sample", "--data", data, "-o", os.path.join(folder, "imagenet-sample-lmdb"))
                os.symlink(os.path.join(data, "imagenet"), os.path.join(folder, "imagenet"))
                case = self.first_case(framework, folder, environment, *self.GOOGLENET, folder)
                said = self.first_batch(framework, python, environment, case)
                self.assertLess(said["mean"], 0.02)
        if not found:
            self.skipTest("not installed: prony framework install pytorch, cntk")

    def convert(self, source, *words):
        subprocess.run([PRONY, "data", "convert", source, "--to", "lmdb", *words], capture_output=True, check=True)

    def name_source(self, first, second):
        """What was converted twice is of the first one's data set, too."""
        with open(os.path.join(first, "conversion.txt"), encoding="utf-8") as stream:
            source = stream.readline()
        with open(os.path.join(second, "conversion.txt"), "r+", encoding="utf-8") as stream:
            lines = stream.readlines()
            stream.seek(0)
            stream.truncate()
            stream.writelines([source] + lines[1:])

    def test_records_larger_than_seen(self):
        """Of stored pixels PyTorch's loader sees what a conversion of these pixels sees."""
        data = os.path.join(ROOT, "../shared/data")
        python = os.path.join(self.DATA, "prony/frameworks/pytorch/bin/python")
        if not os.path.exists(python) or not os.path.isdir(os.path.join(data, "imagenet/train")):
            self.skipTest("no PyTorch (prony framework install pytorch), or no photographs in %s" % data)
        cases = []
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, PRONY_LOCK=os.path.join(folder, "lock"))
            larger, seen = (os.path.join(folder, name, "imagenet-sample-lmdb") for name in ("larger", "seen"))
            self.convert("imagenet-sample", "--data", data, "--size", "256", "-o", larger)
            for part in ("train", "evaluation"):
                self.convert(os.path.join(larger, part), "--size", "224", "-o", os.path.join(seen, part))
                self.name_source(os.path.join(larger, part), os.path.join(seen, part))
            for place in (os.path.dirname(larger), os.path.dirname(seen)):
                os.symlink(os.path.join(data, "imagenet"), os.path.join(place, "imagenet"))
                cases.append(self.first_case("pytorch+lmdb", place, environment, *self.GOOGLENET, place))
            said = self.first_batch("pytorch", python, environment, *cases)
            self.assertLess(said["mean"], 0.02)

    def test_photographs(self):
        """PyTorch's view of a photograph in evaluation is prony's, but for the rounding of decoders."""
        python = os.path.join(self.DATA, "prony/frameworks/pytorch/bin/python")
        data = os.path.join(ROOT, "../shared/data")
        photographs = os.path.join(data, "imagenet/train")
        if not os.path.exists(python) or not os.path.isdir(photographs):
            self.skipTest("no PyTorch (prony framework install pytorch), or no %s" % photographs)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PRONY, "data", "convert", "imagenet-sample", "--data", data, "--to", "png", "--size",
                            "224", "-o", folder], capture_output=True, check=True)
            done = subprocess.run(
                [python, os.path.join(HERE, "readers/photographs_reader.py"), os.path.join(ROOT, "python"),
                 photographs, os.path.join(folder, "evaluation"), "224"],
                capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout.splitlines()[-1])
        if "missing" in said:
            self.skipTest("%s: an environment from before Pillow belonged to it" % said["missing"])
        self.assertEqual(said["count"], 20)
        self.assertLess(said["largest"], 0.5)

    def cells(self, framework, folder, *words):
        """(exit code, {stage: cell}) of a run of LeNet in training and of loading alone."""
        environment = dict(os.environ, PRONY_LOCK=os.path.join(folder, "lock"))
        store = os.path.join(folder, "store%d.db" % len(os.listdir(folder)))
        done = subprocess.run(
            [PRONY, "run", "--store", store, "-f", framework, "-n", "lenet", "-d", "mnist-3000", "-b",
             "16", "-s", "train,load", "--input", "native", "--data", folder, "--steps", "8",
             "--warm-up", "1", "--repeat", "1", *words],
            env=environment, capture_output=True, text=True, check=False)
        text = subprocess.run([PRONY, "export", "--store", store, "--format", "json"], env=environment,
                              capture_output=True, text=True, check=True).stdout
        return done, {cell["stage"]: cell for cell in json.loads(text)["cells"]}

    def test_formats_of_their_own(self):
        """Converted first, then read: without it, with it, and damaged."""
        installed = {framework: kind for framework, kind in self.FORMATS.items()
                     if os.path.isdir(os.path.join(self.DATA, "prony/frameworks", framework.split("+")[0]))}
        if not installed:
            self.skipTest("not installed: prony framework install " + ", ".join(self.FORMATS))
        for framework, (kind, file) in installed.items():
            with self.subTest(framework=framework), tempfile.TemporaryDirectory() as folder:
                done, cells = self.cells(framework, folder)
                self.assertEqual(done.returncode, 1, done.stdout)
                for cell in cells.values():
                    self.assertEqual(cell["status"], "missing")
                    self.assertIn("prony data convert mnist-3000 --to " + kind, cell["reason"])
                place = os.path.join(folder, "mnist-3000-" + kind)
                subprocess.run([PRONY, "data", "convert", "mnist-3000", "--to", kind, "-o", place],
                               capture_output=True, check=True)
                done, cells = self.cells(framework, folder)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(set(cells), {"train", "load"})
                for stage, cell in cells.items():
                    self.assertEqual((cell["status"], cell["input"]), ("ok", "native"))
                    for process in cell["processes"]:
                        self.assertGreaterEqual(process["input_wait_ns"], 0)
                        self.assertEqual(process["input_copy_ns"] > 0, stage == "train")
                self.assertIn("it only loads batches", " ".join(done.stdout.split()))
                with open(os.path.join(place, "train", file), "r+b") as stream:
                    stream.truncate(5000)
                done, cells = self.cells(framework, folder)
                self.assertEqual(done.returncode, 1, done.stdout)
                for cell in cells.values():
                    self.assertIn(cell["status"], ("invalid", "crashed", "timeout"), cell["reason"])


if __name__ == "__main__":
    sys.exit(counted.main())
