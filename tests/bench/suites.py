#!/usr/bin/env python3
"""Runs the published suites, screened (--quick), and writes the results into docs/results/MACHINE.

    suites.py [--build BUILD] [--data DIR] [--time 90m] [--suites LIST] [--device cpu] [--work DIR] [--out DIR]
              [--more OPTIONS] [--render]

Runs unattended on a machine that does nothing else: the suites in order of their value, until they are done or the time is over. The
same command continues after it was killed or its time was over. --render runs nothing and writes the stored results:
README.md (machine, versions, step times, failures with their reasons) and cells.csv. Standard library only.
"""
import argparse
import collections
import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
# In order of value: the first ones are done when the time is over.
SUITES = ["thesis", "alexnet", "vgg", "cnn", "precision", "inference", "keras"]
# What a table of steps may vary by.
AXES = ("network", "stage", "batch", "precision", "input", "sync", "loop")
COLUMNS = ("suite", "framework", "version", "network", "dataset", "precision", "batch", "stage", "input", "sync", "loop",
           "optimiser", "status", "flags", "processes", "rank_low", "rank_high", "step_center_ns", "step_low_ns", "step_high_ns",
           "floor_ratio", "floor_low", "floor_high", "to_first_step_ns", "rss_peak_bytes", "reason")
INTRODUCTION = """Each suite ran with `prony run SUITE --quick`: a sample of its work, for screening. Tables show the step time with half of its 95 %
interval. `cells.csv` has the intervals, the ratios to native, start-up, memory and the reasons of failures."""
LEAST_SECONDS = 60  # no suite is started with less time
UNITS = {"s": 1, "m": 60, "h": 3600}


class Results:
    """The folder of results, and the runs so far (state.json in the work folder)."""

    def __init__(self, options):
        self.options = options
        self.prony = os.path.relpath(os.path.join(options.build, "prony"), TOP)
        if not os.path.exists(os.path.join(TOP, self.prony)):
            sys.exit("suites.py: %s is not there: build it, or --build BUILD" % self.prony)
        self.work = os.path.relpath(options.work or os.path.join(options.build, "suites-results"), TOP)
        os.makedirs(os.path.join(TOP, self.work), exist_ok=True)
        self.store = os.path.join(self.work, "results.db")
        self.path = os.path.join(TOP, self.work, "state.json")
        self.state = {"suites": {}}
        if os.path.exists(self.path):
            with open(self.path) as source:
                self.state = json.load(source)

    def save(self):
        with open(self.path + ".new", "w") as out:
            json.dump(self.state, out, indent=1)
        os.replace(self.path + ".new", self.path)

    def command(self, *words):
        return [self.prony] + [str(word) for word in words] + ["--store", self.store]

    def output(self, *words):
        """The output of a command; None if it fails, with its last words on stderr."""
        done = subprocess.run(self.command(*words), cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True)
        if done.returncode != 0:
            print("%s: %s" % (shlex.join(done.args), done.stderr.strip()[-300:]), file=sys.stderr)
            return None
        return done.stdout

    def run_words(self, suite):
        words = ["run", suite, "--quick", "-D", self.options.device]
        if self.options.data:
            words += ["--data", os.path.relpath(self.options.data, TOP)]
        return words + shlex.split(self.options.more)

    def estimate(self, suite):
        """The plan's own line: "45 cells, quick effort: 135 processes, 9 to 30 min"."""
        done = subprocess.run(self.command(*self.run_words(suite), "--dry-run"), cwd=TOP, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True)
        return next((line for line in done.stdout.splitlines() if re.match(r"\d+ cells?, ", line)), "")

    def newest(self, suite):
        """uid of the store's newest run of a suite, or None. Not of its newest run: --resume goes on with one that may be older."""
        runs = [run for run in json.loads(self.output("list", "runs", "--format", "json") or "[]") if run["suite"] == suite]
        return max(runs, key=lambda run: run["started_wall_ns"])["uid"] if runs else None

    def run(self, suite, seconds):
        """Runs or resumes a suite for at most that time."""
        known = self.state["suites"].setdefault(suite, {"seconds": 0})
        known.setdefault("estimate", self.estimate(suite))
        known["command"] = " ".join(["prony run", suite, "--quick -D", self.options.device] + shlex.split(self.options.more))
        words = self.run_words(suite) + ["--resume"]
        print("== %s, %d min left: %s" % (suite, seconds / 60, known["estimate"]), flush=True)
        started = time.time()
        with open(os.path.join(TOP, self.work, suite + ".log"), "a") as log:
            worker = subprocess.Popen(self.command(*words), cwd=TOP, stdout=log, stderr=log)
            try:
                status = worker.wait(timeout=seconds)
                end = "done" if status in (0, 1) else "exit status %d" % status
            except (KeyboardInterrupt, subprocess.TimeoutExpired) as reason:
                # Stored results stay, and --resume continues with them.
                worker.send_signal(signal.SIGINT)
                worker.wait()
                end = "interrupted" if isinstance(reason, KeyboardInterrupt) else "cut"
        self.keep(suite, known, started, end)
        if end == "interrupted":
            raise KeyboardInterrupt

    def keep(self, suite, known, started, end):
        known["seconds"] += time.time() - started
        known["end"] = end
        known["run"] = self.newest(suite)
        self.save()
        print("   %s after %.1f min" % (known["end"], known["seconds"] / 60), flush=True)

    def exported(self, known):
        text = self.output("export", known["run"], "--format", "json") if known.get("run") else None
        if not text:
            return None
        document = json.loads(text)
        return document[0] if isinstance(document, list) else document


def machine_of(environment):
    """("AMD EPYC, 2 cores, 24 GiB", "amd-epyc-2-cores")"""
    fixed = environment.get("must_match", {})
    model = re.sub(r"\((R|TM)\)|CPU|Processor|\d+-Core", " ", fixed.get("cpu_model") or "machine")
    model = " ".join(model.split())
    cores = fixed.get("cores_usable") or fixed.get("cores") or 0
    words = "%s, %d cores, %d GiB" % (model, cores, fixed.get("memory_gib") or 0)
    return words, re.sub(r"[^a-z0-9]+", "-", ("%s %d cores" % (model, cores)).lower()).strip("-")


def cleaned(text):
    """Returns the text without the paths of this machine."""
    return text.replace(TOP + "/", "").replace(os.path.expanduser("~"), "~")


def counts(rows):
    counted = collections.Counter(row["status"] for row in rows)
    return ", ".join("%d %s" % (counted[status], status)
                     for status in sorted(counted, key=lambda status: (status != "ok", status)))


def step_of(row):
    """A cell of a table: "1.62 ms ±8.9 %", or the status if there is no figure."""
    if not row.get("step_center_ns"):
        return row["status"]
    center, high = (float(row["step_%s_ns" % name] or "nan") for name in ("center", "high"))
    unit, scale = next((unit, scale) for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1)) if center >= scale)
    half = (high / center - 1) * 100  # as in the table of a run
    return "%s %s%s%s" % ("%.3g" % (center / scale) if center / scale < 100 else "%.0f" % (center / scale), unit,
                          " ±%.2g %%" % half if half < 10 else " ±%.0f %%" % half if half == half else "",
                          "" if row["status"] == "ok" else ", " + row["status"])


def step_table(rows):
    """Lines of a Markdown table of step times: frameworks against cases, the longer of the two downwards."""
    frameworks = list(dict.fromkeys(row["framework"] for row in rows))
    varying = [axis for axis in AXES if len({row[axis] for row in rows}) > 1]
    cases = list(dict.fromkeys(tuple(row[axis] for axis in varying) for row in rows))
    found = {(row["framework"], tuple(row[axis] for axis in varying)): step_of(row) for row in rows}
    def case_name(case):
        return " ".join("b" + word if axis == "batch" else word for axis, word in zip(varying, case)) or rows[0]["network"]
    down_is_framework = len(frameworks) > len(cases)
    down, across = (frameworks, cases) if down_is_framework else (cases, frameworks)
    titles = [case_name(case) for case in across] if down_is_framework else across
    lines = ["| | " + " | ".join(titles) + " |", "| --- |" + " ---: |" * len(across)]
    for left in down:
        values = [found.get((left, top) if down_is_framework else (top, left), "") for top in across]
        lines.append("| %s | %s |" % (left if down_is_framework else case_name(left), " | ".join(values)))
    return lines


def failures(rows):
    """Lines of a table of the failures and their reasons; cells that differ only in the network are one row."""
    found = collections.OrderedDict()
    for row in rows:
        if row["status"] != "ok":
            reason = " ".join(row["reason"].split())[:200].replace("|", "/")
            found.setdefault((row["framework"], row["status"], reason), []).append(
                "%s %s b%s %s" % (row["network"], row["stage"], row["batch"], row["precision"]))
    if found:
        yield from ("", "| framework | cells | status | reason |", "| --- | --- | --- | --- |")
    for (framework, status, reason), cells in found.items():
        yield "| %s | %s | %s | %s |" % (framework, ", ".join(cells), status, reason)


def suite_section(suite, rows, heading, notes):
    """Lines of one suite in the README of a machine."""
    same = ", ".join("%s %s" % (axis, rows[0][axis]) for axis in AXES if len({row[axis] for row in rows}) == 1)
    versions = collections.OrderedDict((row["framework"], row["version"]) for row in rows if row["version"])
    return ["## " + heading, "", "%s: %s. In all of them: %s." % (suite, counts(rows), same or "nothing"), *notes,
            "Versions: %s." % ", ".join("%s %s" % pair for pair in versions.items()), "",
            *step_table(rows), *failures(rows), ""]


def write_cells(path, rows):
    """One CSV of all suites: the columns that say what was measured, and how long it took."""
    with open(path, "w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: "%.5g" % float(row[name]) if re.fullmatch(r"\d+\.\d+(e[+-]?\d+)?", row.get(name) or "")
                             else cleaned(row.get(name) or "") for name in COLUMNS})


def render(results):
    """Writes README.md and cells.csv of this machine."""
    done = [(suite, results.state["suites"][suite]) for suite in SUITES
            if results.state["suites"].get(suite, {}).get("run")]
    if not done:
        sys.exit("suites.py: no results are stored yet")
    words, slug = machine_of(results.exported(done[0][1])["run"]["environment"])
    top = results.options.out or os.path.join(TOP, "docs", "results", slug)
    os.makedirs(top, exist_ok=True)
    everything, sections = [], []
    for suite, known in done:
        text = results.output("export", known["run"], "--layout", "cells") or ""
        rows = [dict(row, suite=suite) for row in csv.DictReader(io.StringIO(text))]
        everything += rows
        started = results.exported(known)["run"]["started"]
        notes = ["Plan: %s. It took %.1f min%s." % (known["estimate"] or "none", known["seconds"] / 60, {
            "cut": ", when its time was over: cells without figures are pending",
            "done": ""}.get(known["end"], ", and ended early (%s)" % known["end"]))]
        sections += suite_section("`%s`, %s" % (known["command"], started[:10]), rows, suite, notes)
    missing = [suite for suite in SUITES if suite not in dict(done)]
    with open(os.path.join(top, "README.md"), "w", encoding="utf-8") as out:
        out.write(cleaned("\n".join([
            "# The published suites on %s" % words, "", INTRODUCTION, "",
            *(["Not run: %s." % ", ".join(missing), ""] if missing else []), *sections])))
    write_cells(os.path.join(top, "cells.csv"), everything)
    print("results: %s" % os.path.relpath(top, os.getcwd()))


def seconds_of(text):
    if text[-1:] not in UNITS or not re.match(r"\d+(\.\d+)?$", text[:-1]):
        raise argparse.ArgumentTypeError("%r is not a time; write for example 90s, 30m or 1.5h" % text)
    return float(text[:-1]) * UNITS[text[-1]]


def suites_of(text):
    words = text.split(",")
    for word in words:
        if word not in SUITES:
            raise argparse.ArgumentTypeError("%r is none of %s" % (word, ", ".join(SUITES)))
    return words


def default_data():
    """The real images beside the checkout, as tests find them, or None."""
    places = (os.path.join(TOP, up, "shared", "data") for up in ("..", os.path.join("..", "..")))
    return next((place for place in places if os.path.isdir(place)), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--data", default=default_data())
    parser.add_argument("--time", type=seconds_of, default=90 * 60)
    parser.add_argument("--suites", type=suites_of, default=SUITES)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--work", help="store, logs and state (default: BUILD/suites-results)")
    parser.add_argument("--out", help="folder of the results (default: docs/results/MACHINE)")
    parser.add_argument("--more", default="", help="further options of prony run, as in --more '-n lenet'")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    results = Results(options)
    deadline = time.time() + options.time
    try:
        for suite in options.suites:
            left = deadline - time.time()
            if options.render or results.state["suites"].get(suite, {}).get("end") == "done":
                continue
            if left < LEAST_SECONDS:
                print("== %s: no time is left for it" % suite)
                continue
            results.run(suite, left)
    except KeyboardInterrupt:
        print("interrupted: the same command goes on")
    render(results)


if __name__ == "__main__":
    main()
