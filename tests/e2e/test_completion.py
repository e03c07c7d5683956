#!/usr/bin/env python3
"""Completion, in the shells that are here; and what `prony complete` answers them.

$PRONY names the program.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys

import counted
from prony_program import PRONY, ProgramTest, read_bytes

USAGE = 64
# What is typed: words that have to be offered, and words that must not be.
ROWS = [
    ("prony r", ["run", "report"], ["show", "worker"]),
    ("prony run --qu", ["--quick"], ["--rigorous"]),
    ("prony run quick", ["quickstart"], ["latency"]),
    ("prony run -n res", ["resnet50", "resnet152"], ["lenet"]),
    ("prony run -n al", ["all", "alexnet"], ["lenet"]),
    ("prony run -n sub", ["subfolder"], ["lenet"]),
    ("prony run -f native,onnx", ["native,onnxruntime"], ["native"]),
    ("prony run -n mlp -s for", ["forward", "forward-backward"], ["train"]),
    ("prony run --networks le", ["lenet"], ["mlp"]),
    ("prony export --format ", ["csv", "latex"], ["run"]),
    ("prony list net", ["networks"], ["datasets"]),
    ("prony framework ", ["install", "remove", "list"], ["native"]),
    ("prony framework install open", ["openvino"], ["install"]),
    ("prony data verify mnist", ["mnist", "mnist-sample", "mnist-3000"], ["cifar10"]),
    ("prony help sh", ["show"], ["run"]),
    ("prony completion ", ["bash", "zsh", "fish"], []),
    ("prony show --store here", ["here.db"], ["prony"]),
    (r"prony show --store her\ h", ["her here.db"], ["here.db"]),
    ("prony run --keep-bundle sub", ["subfolder"], ["sub.txt"]),
]
BASH = r"""
source <(prony completion bash)
while IFS= read -r COMP_LINE; do
	COMP_POINT=${#COMP_LINE}
	COMPREPLY=()
	_prony 2>/dev/null
	printf '%s|' "${COMPREPLY[@]%/}"
	echo
done
"""


class CompletionTest(ProgramTest):
    def setUp(self):
        super().setUp()
        commands = os.path.join(self.folder, "bin")
        os.mkdir(commands)
        os.symlink(os.path.abspath(PRONY), os.path.join(commands, "prony"))
        self.environment["PATH"] = commands + ":" + os.environ["PATH"]
        self.here = os.path.join(self.folder, "here")
        os.makedirs(os.path.join(self.here, "subfolder"))
        for name in ("here.db", "her here.db", "sub.txt"):
            with open(os.path.join(self.here, name), "w", encoding="ascii"):
                pass

    def shell(self, *command, text=""):
        done = subprocess.run(command, env=self.environment, input=text, text=True, cwd=self.here,
                              capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check(self, typed, offered, wanted, unwanted):
        for word in wanted:
            self.assertIn(word, offered, f"{typed}: {offered}")
        for word in unwanted:
            self.assertNotIn(word, offered, f"{typed}: {offered}")

    def test_bash(self):
        answers = self.shell("bash", "--norc", "-c", BASH, text="".join(row[0] + "\n" for row in ROWS))
        answers = answers.splitlines()
        self.assertEqual(len(answers), len(ROWS))
        for (typed, wanted, unwanted), answer in zip(ROWS, answers):
            self.check(typed, answer.split("|"), wanted, unwanted)

    def test_bash_behind_a_colon(self):
        """bash takes "keras3:j" for three words and replaces the last."""
        answer = self.shell("bash", "--norc", "-c", BASH, text="prony run -f keras3:j\n")
        self.assertEqual(answer, "jax|\n")

    def test_fish(self):
        if not shutil.which("fish"):
            self.skipTest("no fish here")
        for typed, wanted, unwanted in ROWS:
            script = f"prony completion fish | source; complete -C '{typed}'"
            offered = [line.split("\t")[0].rstrip("/") for line in self.shell("fish", "-c", script).splitlines()]
            self.check(typed, offered, wanted, unwanted)

    def test_zsh(self):
        """The function, with the words that zsh gives it; what draws the menu is zsh's own."""
        if not shutil.which("zsh"):
            self.skipTest("no zsh here")
        for typed, wanted, unwanted in ROWS:
            words = re.split(r"(?<!\\) +", typed)
            quoted = " ".join(f"'{word}'" for word in words)
            script = ("compdef() { :; }; _files() { print -r -- here.db subfolder; }\n"
                      "_describe() { print -rl -- ${(P)2}; }\n"
                      f"source <(prony completion zsh)\nwords=({quoted})\nCURRENT={len(words)}\n_prony\n")
            offered = [word.split(":")[0] for line in self.shell("zsh", "-fc", script).splitlines()
                       for word in ([line] if ":" in line else line.split())]
            self.check(typed, offered, wanted, unwanted)

    def test_every_option_is_offered(self):
        for command in ("run", "show", "export", "log", "data", "worker-check"):
            shown = set(re.findall(r"--[a-z-]+(?= |\n)", self.prony("complete", command, "--", expect=0).stdout.replace("\t", " ")))
            known = re.findall(r"^  (?:-., |    )(--[a-z-]+)", self.prony(command, "--help", expect=0).stdout, re.MULTILINE)
            self.assertTrue(set(known) <= shown, f"{command}: {set(known) - shown}")

    def test_runs_of_the_store_that_the_line_names(self):
        run = ("run", "--quick", "-f", "fake", "-n", "mlp", "-s", "forward", "-b", "2", "--gate-only")
        self.prony(*run, "--name", "main", expect=0)
        self.prony(*run, "--name", "other", "--store", self.store, expect=0)
        runs, others = ["latest", "main", "1"], ["latest", "other", "1"]
        for line, wanted in (("show ", runs), ("show m", ["main"]), ("show main ", runs), ("report main ", runs), ("delete ", runs),
                             ("export ", runs), ("tag ", runs), ("tag main ", []), ("compare main ", runs), ("compare 1 1 ", []),
                             ("log --run ", runs), ("run --baseline=m", ["--baseline=main"]),
                             (f"compare --store {self.store} ", others), (f"show --store={self.store} o", ["other"]),
                             (f"show --store {self.folder}/none.db ", [])):
            offered = self.prony("complete", *line.split(" "), expect=0).stdout.splitlines()
            self.assertEqual(sorted(word.split("\t")[0] for word in offered), sorted(wanted), line)

    def test_wrong_words(self):
        for words in ([], ["tcsh"], ["bash", "zsh"]):
            done = self.prony("completion", *words, expect=USAGE)
            self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertEqual(self.prony("complete", "nothing", "x", expect=0).stdout, "")


class HelpTest(ProgramTest):
    def test_help_and_version_are_commands(self):
        for words, option in ((["help"], ["--help"]), (["help", "run"], ["run", "--help"]),
                              (["version"], ["--version"])):
            self.assertEqual(self.prony(*words, expect=0).stdout, self.prony(*option, expect=0).stdout)
        lines = self.prony("--version", expect=0).stdout.splitlines()
        # The commit depends on where it was built; a build outside git has none.
        self.assertRegex(lines[0], r"^prony \d+\.\d+\.\d+( \([\w.-]+\))?$")
        self.assertEqual(lines[1], "executable sha256 " + hashlib.sha256(read_bytes(PRONY)).hexdigest())
        for words, part in ((["help", "shwo"], "show"), (["help", "a", "b"], "one command"),
                            (["help", "guard"], "no command"), (["version", "x"], "no arguments")):
            self.assertIn(part, self.prony(*words, expect=USAGE).stderr)


if __name__ == "__main__":
    sys.exit(counted.main())
