#!/usr/bin/env python3
"""What documents, help and manual say of commands, options, files and each other is what there is.

$PRONY names the program, $PRONY_SOURCE the source tree.
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import unittest

import counted
from prony_program import PRONY

SOURCE = os.environ.get("PRONY_SOURCE", ".")
# "prony run -f x --quick" in a line of code, or between backticks; what a shell would do ends it.
COMMAND = re.compile(r"(?:^|[\s`(/])prony ([a-z][a-z-]*)((?: [^`|;&<>#()\n]*)?)")
CODE = re.compile(r"`([^`\n]+)`|^(?: {4}|\t)(.*)$", re.MULTILINE)
LONG = re.compile(r"(?<![\w-])--([a-z][a-z-]+)")
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
# A file of the tree between backticks; NAME and the like, patterns and what a build makes are none.
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.@=-]+\.(?:c|h|py|yaml|tsv|md|json|txt|pl|js))`")
PAGE = re.compile(r"\bdocs/[\w/.-]+\.(?:md|json)\b")


def documents():
    """(name, text) of every page that speaks of the program as it is; dated pages say what was."""
    for pattern in ("README.md", "CONTRIBUTING.md", "docs/*.md", "suites/*.yaml"):
        for path in sorted(glob.glob(os.path.join(SOURCE, pattern))):
            with open(path, encoding="utf-8") as stream:
                yield os.path.relpath(path, SOURCE), stream.read()


def pages():
    """Paths of all pages, dated ones too."""
    return [path for pattern in ("*.md", "docs/*.md", "docs/measured/*.md", "docs/results/*/*.md", "*/*/README.md")
            for path in sorted(glob.glob(os.path.join(SOURCE, pattern), recursive=True))
            if not os.path.relpath(path, SOURCE).startswith("build")]


def sources():
    """Paths of all code that may name a page."""
    for folder in sorted(next(os.walk(SOURCE))[1]):
        if not folder.startswith(("build", ".", "docs")):
            for pattern in ("**/*.[ch]", "**/*.py"):
                yield from sorted(glob.glob(os.path.join(SOURCE, folder, pattern), recursive=True))


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def anchors(text):
    """What a link may name behind '#': headings, as they are spelled in addresses."""
    found, times = set(), {}
    for heading in HEADING.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        word = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        times[word] = times.get(word, -1) + 1
        found.add(word if not times[word] else f"{word}-{times[word]}")
    return found


def broken_links(path, text):
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(target):
            yield link
        elif anchor and target.endswith(".md") and anchor not in anchors(read(target) if name else text):
            yield link


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

    def test_every_link_leads_somewhere(self):
        seen = 0
        for path in pages():
            text = read(path)
            seen += len(LINK.findall(text))
            self.assertEqual(list(broken_links(path, text)), [], path)
        self.assertGreater(seen, 200, "the documents have links")

    def test_broken_links_are_found(self):
        page = os.path.join(SOURCE, "docs", "datasets.md")
        text = ("# Here\n[a](frameworks.md) [b](#here) [c](https://x.invalid/y) [d](none.md)\n"
                "[e](frameworks.md#none)\n")
        self.assertEqual(list(broken_links(page, text)), ["none.md", "frameworks.md#none"])
        self.assertEqual(anchors("# A `b`, c\n## A b c\n## A b c\n```\n# no\n```\n"),
                         {"a-b-c", "a-b-c-1", "a-b-c-2"})

    def test_every_file_named_is_there(self):
        """Files between backticks in pages that speak of the tree as it is, and pages that sources name."""
        seen = 0
        for name, text in documents():
            for path in FILE.findall(text):
                top = path.split("/")[0]
                if re.search(r"[A-Z]{4}", path.replace("README", "")) or not os.path.isdir(os.path.join(SOURCE, top)):
                    continue
                seen += 1
                self.assertTrue(os.path.exists(os.path.join(SOURCE, path)), f"{name}: {path}")
        self.assertGreater(seen, 60, "the documents name files")
        for path in sources():
            for page in PAGE.findall(read(path)):
                if not re.search(r"NAME|planted", page):
                    self.assertTrue(os.path.exists(os.path.join(SOURCE, page)), f"{path}: {page}")

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
