#!/usr/bin/env python3
"""`prony data convert`: what is written is what was read, pixel for pixel, in our readers and in the
frameworks' own; killed at any instant it goes on to the same bytes; what is broken is named and counted.

$PRONY names the program, $PRONY_SOURCE the source tree.
"""
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
import zlib

import counted
from prony_program import ProgramTest, read_bytes, write

USAGE, BAD_INPUT = 64, 65
FORMATS = {"lmdb": "", "recordio": "data.rec", "tfrecord": "data-00000.tfrecord", "png": ""}
CORPUS = os.path.join(os.environ["PRONY_SOURCE"], "tests", "fuzz", "corpus", "image")
READERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "readers")
PLANE = 32 * 32


def paeth(left, above, corner):
    guess = left + above - corner
    distances = abs(guess - left), abs(guess - above), abs(guess - corner)
    return (left, above, corner)[distances.index(min(distances))]


def png_planes(data):
    """Planes of an 8-bit RGB picture, decoded with nothing of ours."""
    at, body, width = 8, b"", 0
    while at < len(data):
        length, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        part = data[at + 8:at + 8 + length]
        assert zlib.crc32(kind + part) == int.from_bytes(data[at + 8 + length:at + 12 + length], "big")
        if kind == b"IHDR":
            width = int.from_bytes(part[:4], "big")
            assert part[8:13] == bytes([8, 2, 0, 0, 0]), part
        body += part if kind == b"IDAT" else b""
        at += 12 + length
    raw, row, before = zlib.decompress(body), 3 * width, bytes(3 * width)
    pixels = b""
    for start in range(0, len(raw), row + 1):
        line = bytearray(raw[start + 1:start + 1 + row])
        for i in range(row):
            left, corner = (line[i - 3], before[i - 3]) if i >= 3 else (0, 0)
            line[i] = (line[i] + (0, left, before[i], (left + before[i]) // 2,
                                  paeth(left, before[i], corner))[raw[start]]) & 255
        before = bytes(line)
        pixels += before
    return b"".join(pixels[channel::3] for channel in range(3))


def tree(folder):
    """Path -> SHA-256 of all that is in a folder."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            found[os.path.relpath(path, folder)] = hashlib.sha256(read_bytes(path)).hexdigest()
    return found


class Conversion(ProgramTest):
    def tiny(self, count):
        """A file of CIFAR-10's format with random pixels, smooth enough for PNG's filters to differ."""
        rng = random.Random(5)
        path = os.path.join(self.folder, "tiny.bin")
        records = []
        for number in range(count):
            base = rng.randbytes(64)
            records.append(bytes([rng.randrange(10)]) + bytes(
                (base[i % 61] + i // 7 + number) & 255 for i in range(3 * PLANE)))
        write(path, b"".join(records))
        return path, records

    def photographs(self, *broken):
        folder = os.path.join(self.folder, "photographs")
        for name in ("rgb.jpg", "progressive.jpg", "cmyk.jpg", "rgb.png", *broken):
            kind = os.path.join(folder, "n0%d" % (len(name) % 3))
            os.makedirs(kind, exist_ok=True)
            shutil.copy(os.path.join(CORPUS, name), kind)
        return folder

    def convert(self, source, kind, name, *words, expect=0):
        folder = os.path.join(self.folder, name)
        done = self.prony("data", "convert", source, "--to", kind, "-o", folder, *words, expect=expect)
        return folder, done


class ConvertTest(Conversion):
    def assert_sums(self, folder):
        found = tree(folder)
        with open(os.path.join(folder, "SHA256SUMS"), encoding="ascii") as stream:
            sums = {line[66:].rstrip("\n"): line[:64] for line in stream}
        del found["SHA256SUMS"], found["conversion.txt"]
        self.assertEqual(sums, found)

    def test_every_pixel_comes_back(self):
        """Through each format and then into PNG, which is decoded here."""
        source, records = self.tiny(300)
        for kind, file in FORMATS.items():
            folder, _ = self.convert(source, kind, kind)
            self.assert_sums(folder)
            rows = json.loads(self.prony("data", "verify", os.path.join(folder, file), "--format",
                                         "json", expect=0).stdout)
            self.assertEqual(rows[0]["state"], "whole")
            if kind != "png":
                folder, _ = self.convert(os.path.join(folder, file), "png", kind + "-png", "--size", "32")
            with open(os.path.join(folder, "map.txt"), encoding="ascii") as stream:
                lines = [line.rstrip("\n").split("\t") for line in stream]
            self.assertEqual([int(label) for _, label in lines], [record[0] for record in records])
            for number in (0, 1, 255, 256, 299):
                with open(os.path.join(folder, lines[number][0]), "rb") as stream:
                    self.assertEqual(png_planes(stream.read()), records[number][1:], (kind, number))
            with open(os.path.join(folder, "mean.xml"), encoding="ascii") as stream:
                mean = stream.read().split("<data>")[1].split("</data>")[0].split()
            self.assertEqual(len(mean), 3 * PLANE)
            for place in (0, 1, PLANE, 3 * PLANE - 1):
                self.assertAlmostEqual(float(mean[place]),
                                       sum(record[1 + place] for record in records) / 300, delta=1e-3)

    def test_photographs_keep_their_bytes(self):
        source = self.photographs()
        picture = read_bytes(os.path.join(CORPUS, "progressive.jpg"))
        for kind, file in (("lmdb", "data.mdb"), ("recordio", "data.rec"), ("tfrecord", FORMATS["tfrecord"])):
            folder, done = self.convert(source, kind, kind)
            self.assertIn("4 samples as " + kind, done.stdout)
            self.assertIn(picture, read_bytes(os.path.join(folder, file)))
        _, done = self.convert(source, "png", "png", expect=USAGE)
        self.assertIn("--size 224", done.stderr)

    def test_killed_at_any_instant(self):
        source, _ = self.tiny(600)
        for kind in FORMATS:
            whole, _ = self.convert(source, kind, kind + "-whole")
            folder, kills, delay = os.path.join(self.folder, kind + "-killed"), 0, 0.006
            while True:
                process = self.start("data", "convert", source, "--to", kind, "-o", folder)
                try:
                    self.assertEqual(process.wait(delay), 0)
                    break
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    kills += 1
                    delay *= 2
                self.assertLess(kills, 60)
            self.assertGreater(kills, 1)
            self.assertEqual(tree(folder), tree(whole), kind)

    def test_resumes_in_the_middle(self):
        """What was done is not done again, and a torn end is cut off."""
        source, _ = self.tiny(1500)
        folder = os.path.join(self.folder, "out")
        if not self.kill_in_the_middle(source, "recordio", folder):
            self.skipTest("the conversion ended before it could be killed")
        with open(os.path.join(folder, "data.rec"), "ab") as stream:
            stream.write(b"torn")
        _, done = self.convert(source, "recordio", "out")
        self.assertIn("continued at sample", done.stdout)
        whole, _ = self.convert(source, "recordio", "whole")
        self.assertEqual(tree(folder), tree(whole))
        _, done = self.convert(source, "recordio", "out")
        self.assertIn("1500 samples as recordio, already there", done.stdout)

    def kill_in_the_middle(self, source, kind, folder):
        """False when it ended before."""
        process = self.start("data", "convert", source, "--to", kind, "-o", folder)
        journal = os.path.join(folder, ".conversion")
        while process.poll() is None:
            try:
                with open(journal, "rb") as stream:
                    if b"\nat 0 " not in stream.read():
                        break
            except OSError:
                time.sleep(0.001)
        process.kill()
        process.wait()
        return os.path.exists(journal)

    def test_broken_photographs_are_left_out(self):
        source = self.photographs("truncated.jpg", "text", "20000.jpg")
        folder, done = self.convert(source, "recordio", "out", expect=BAD_INPUT)
        for part in ("truncated.jpg: truncated", "text: not an image", "20000.jpg: too large",
                     "3 of 7 samples are broken and were left out"):
            self.assertIn(part, done.stderr)
        with open(os.path.join(folder, "conversion.txt"), encoding="utf-8") as stream:
            self.assertIn("written: 4\nleft out: 3\n", stream.read())

    def test_what_is_broken_in_one_part_keeps_nobody_from_the_other(self):
        """A data set has two parts, and both are whole in the end, but for what was left out."""
        train = os.path.join(self.folder, "pictures", "imagenet-sample", "train")
        picture = read_bytes(os.path.join(CORPUS, "rgb.png"))
        for number in range(100):
            os.makedirs(os.path.join(train, "n%08d" % number))
            write(os.path.join(train, "n%08d" % number, "a.png"), picture if number != 40 else picture[:-30])
        for _ in range(2):
            folder, done = self.convert("imagenet-sample", "lmdb", "imagenet-sample-lmdb", "--data",
                                        os.path.join(self.folder, "pictures"), expect=BAD_INPUT)
            self.assertIn("imagenet-sample, train: 1 of 80 samples are broken", done.stderr)
            for part, written in (("train", 79), ("evaluation", 20)):
                with open(os.path.join(folder, part, "conversion.txt"), encoding="utf-8") as stream:
                    self.assertIn("written: %d\n" % written, stream.read())
        self.prony("data", "verify", folder, expect=0)
        shutil.rmtree(os.path.join(folder, "evaluation"))
        done = self.prony("data", "verify", folder, expect=BAD_INPUT)
        self.assertIn("evaluation: not converted, unlike", done.stderr)

    def test_lmdb_that_lost_samples(self):
        """Removed while the conversion rested; or less than what conversion.txt says."""
        source, _ = self.tiny(1500)
        folder = os.path.join(self.folder, "out")
        if not self.kill_in_the_middle(source, "lmdb", folder):
            self.skipTest("the conversion ended before it could be killed")
        os.remove(os.path.join(folder, "data.mdb"))
        _, done = self.convert(source, "lmdb", "out", expect=BAD_INPUT)
        self.assertRegex(done.stderr, r"data.mdb: has 0 of the \d+ samples that were written; remove the folder")
        folder, _ = self.convert(source, "lmdb", "whole")
        note = os.path.join(folder, "conversion.txt")
        with open(note, encoding="utf-8") as stream:
            text = stream.read()
        write(note, text.replace("written: 1500", "written: 1600"))
        done = self.prony("data", "verify", folder, expect=BAD_INPUT)
        self.assertIn("contains 1500 of 1600 samples", done.stderr)

    def test_refusals(self):
        source, _ = self.tiny(3)
        folder, _ = self.convert(source, "lmdb", "out")
        photographs = self.photographs()
        for words, expect, part in (
                (("data", "convert", source), USAGE, "needs --to FORMAT, one of lmdb, recordio, tfrecord, png"),
                (("data", "convert", source, "--to", "tar", "-o", "x"), USAGE, "prony cannot write this format"),
                (("data", "convert", source, "--to", "lmdb"), USAGE, "-o DIR"),
                (("data", "convert", "mnits", "--to", "lmdb", "-o", "x"), USAGE, "did you mean 'mnist'"),
                (("data", "convert", "synthetic", "--to", "lmdb", "-o", "x"), USAGE, "generated during a run"),
                (("data", "convert", source, "--to", "png", "-o", folder), BAD_INPUT,
                 "a conversion of other data; choose another folder"),
                (("data", "convert", source, "--to", "png", "-o", self.folder), BAD_INPUT,
                 "contains other files"),
                (("data", "convert", source, "--to", "png", "--size", "8", "-o", "x"), USAGE,
                 "--size is only for photographs"),
                (("data", "convert", photographs, "--to", "lmdb", "-o", photographs + "/a/b"), USAGE,
                 "is inside %s, the data to convert" % photographs)):
            done = self.prony(*words, expect=expect)
            self.assertIn(part, done.stderr)

    def test_folders_are_verified(self):
        """The digests that were written with them find any change, also where the format has no check sums."""
        source, _ = self.tiny(20)
        for kind, file in (("lmdb", "data.mdb"), ("recordio", "data.idx"), ("tfrecord", FORMATS["tfrecord"]),
                           ("png", "images/00000/00000007.png")):
            folder, _ = self.convert(source, kind, kind)
            seen = self.prony("data", "verify", folder, "--format", "json", expect=0)
            self.assertEqual([(row["file"], row["state"]) for row in json.loads(seen.stdout)],
                             [(folder, "whole")])
            path = os.path.join(folder, file)
            data = bytearray(read_bytes(path))
            data[len(data) // 2] ^= 0x55
            write(path, data)
            seen = self.prony("data", "verify", folder, expect=BAD_INPUT)
            self.assertIn("%s: SHA-256 is %s instead of " % (path, hashlib.sha256(data).hexdigest()), seen.stderr)
            self.assertRegex(seen.stderr, r"%s: 1 of \d+ files were changed, and \d of \d+ samples "
                             "are damaged; remove the folder and convert again" % folder)
            write(os.path.join(folder, "SHA256SUMS"), "what?\n")
            self.assertIn("SHA256SUMS: line 1 is not a SHA-256", self.prony(
                "data", "verify", folder, expect=BAD_INPUT).stderr)
            os.rename(os.path.join(folder, "conversion.txt"), os.path.join(folder, ".conversion"))
            self.assertIn("the conversion is not finished", self.prony("data", "verify", folder, expect=BAD_INPUT).stderr)


class FrameworkTest(Conversion):
    """The frameworks' own readers, where they are installed."""
    COUNT = 40

    def environment_of(self, name):
        home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
        folder = os.path.join(home, "prony", "frameworks", name)
        if not os.path.isdir(folder):
            self.skipTest("not installed: prony framework install " + name.replace("=", ":"))
        return folder

    def check(self, kind, command):
        source, records = self.tiny(self.COUNT)
        folder, _ = self.convert(source, kind, kind)
        done = subprocess.run(command(os.path.join(folder, FORMATS[kind])), capture_output=True, text=True,
                              timeout=120, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        read = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(read["labels"], [record[0] for record in records])
        self.assertEqual(read["pixels"],
                         hashlib.sha256(b"".join(record[1:] for record in records)).hexdigest())

    def test_caffe_reads_lmdb(self):
        python = os.path.join(self.environment_of("caffe"), "bin", "python")
        self.check("lmdb", lambda path: [python, os.path.join(READERS, "caffe_reader.py"), path,
                                         str(self.COUNT)])

    def test_mxnet_reads_recordio(self):
        libraries = os.path.join(self.environment_of("mxnet"), "mxnet")
        self.check("recordio", lambda path: [sys.executable, os.path.join(READERS, "mxnet_reader.py"),
                                             libraries, path, str(self.COUNT), "32", "32"])

    def test_tensorflow_reads_tfrecord(self):
        python = os.path.join(self.environment_of("keras3=tensorflow"), "bin", "python")
        self.check("tfrecord", lambda path: [python, os.path.join(READERS, "tensorflow_reader.py"), path,
                                             str(self.COUNT)])


if __name__ == "__main__":
    sys.exit(counted.main())
