#!/usr/bin/env python3
"""`prony data` and `prony doctor` as a user calls them.

$PRONY names the program, $PRONY_SOURCE the source tree. Nothing is downloaded: a fake curl stands on
PATH.
"""
import gzip
import json
import os
import shutil
import sys
import tarfile

import counted
from prony_program import ProgramTest, read_bytes, write, write_cifar10_sample

USAGE, BAD_INPUT, STORAGE, MISSING = 64, 65, 74, 1
IMAGES, LABELS = "images-idx3-ubyte.gz", "labels-idx1-ubyte.gz"
CHECKS = {"governor", "boost", "load", "steal", "cores", "memory", "swap", "instruction set",
          "virtual machine", "clock source", "perf permissions", "gpus", "sensor cpu-energy",
          "sensor cpu-temperature", "sensor gpu", "frameworks"}


def message(done):
    """The one line that starts with the program's name."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("prony: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


class DataTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.environment.pop("PRONY_DATA", None)
        self.shipped = os.path.join(os.environ["PRONY_SOURCE"], "datasets", "mnist-3000")
        self.data = os.path.join(self.folder, "data")
        self.copy = os.path.join(self.data, "mnist-3000")
        shutil.copytree(self.shipped, self.copy)

    def change(self, name, change):
        """Rewrites a file of the copy; returns its path."""
        path = os.path.join(self.copy, name)
        before = read_bytes(path)
        write(path, change(bytearray(before)))
        return path

    def json(self, *words, expect=0):
        return json.loads(self.prony(*words, "--format", "json", expect=expect).stdout)

    def test_list(self):
        rows = {row["name"]: row for row in self.json("data", "list", "--data", self.data)}
        # Nobody can get the samples that are not published.
        self.assertEqual(set(rows), {"mnist", "mnist-sample", "mnist-3000", "cifar10", "imagenet", "jargon", "synthetic"})
        self.assertEqual(rows["mnist"]["state"], "missing")
        self.assertIsNone(rows["mnist"]["folder"])
        self.assertEqual(rows["mnist-3000"]["state"], "ready")
        self.assertEqual(rows["mnist-3000"]["folder"], self.copy)
        self.assertEqual(rows["mnist-3000"]["samples"], {"train": 2400, "evaluation": 600})
        self.assertEqual(rows["mnist-3000"]["classes"], {"count": 10, "names": None})
        self.assertIsNone(rows["synthetic"]["classes"])
        text = self.prony("data", "list", expect=0).stdout
        # A table breaks lines where the terminal ends.
        self.assertIn("prony data fetch mnist", " ".join(text.split()))
        self.assertEqual(self.prony("data", expect=0).stdout, text)

    def test_verify_shipped(self):
        for words in (["mnist-3000"], []):
            rows = self.json("data", "verify", *words)
            self.assertEqual([os.path.basename(row["file"]) for row in rows], [IMAGES, LABELS])
            for row in rows:
                self.assertEqual(row["state"], "whole")
                self.assertEqual(row["bytes"], os.path.getsize(row["file"]))

    def test_verify_broken(self):
        changes = [
            (IMAGES, lambda data: data[:-1], "bytes instead of"),
            (LABELS, lambda data: data[:500] + bytes([data[500] ^ 1]) + data[501:], "SHA-256"),
            (LABELS, lambda data: b"", "has 0 bytes"),
        ]
        for name, change, part in changes:
            shutil.rmtree(self.copy)
            shutil.copytree(self.shipped, self.copy)
            path = self.change(name, change)
            done = self.prony("data", "verify", "mnist-3000", "--data", self.data,
                              "--format", "json", expect=BAD_INPUT)
            for word in (path, part, "install the program again"):
                self.assertIn(word, message(done))
            states = {os.path.basename(row["file"]): row["state"]
                      for row in json.loads(done.stdout)}
            self.assertEqual(states.pop(name), "broken")
            self.assertEqual(list(states.values()), ["whole"])

    def test_each_broken_file_is_named(self):
        paths = [self.change(name, lambda data: data[:-1]) for name in (IMAGES, LABELS)]
        done = self.prony("data", "verify", "mnist-3000", "--data", self.data,
                          expect=BAD_INPUT)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 2)
        for path, line in zip(paths, lines):
            self.assertIn(path, line)

    def test_verify_missing(self):
        done = self.prony("data", "verify", "mnist", "--data", self.data, expect=MISSING)
        for word in (os.path.join(self.data, "mnist"), "prony data fetch mnist", "mnist-3000"):
            self.assertIn(word, message(done))

    def test_cifar10(self):
        write_cifar10_sample(os.path.join(self.data, "cifar10"))
        rows = {row["name"]: row for row in self.json("data", "list", "--data", self.data)}
        self.assertEqual(rows["cifar10"]["state"], "missing")
        self.assertEqual(rows["cifar10-sample"]["classes"]["names"],
                         [f"name{i}" for i in range(10)])
        command = ("run", "-f", "fake", "-n", "cnn", "-b", "2", "-s", "forward", "--repeat", "3",
                   "--quick", "--steps", "5", "--warm-up", "1", "--data", self.data, "--store", self.store)
        suite = os.path.join(self.folder, "mine.yaml")
        write(suite, "datasets: cifar10\n")
        done = self.prony(*command, suite, expect=0)
        self.assertIn("cifar10 is not installed: using cifar10-sample", done.stdout + done.stderr)
        self.assertEqual(self.rows("select distinct dataset, status from cell"),
                         [("cifar10-sample", "ok")])

    def test_pictures(self):
        corpus = os.path.join(os.environ["PRONY_SOURCE"], "tests", "fuzz", "corpus", "image")
        folder = os.path.join(self.folder, "pictures")
        for name, kind in (("rgb.jpg", "n01"), ("cmyk.jpg", "n02"), ("grey.png", "n02")):
            os.makedirs(os.path.join(folder, kind), exist_ok=True)
            shutil.copy(os.path.join(corpus, name), os.path.join(folder, kind))
        size = sum(os.path.getsize(os.path.join(corpus, name))
                   for name in ("rgb.jpg", "cmyk.jpg", "grey.png"))
        self.assertEqual(self.json("data", "verify", folder),
                         [{"file": folder, "state": "whole", "bytes": size}])
        tar = os.path.join(self.folder, "train.tar")
        with tarfile.open(tar, "w") as archive:
            archive.add(folder, "pictures")
        self.assertEqual(self.json("data", "verify", tar)[0]["bytes"], size)
        for name in ("truncated.jpg", "text", "20000.jpg"):
            shutil.copy(os.path.join(corpus, name), os.path.join(folder, "n02"))
        done = self.prony("data", "verify", folder, expect=BAD_INPUT)
        lines = done.stderr.splitlines()
        for line, name, part in zip(lines, ("20000.jpg", "text", "truncated.jpg"),
                                    ("too large: 20000 x 8", "not an image", "truncated")):
            self.assertIn(f"{folder}/n02/{name}: {part}", line)
        self.assertEqual(lines[3:], [f"prony: {folder}: 3 of 6 samples are broken"])

    def test_who_gives_imagenet(self):
        for words, code in ((("fetch",), BAD_INPUT), (("verify",), MISSING)):
            done = self.prony("data", *words, "imagenet", "--data", self.data, expect=code)
            self.assertIn("register at https://image-net.org to get ILSVRC2012_img_train.tar", message(done))

    def test_nothing_is_here(self):
        done = self.prony("data", "verify", expect=MISSING, PRONY_SHARE=self.folder)
        self.assertIn("no data set found", message(done))

    def test_verify_file(self):
        path = os.path.join(self.folder, "mine.gz")
        whole = gzip.compress(b"\0\0\x08\x01" + (100).to_bytes(4, "big") + bytes(range(100)))
        broken = bytearray(whole)
        broken[-6] ^= 1
        cases = [(whole, 0, ""), (whole[:-20], BAD_INPUT, "truncated"),
                 (bytes(broken), BAD_INPUT, "corrupt compressed data"),
                 (gzip.decompress(whole)[:50], BAD_INPUT, "truncated"),
                 (b"text", BAD_INPUT, "begins with bytes 74 65 78 74; known formats are idx"), (b"", BAD_INPUT, "truncated")]
        for data, code, part in cases:
            write(path, data)
            done = self.prony("data", "verify", path, "--format", "json", expect=code)
            self.assertEqual(json.loads(done.stdout),
                             [{"file": path, "state": "broken" if code else "whole",
                               "bytes": 0 if code else 108}])
            if code:
                for word in (path, part, "prony data fetch"):
                    self.assertIn(word, message(done))
        done = self.prony("data", "verify", "./nowhere", expect=BAD_INPUT)
        self.assertIn("./nowhere", message(done))

    def curl(self, body):
        """A curl of ours; returns the PATH with it in front."""
        folder = os.path.join(self.folder, "bin")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "curl")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in\n--output) out=$2; shift;;\n"
                         f"https:*) url=$1;;\nesac; shift; done\n{body}\n")
        os.chmod(path, 0o755)
        return f"{folder}:{os.environ['PATH']}"

    def test_fetch_without_network(self):
        path = self.curl("echo 'curl: (6) Could not resolve host: example' >&2; exit 6")
        done = self.prony("data", "fetch", "mnist", expect=STORAGE, PATH=path)
        for word in ("train-images-idx3-ubyte.gz", "Could not resolve host", "check the network",
                     os.path.join(self.folder, "prony", "data", "mnist"), "yourself"):
            self.assertIn(word, message(done))
        self.assertIn("mnist: train-images-idx3-ubyte.gz: downloading", done.stdout)

    def test_wrong_words(self):
        for words, part in ((["fetch"], "needs the name"), (["fetch", "minst"], "'mnist'"),
                            (["verify", "minst"], "did you mean 'mnist'"),
                            (["list", "mnist"], "takes no names"), (["burn"], "unknown action 'burn'"),
                            (["--colour"], "--colour")):
            done = self.prony("data", *words, expect=USAGE)
            self.assertIn(part, message(done))
            self.assertEqual(done.stdout, "")
        for name in ("synthetic", "mnist-3000"):
            done = self.prony("data", "fetch", name, expect=BAD_INPUT)
            self.assertIn("nothing to fetch", message(done))
        self.prony("data", *(["verify"] * 300), expect=USAGE)


class DoctorTest(ProgramTest):
    def test_checks(self):
        rows = json.loads(self.prony("doctor", "--format", "json", expect=0).stdout)
        self.assertEqual({row["check"] for row in rows}, CHECKS)
        for row in rows:
            self.assertEqual(set(row), {"check", "level", "value", "remedy"})
            self.assertIn(row["level"], ("ok", "note", "warning"))
            self.assertTrue(row["value"])
            if row["level"] == "warning":
                self.assertTrue(row["remedy"], row)
        done = self.prony("doctor", expect=0)
        self.assertEqual(done.stderr, "")
        for check in CHECKS:
            self.assertIn(check, done.stdout)

    def test_record(self):
        variables = {"OMP_NUM_THREADS": "3", "TORCH_TOKEN": "hush", "DIARY": "hush"}
        done = self.prony("doctor", "--record", expect=0, **variables)
        record = json.loads(done.stdout)
        self.assertEqual(set(record), {"must_match", "should_match", "informational", "absent"})
        self.assertEqual(record["must_match"]["threads_usable"], len(os.sched_getaffinity(0)))
        self.assertEqual(record["should_match"]["kernel"], os.uname().release)
        self.assertEqual(record["should_match"]["environment"]["OMP_NUM_THREADS"], "3")
        self.assertNotIn("hush", done.stdout)
        nulls = [key for part in ("must_match", "should_match", "informational")
                 for key, value in record[part].items() if value is None]
        for key in nulls:
            self.assertTrue(record["absent"][key], key)

    def test_wrong_words(self):
        for words, part in ((["me"], "'me'"), (["--format", "xml"], "json"), (["--reocrd"], "--record")):
            self.assertIn(part, message(self.prony("doctor", *words, expect=USAGE)))


if __name__ == "__main__":
    sys.exit(counted.main())
