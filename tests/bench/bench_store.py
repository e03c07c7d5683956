#!/usr/bin/env python3
"""Measures a store of a million process results: its CSV export against sqlite3's own, and its page.

    tests/bench/bench_store.py [--cells 20000] [--processes 50] [--times 3] [--keep FILE]

Bounds: export at most 1.5 times `sqlite3 -csv` on the same query (medians, interleaved) and 64 MiB;
the complete export of all runs 64 MiB; the page in 5 s. Seconds are CPU time of all threads, so that other programs hardly change them. Needs the program sqlite3, build/prony and build/tests/report_store ($PRONY,
$REPORT_STORE), and 1.5 GB of disk below $TMPDIR. Exit status 1 if a bound is missed.
"""
import argparse
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

PRONY = os.environ.get("PRONY", "build/prony")
REPORT_STORE = os.environ.get("REPORT_STORE", "build/tests/report_store")
EXPORT_RATIO_MAX, EXPORT_MIB_MAX, PAGE_SECONDS_MAX = 1.5, 64, 5


def columns(base, table):
    return [row[1] for row in base.execute(f"PRAGMA table_info({table})")]


def fill(path, cells, processes):
    """Cells of four frameworks in a new run, like those of the fixture's forward comparison."""
    subprocess.run([REPORT_STORE, path, "1"], check=True)
    base = sqlite3.connect(path)
    base.execute("PRAGMA synchronous = OFF")
    run = ", ".join({"id": "2", "uid": "'c' || substr(uid, 2)",
                     "started_wall_ns": "started_wall_ns + 1"}.get(name, name)
                    for name in columns(base, "run"))
    base.execute(f"INSERT INTO run SELECT {run} FROM run")
    numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %d)"
    cell = ", ".join({"id": "1000 + i", "run": "2", "hash": "printf('%016x', i)",
                      "batch": "1 + i / 4"}.get(name, "cell." + name)
                     for name in columns(base, "cell"))
    base.execute(f"{numbers % cells} INSERT INTO cell SELECT {cell} FROM n JOIN (SELECT *, "
                 "row_number() OVER (ORDER BY id) - 1 AS place FROM cell WHERE run = 1 AND "
                 "stage = 'forward' AND status = 'ok') AS cell ON cell.place = i % 4")
    new = {"id": "NULL", "cell": "target.id", "replicate": "i", "round": "i",
           "step_mean_ns": "step_mean_ns * (1 + (target.id * 7 + i * 13) % 101 / 3000.0)"}
    process = ", ".join(new.get(name, "process." + name) for name in columns(base, "process"))
    base.execute(
        f"{numbers % processes} INSERT INTO process SELECT {process} FROM cell AS target "
        "JOIN cell AS model ON model.run = 1 AND model.framework = target.framework AND "
        "model.stage = 'forward' JOIN process ON process.cell = model.id AND process.replicate = 1 "
        "JOIN n WHERE target.run = 2")
    base.commit()
    count = base.execute("SELECT count(*) FROM process").fetchone()[0]
    base.close()
    return count


def query(path):
    """The columns of `prony export --format csv`, as SQL."""
    head = subprocess.run([PRONY, "export", "1", "--store", path], check=True, capture_output=True,
                          text=True).stdout.split("\n", 1)[0].split(",")
    base = sqlite3.connect(path)
    cells = set(columns(base, "cell"))
    base.close()
    taken = {"run": "r.uid", "version": "json_extract(c.details, '$.version')"}
    words = [taken.get(name) or ("p." + name[8:] if name.startswith("process_") else
                                 "c." + name if name in cells else "p." + name) for name in head]
    return (f"SELECT {', '.join(words)} FROM process p JOIN cell c ON p.cell = c.id "
            "JOIN run r ON c.run = r.id WHERE r.id = 2 ORDER BY c.id, p.replicate")


def measure(words, output):
    """CPU seconds, MiB, and wall-clock seconds of a program; other programs on the machine affect the last."""
    begin = time.monotonic()
    with open(output, "wb") as stream:
        process = subprocess.Popen(words, stdout=stream, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(words[:3])}... ended with {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cells", type=int, default=20000)
    parser.add_argument("--processes", type=int, default=50)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--keep", help="use this store, made where it is not there")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="prony-bench-store-")
    try:
        path = arguments.keep or os.path.join(folder, "store.db")
        if not os.path.exists(path):
            begin = time.monotonic()
            count = fill(path, arguments.cells, arguments.processes)
            print(f"made {count} process results in {time.monotonic() - begin:.1f} s, "
                  f"{os.path.getsize(path) >> 20} MiB")
        output, sql = os.path.join(folder, "out"), query(path)
        ours, theirs, page, waited, mib = [], [], [], [], []
        for _ in range(arguments.times):
            seconds, most, _ = measure([PRONY, "export", "2", "--store", path, "--format", "csv"], output)
            ours.append(seconds)
            mib.append(most)
            lines = sum(1 for _ in open(output, "rb"))
            theirs.append(measure(["sqlite3", "-csv", "-header", path, sql], output)[0])
            if lines != sum(1 for _ in open(output, "rb")):
                sys.exit("the exports have different numbers of lines")
            seconds, _, clock = measure([PRONY, "report", "2", "--store", path, "-o", "-"], output)
            page.append(seconds)
            waited.append(clock)
        size = os.path.getsize(output)
        complete = measure([PRONY, "export", "--all", "--store", path, "--format", "jsonl"], os.devnull)
    finally:
        shutil.rmtree(folder)
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"{lines - 1} rows: export {statistics.median(ours):.2f} s, sqlite3 -csv "
          f"{statistics.median(theirs):.2f} s, ratio {ratio:.2f} (at most {EXPORT_RATIO_MAX}); "
          f"{max(mib):.0f} MiB (at most {EXPORT_MIB_MAX})")
    print(f"complete export of all runs: {complete[0]:.0f} s, {complete[1]:.0f} MiB")
    print(f"page: {statistics.median(page):.2f} s (at most {PAGE_SECONDS_MAX}), by the clock "
          f"{statistics.median(waited):.2f} s, {size / 1e6:.1f} MB")
    return 0 if (ratio <= EXPORT_RATIO_MAX and max(*mib, complete[1]) <= EXPORT_MIB_MAX and
                 statistics.median(page) <= PAGE_SECONDS_MAX) else 1


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())
