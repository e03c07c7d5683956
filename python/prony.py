"""Runs of prony as lists of dictionaries, ready for pandas; the standard library only.

    import prony
    rows = prony.processes("run.jsonl")         # of `prony export --format jsonl -o run.jsonl`
    rows = prony.processes(run="3")             # of the store: the program is asked for it
    table = pandas.DataFrame(rows)

A source is a file of `prony export --format jsonl` (one that ends in .gz is unpacked), an open one, or
nothing: then the program PRONY, or "prony", exports the run named, or the newest. Records have the names
of docs/exports.md, with a dot between those of members and members of members ("step.center_ns"); None
is what was not measured. Times are in ns, memory in bytes.
"""
import gzip
import io
import json
import os
import subprocess

# Columns of a record, and what stands at its place in a list: left out of flat records.
BULKY = ("intervals", "sensors", "log", "gate_log", "details", "parity", "environment")


def lines(source=None, run=None, store=None):
    """Every object of the export, as it stands there, in order: run, its cells, their processes."""
    if source is None:
        return _parse(io.StringIO(_export(run, store)))
    if run is not None or store is not None:
        raise ValueError("name a source, or a run and a store, not both")
    if hasattr(source, "read"):
        return _parse(source)
    opened = gzip.open if str(source).endswith(".gz") else open
    with opened(source, "rt", encoding="utf-8") as stream:
        return _parse(stream)


def runs(source=None, run=None, store=None):
    """A record for each run: when, where, how; "environment" and the rest of it flat."""
    return [_flat(line, ()) for line in lines(source, run, store) if line["type"] == "run"]


def cells(source=None, run=None, store=None):
    """A record for each cell: its axes, how it ended, its estimates."""
    return [_flat(line, BULKY) for line in lines(source, run, store) if line["type"] == "cell"]


def processes(source=None, run=None, store=None):
    """A record for each process, the replicate: its axes, and what it measured; "status" and "flags" are its
    own, "cell.status" and "cell.flags" those of its cell."""
    return [record for record, _ in _joined(lines(source, run, store))]


def steps(source=None, run=None, store=None):
    """A record for each interval between two synchronisations in a measured window: the axes of its
    cell, the replicate, when it began within the window, and the mean step in it."""
    rows = []
    for record, line in _joined(lines(source, run, store)):
        intervals = line.get("intervals") or []
        keep = {name: value for name, value in record.items() if name in line["axes"]}
        for begin, end in intervals:
            rows.append(dict(keep, run=record["run"], cell=record["cell"], replicate=record["replicate"],
                             begin_ns=begin - intervals[0][0],
                             step_ns=(end - begin) / (record["block_steps"] or 1)))
    return rows


def _export(run, store):
    command = [os.environ.get("PRONY", "prony"), "export", "--format", "jsonl"]
    command += ["--store", str(store)] if store is not None else []
    command += [str(run)] if run is not None else []
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, error = done.communicate()
    if done.returncode:
        raise RuntimeError(error.decode("utf-8", "replace").strip())
    return output.decode("utf-8")


def _parse(stream):
    found = []
    for number, text in enumerate(stream, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except ValueError as error:
            raise ValueError("line %d is no JSON (%s): is it whole, and of `prony export --format jsonl`?"
                             % (number, error))
        if not isinstance(line, dict) or line.get("type") not in ("run", "cell", "process"):
            raise ValueError("line %d is no run, cell or process: `prony export --format jsonl` writes "
                             "such files" % number)
        found.append(line)
    return found


def _flat(line, without, before=""):
    """{"step": {"low_ns": 1}} becomes {"step.low_ns": 1}; lists of words become "a,b"."""
    record = {}
    for name, value in line.items():
        if name == "type" or name in without:
            continue
        if isinstance(value, dict):
            record.update(_flat(value, without, before + name + "."))
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            record[before + name] = ",".join(value)
        else:
            record[before + name] = value
    return record


def _axes(line):
    """What tells cells apart: the members before "status", as the key has them in its order."""
    axes = {}
    for name, value in line.items():
        if name == "status":
            break
        if name not in ("type", "run", "key", "hash"):
            axes[name] = value
    return axes


def _joined(found):
    """(flat record, line) of each process, with the axes of its cell in both."""
    of = {(line["run"], line["hash"]): line for line in found if line["type"] == "cell"}
    for line in found:
        if line["type"] != "process":
            continue
        cell = of[line["run"], line["cell"]]
        axes = _axes(cell)
        own = _flat(line, BULKY)
        # A process has an effective precision of its own.
        record = dict(axes)
        record.update(("process_" + name if name in axes else name, value) for name, value in own.items())
        record["cell.status"], record["cell.flags"] = cell["status"], ",".join(cell["flags"])
        yield record, dict(line, axes=axes)
