#!/usr/bin/env python3
"""What a user can get wrong: one line each, with what, where and the remedy, and the exit code.

$PRONY names the program, $PRONY_SOURCE the source tree.
"""
import json
import os
import shutil
import subprocess
import sys

import counted
from prony_program import PRONY, ProgramTest, read, write

USAGE, BAD_INPUT, STORAGE = 64, 65, 74


class BadInputTest(ProgramTest):
    def suite(self, text):
        path = os.path.join(self.folder, "mine.yaml")
        write(path, text)
        return path

    def says(self, code, words, *command):
        """One message, the last line on standard error, holds all the words; no standard output."""
        done = self.prony(*command, expect=code)
        lines = done.stderr.strip().splitlines()
        self.assertTrue(lines[-1].startswith("prony: "), done.stderr)
        # Progress may stand before it, but no other error.
        self.assertEqual(sum(line.startswith("prony: ") for line in lines), 1, done.stderr)
        lines = lines[-1:]
        for word in words:
            self.assertIn(word, lines[0])
        self.assertEqual(done.stdout, "")
        return lines[0]

    def test_suites(self):
        """The line of the file, the key and what would be right."""
        for text, words in (
                ("networks: [lenet]\nframeworkz: [native]\n", ["mine.yaml:2", "frameworkz", "frameworks"]),
                ("networks: [lenet]\nrepeat: many\n", ["mine.yaml:2", "repeat", "many"]),
                ("frameworks: [null, fake]\n", ["mine.yaml:1", "frameworks", "in quotes"]),
                ("networks:\n  lenet: yes\n", ["mine.yaml:2", "networks"]),
                ("frameworks: [fake]\nnetworks: [lenett]\n", ["mine.yaml:2", "lenett", "lenet"]),
                ("networks: [lenet\nframeworks: native\n", ["mine.yaml:"])):
            with self.subTest(text):
                self.says(BAD_INPUT, words, "run", self.suite(text))

    def test_full_standard_output(self):
        for command in (["list", "frameworks"], ["--help"], ["run", "--help"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([PRONY, *command], env=self.environment, stdout=full,
                                      stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, STORAGE, done.stderr)
            self.assertIn("standard output", done.stderr)

    def test_words(self):
        """What a newcomer types, and what was meant."""
        for words, command in (
                (["no command 'install'", "'framework install'"], ["install", "pytorch"]),
                (["no command 'fetch'", "'data fetch'"], ["fetch", "mnist"]),
                (["no command 'ist'"], ["ist"]),
                (["rnu", "run"], ["rnu"]),
                (["--netwrk"], ["run", "--netwrk", "lenet"]),
                (["not a suite", "-f pytorch"], ["run", "pytorch"]),
                (["-f all"], ["run", "all"]),
                (["lenet", "is a network", "-n lenet"], ["run", "-f", "fake", "lenet"]),
                (["models/mine.onnx", "is a network", "-n models/mine.onnx"], ["run", "-f", "fake", "models/mine.onnx"]),
                (["did you mean resnet50"], ["run", "-f", "fake", "-n", "resnet"]),
                (["-n", "lenett", "lenet"], ["run", "-f", "fake", "-n", "lenett"]),
                (["-f", "pytroch", "pytorch"], ["run", "-f", "pytroch", "-n", "lenet"])):
            with self.subTest(command):
                self.says(USAGE, words, *command)
        self.says(BAD_INPUT, ["quickstrat", "quickstart"], "run", "quickstrat")

    def test_output_of_a_failed_run(self):
        """Its code stays; what is lost on a full disk is said, and of a reader who has left nothing is."""
        command = [PRONY, "run", "-f", "fake", "-n", "mlp", "-d", "synthetic", "--input", "stream", "-b",
                   ",".join(map(str, range(1, 40)))]  # refused, each in a table of its own
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command, env=self.environment, stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("standard output", done.stderr)
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(command, env=self.environment, stdout=writer, stderr=subprocess.PIPE,
                              text=True, check=False)
        os.close(writer)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("standard output", done.stderr)

    def test_closed_standard_streams(self):
        """No file may take the number of a closed one: what is printed would end in it."""
        done = subprocess.run(["/bin/sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', PRONY, "run", "-f",
                               "null", "--quick", "--steps", "3", "--warm-up", "0", "--repeat", "1"],
                              env=self.environment, check=False)
        self.assertEqual(done.returncode, 0)
        self.prony("show", expect=0)

    def test_pipe_or_device_for_a_file(self):
        for name, commands in (("x.yaml", [["run"]]), ("x.onnx", [["network"], ["run", "-n"]])):
            pipe = os.path.join(self.folder, name)
            os.mkfifo(pipe)
            for command in commands:
                self.says(BAD_INPUT, [pipe, "is a pipe, not a file"], *command, pipe)
        self.says(BAD_INPUT, ["/dev/zero is a device, not a file"], "run", "/dev/zero")

    def test_unknown_option_of_a_framework(self):
        """Before anything runs, with the nearest; in a suite with its line."""
        self.says(USAGE, ["-f: pytorch has no option +compil", "did you mean +compile?"],
                  "run", "-f", "pytorch+compil", "-n", "mlp", "--store", self.store)
        for spelling, words in (("null+foo", ["null has no option +foo; it has none"]),
                                ("fake+crsh", ['fake has no option "crsh"', "did you mean crash?"]),
                                ("fake+lr-scale=x", ["fake: lr-scale takes a number"])):
            self.says(USAGE, words, "run", "-f", spelling, "-n", "mlp", "--dry-run")
        self.says(BAD_INPUT, ["mine.yaml:1: frameworks: mxnet has no option +nope; it has +nomkldnn, +nosubgraph"],
                  "run", self.suite("frameworks: [mxnet+nope]\nnetworks: [mlp]\n"))
        self.assertFalse(os.path.exists(self.store))

    def test_setup_that_fails_says_what_it_printed(self):
        self.says(USAGE, ["--setup command failed with exit code 3", "no such switch"], "run", "-f",
                  "null", "-n", "mlp", "--quick", "--steps", "2", "--warm-up", "0", "--repeat", "1", "--store",
                  self.store, "--setup", "echo no such switch; exit 3")

    def test_one_cell_that_cannot_run_says_why(self):
        done = self.prony("run", "-f", "fake", "-n", "mlp", "-D", "cpu:4000", "--store", self.store, expect=1)
        self.assertIn("(unsupported): device cpu:4000: this process may use", done.stderr.splitlines()[-1])

    def test_text_for_a_network_of_images(self):
        """And for one over bytes: then it is named after its content."""
        text = os.path.join(self.folder, "my notes.txt")
        self.says(BAD_INPUT, ["-d: cannot open " + text], "run", "-n", "gpt2-bytes", "-d", text, "--dry-run")
        with open(text, "w", encoding="ascii") as file:
            file.write("a text\n" * 100)
        done = self.prony("run", "-f", "null", "-n", "lenet,gpt2-bytes", "-d", text, "--dry-run", "--format", "json")
        lenet, bytes_ = json.loads(done.stdout)
        self.assertIn("is text, but the network does not predict the next token", lenet["reason"])
        self.assertEqual(bytes_["dataset"], "my_notes.txt@5eb1b3f6")
        self.assertNotIn("text", bytes_["reason"] or "")

    def data_folder(self):
        """A folder of data sets with a copy of the shipped sample."""
        folder = os.path.join(self.folder, "data")
        shutil.copytree(os.path.join(os.environ["PRONY_SOURCE"], "datasets", "mnist-3000"),
                        os.path.join(folder, "mnist-3000"))
        files = [os.path.join(folder, "mnist-3000", name)
                 for name in sorted(os.listdir(os.path.join(folder, "mnist-3000")))]
        return folder, [name for name in files if "images" in name][0]

    def test_damaged_data_ends_its_cell(self):
        folder, images = self.data_folder()
        with open(images, "r+b") as stream:
            stream.seek(os.path.getsize(images) // 2)
            stream.write(b"\xff" * 64)
        self.prony("run", "-f", "fake", "-n", "lenet", "-d", "mnist-3000", "--data", folder,
                   "--store", self.store, expect=1)
        [(status, reason)] = self.rows("select status, reason from cell")
        self.assertEqual(status, "invalid")
        self.assertIn(images, reason)

    def test_unwritable_store(self):
        path = os.path.join(self.folder, "absent", "folder", "x.db")
        os.mkdir(os.path.join(self.folder, "absent"))
        with open(os.path.join(self.folder, "absent", "folder"), "w", encoding="ascii"):
            pass  # a file where a folder would have to be: not even root can write there
        self.says(STORAGE, [path], "run", "-f", "fake", "-n", "mlp", "--store", path)

    def test_store_that_is_no_database(self):
        write(self.store, "this is a text\n" * 100)
        self.says(STORAGE, [self.store], "show", "--store", self.store)
        self.assertTrue(read(self.store).startswith("this is a text"), "it was overwritten")

    def test_empty_store(self):
        self.says(BAD_INPUT, ["prony run"], "show", "--store", self.store)


if __name__ == "__main__":
    sys.exit(counted.main())
