#!/usr/bin/env python3
"""Runs the published suites, screened (--quick), and writes what they gave into docs/results/DATE-MACHINE.

    suites.py [--build BUILD] [--data DIR] [--time 90m] [--suites LIST] [--device cpu] [--work DIR] [--out DIR]
              [--more OPTIONS] [--render]

One command, unattended, on a machine that does nothing else: suites in order of their value, each until it is done or the time is
over. What was stored stays: the same command goes on where it was killed, or where its time was over, and writes into the same folder.
--render runs nothing and writes the pages of what is stored. Per suite: cells.csv (opens in a spreadsheet), origin.txt (as the benchmark
printed that the suite repeats), figures as SVG, README.md (machine, versions, table, what was not ok and why, the plan's estimate beside
the time it took), and page.html where that is below 1 MiB. Standard library only.
"""
import argparse
import collections
import datetime
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
# In order of value: what is first is done when the time is over.
SUITES = ["thesis", "alexnet", "vgg", "cnn", "precision", "inference", "keras"]
# Of each comparison's figures those that say what was measured; the page has all of them.
FIGURES = ("step-time-", "published-", "memory-", "power-", "speed-", "items-", "throughput-")
PAGE_BYTES_MAX = 1 << 20
LEAST_SECONDS = 60  # a suite is not begun with less
UNITS = {"s": 1, "m": 60, "h": 3600}


class Results:
    """The folder of results, and what was run so far (state.json in the work folder)."""

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
        """What a command prints; None where it fails, with its last words on stderr."""
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
        """Runs or resumes a suite for at most so long."""
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
                # What is stored stays, and --resume goes on with it.
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
    """Without the places of this machine."""
    return text.replace(TOP + "/", "").replace(os.path.expanduser("~"), "~")


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", newline="") as out:
        out.write(cleaned(text))


def failures(cells):
    """Rows (framework, networks, status, reason) of what was not ok; cells that share all but the network are one row."""
    rows = collections.OrderedDict()
    for cell in cells:
        if cell["status"] == "ok":
            continue
        reason = " ".join((cell["reason"] or "").split())[:300]
        rows.setdefault((cell["framework"], cell["status"], reason), []).append(
            "%s %s b%s %s" % (cell["network"], cell["stage"], cell["batch"], cell["precision"]))
    for (framework, status, reason), of in rows.items():
        yield framework, ", ".join(of), status, reason.replace("|", "/")


def versions(cells):
    found = collections.OrderedDict()
    for cell in cells:
        if (cell.get("details") or {}).get("version"):
            found[cell["framework"]] = cell["details"]["version"]
    return found


def counts(cells):
    counted = collections.Counter(cell["status"] for cell in cells)
    return ", ".join("%d %s" % (counted[status], status)
                     for status in sorted(counted, key=lambda status: (status != "ok", status)))


def render_figures(results, run, folder):
    """Copies the figures that are kept; returns their names."""
    whole = os.path.join(TOP, results.work, "figures")
    shutil.rmtree(whole, ignore_errors=True)
    if results.output("report", run, "--figures", os.path.relpath(whole, TOP)) is None:
        return []
    names = sorted(name for name in os.listdir(whole)
                   if name.endswith(".svg") and name.startswith(FIGURES))
    for name in names:
        shutil.copy(os.path.join(whole, name), os.path.join(folder, name))
    shutil.rmtree(whole, ignore_errors=True)
    return names


def render_page(results, run, folder):
    """The page, where it is small enough to keep; returns whether."""
    path = os.path.join(TOP, results.work, "page.html")
    if results.output("report", run, "-o", os.path.relpath(path, TOP)) is None:
        return False
    with open(path, encoding="utf-8") as source:
        text = source.read()
    os.remove(path)
    if len(text.encode()) >= PAGE_BYTES_MAX:
        return False
    write(folder, "page.html", text)
    return True


def render_suite(results, suite, known, top):
    """Writes the folder of one suite; returns its row of the index."""
    document = results.exported(known)
    run, cells = document["run"], document["cells"]
    folder = os.path.join(top, suite)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    write(folder, "cells.csv", results.output("export", known["run"], "--layout", "cells") or "")
    files = ["[cells.csv](cells.csv)"]
    origin = results.output("report", known["run"], "--form", "origin") if run_has_form(run) else None
    if origin:
        write(folder, "origin.txt", origin)
        files.append("[origin.txt](origin.txt) (as its origin printed it)")
    if render_page(results, known["run"], folder):
        files.append("[page.html](page.html)")
    names = render_figures(results, known["run"], folder)
    lines = ["# %s, screened" % suite, "",
             "`%s`, %s, on %s, prony %s: %s." % (known["command"], run["started"], machine_of(run["environment"])[0],
                                                 run["version"], counts(cells)), "",
             "The plan said: %s. It took %.1f min%s." % (known["estimate"] or "nothing", known["seconds"] / 60, {
                 "cut": ", and was cut by its time: cells without figures are pending",
                 "done": ""}.get(known["end"], ", and ended early (%s)" % known["end"])),
             "%s: for screening. Files: %s." % (
                 "A sample of the work (batches of an eighth, three processes of three steps)" if origin
                 else "Effort quick", ", ".join(files)), "",
             "Versions: %s." % ", ".join("%s %s" % pair for pair in versions(cells).items()), ""]
    rows = list(failures(cells))
    if rows:
        lines += ["## Not ok, and why", "", "| framework | cells | status | in its own words |", "| --- | --- | --- | --- |"]
        lines += ["| %s |" % " | ".join(row) for row in rows] + [""]
    lines += ["## Tables", "", demoted(results.output("export", known["run"], "--format", "md") or ""), ""]
    if names:
        lines += ["## Figures", ""] + ["- [%s](%s)" % (name[:-4].replace("-", " "), name) for name in names] + [""]
    write(folder, "README.md", "\n".join(lines))
    return "| [%s](%s/README.md) | %s | %s | %.1f min |" % (suite, suite, counts(cells), known["estimate"],
                                                           known["seconds"] / 60)


def run_has_form(run):
    return any(line.startswith("form=") and line != "form=ours" for line in (run["spec"] or "").splitlines())


def demoted(markdown):
    """With headings below those of the page around it."""
    return re.sub(r"^#", "###", markdown, flags=re.M)


def rows_by_hand(top):
    """Rows of the table in the folder's README that are of no suite of ours: what was put there by hand stays."""
    path = os.path.join(top, "README.md")
    if not os.path.exists(path):
        return []
    with open(path) as source:
        rows = [line.rstrip("\n") for line in source if line.startswith("| [")]
    return [row for row in rows if re.search(r"\((.*?)/", row).group(1) not in SUITES]


def render(results):
    done = [(suite, results.state["suites"][suite]) for suite in SUITES
            if results.state["suites"].get(suite, {}).get("run")]
    if not done:
        sys.exit("suites.py: nothing is stored yet")
    environment = results.exported(done[0][1])["run"]["environment"]
    words, slug = machine_of(environment)
    results.state.setdefault("folder", "%s-%s" % (datetime.date.today().isoformat(), slug))
    results.save()
    top = results.options.out or os.path.join(TOP, "docs", "results", results.state["folder"])
    os.makedirs(top, exist_ok=True)
    rows = [render_suite(results, suite, known, top) for suite, known in done] + rows_by_hand(top)
    missing = [suite for suite in SUITES if suite not in dict(done)]
    write(top, "README.md", "\n".join([
        "# The published suites on %s" % words, "",
        "%s, prony run SUITE --quick -D %s: a sample of each suite's work, for screening, by `tests/bench/suites.py`." % (
            results.state["folder"][:10], results.options.device), "",
        "| suite | cells | the plan said | it took |", "| --- | --- | --- | --- |"] + rows + [""]
        + (["Not run, for want of time: %s." % ", ".join(missing), ""] if missing else [])))
    print("results: %s" % os.path.relpath(top, os.getcwd()))


def seconds_of(text):
    if text[-1:] not in UNITS or not re.match(r"\d+(\.\d+)?$", text[:-1]):
        raise argparse.ArgumentTypeError("%r is no time; write 90s, 30m or 1.5h" % text)
    return float(text[:-1]) * UNITS[text[-1]]


def suites_of(text):
    words = text.split(",")
    for word in words:
        if word not in SUITES:
            raise argparse.ArgumentTypeError("%r is none of %s" % (word, ", ".join(SUITES)))
    return words


def default_data():
    """The real images beside the checkout, as tests find them; None where there are none."""
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
    parser.add_argument("--out", help="folder of the results (default: docs/results/DATE-MACHINE)")
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
