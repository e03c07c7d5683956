#!/usr/bin/env python3
"""What documents, help and manual say of commands and options is what there is.

$PRONY names the program, $PRONY_SOURCE the source tree.
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import counted  # noqa: E402
from prony_program import PRONY  # noqa: E402

SOURCE = os.environ.get("PRONY_SOURCE", ".")
# "prony run -f x --quick" in a line of code, or between backticks; what a shell would do ends it.
COMMAND = re.compile(r"(?:^|[\s`(/])prony ([a-z][a-z-]*)((?: [^`|;&<>#()\n]*)?)")
CODE = re.compile(r"`([^`\n]+)`|^(?: {4}|\t)(.*)$", re.MULTILINE)
LONG = re.compile(r"(?<![\w-])--([a-z][a-z-]+)")


def documents():
    """(name, text) of every page that speaks of the program as it is; dated pages say what was."""
    for pattern in ("README.md", "CONTRIBUTING.md", "docs/*.md", "suites/*.yaml"):
        for path in sorted(glob.glob(os.path.join(SOURCE, pattern))):
            with open(path, encoding="utf-8") as stream:
                yield os.path.relpath(path, SOURCE), stream.read()


def says(*words):
    return subprocess.run([PRONY, *words], capture_output=True, text=True, check=True).stdout


def options_in(text):
    """Long and short options of a help text."""
    return (set(re.findall(r"^  (?:-., |    )--([a-z-]+)", text, re.MULTILINE)),
            set(re.findall(r"^  -(.), --", text, re.MULTILINE)))


def own_words(command, words):
    """Without what stands on a worker's own command line."""
    for word in words:
        if command == "worker-check" and (word.startswith("python") or "/" in word):
            return
        yield word


class DocumentsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        overview = says("--help")
        names = re.findall(r"^  ([a-z-]+) +\S", overview, re.MULTILINE)
        cls.options = {name: options_in(says(name, "--help")) for name in names}
        # Known to those who write adapters and packages, and not shown in the overview.
        for name in ("worker", "guard", "manual"):
            cls.options[name] = (set(), set()) if name == "guard" else options_in(says(name, "--help"))
        cls.all_long = set().union(*(long for long, _ in cls.options.values()))

    def commands(self):
        for name, text in documents():
            for found in CODE.finditer(text):
                for command in COMMAND.finditer(found.group(1) or found.group(2) or ""):
                    yield name, command.group(1), command.group(2)

    def test_every_command_exists(self):
        seen = set()
        for name, command, _ in self.commands():
            self.assertTrue(command in self.options, f"{name}: there is no prony {command}")
            seen.add(command)
        self.assertGreater(len(seen), 8, "the documents name commands")

    def test_every_option_of_a_command_exists(self):
        seen = 0
        for name, command, rest in self.commands():
            long, short = self.options.get(command, (set(), set()))
            for word in own_words(command, rest.replace("...", " ").split()):
                word = word.strip("[],.:")
                if word.startswith("--") and len(word) > 2:
                    self.assertIn(word[2:].split("=")[0], long, f"{name}: prony {command}{rest}")
                    seen += 1
                elif re.match(r"-[A-Za-z]$", word):
                    self.assertIn(word[1], short | {"h"}, f"{name}: prony {command}{rest}")
                    seen += 1
        self.assertGreater(seen, 40, "the documents name options")

    def test_help_names_only_what_exists(self):
        """Examples of a command's own help, and its options in prose."""
        for command, (long, _) in self.options.items():
            if command == "guard":
                continue
            for example in re.findall(r"^  prony ([a-z-]+)(.*)$", says(command, "--help"), re.MULTILINE):
                self.assertIn(example[0], self.options)
                for word in own_words(example[0], shlex.split(example[1], comments=True)):
                    if word.startswith("--"):
                        self.assertIn(word[2:].split("=")[0], self.options[example[0]][0], f"{command}: {example}")
            for option in LONG.findall(says(command, "--help")):
                self.assertIn(option, self.all_long | {"help"}, command)

    def test_the_manual_has_every_command_and_option(self):
        page = says("manual").replace("\\-", "-")
        for command, (long, _) in self.options.items():
            if command in ("worker", "guard", "manual"):
                continue
            self.assertIn(f".SS prony {command}", page)
            for option in long - {"help"}:
                self.assertIn(f"\\fB--{option}\\fR", page, command)


if __name__ == "__main__":
    sys.exit(counted.main())
