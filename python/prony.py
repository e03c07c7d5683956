"""Starts prony, and reads its runs as lists of dictionaries, ready for pandas; the standard library only.

    import prony
    run = prony.run("pytorch,jax", "resnet50", batch=[1, 8], quick=True)     # a table where a notebook shows it
    run.cells, run.frame(), run.figures()
    rows = prony.processes("run.jsonl")         # of `prony export --format jsonl -o run.jsonl`
    rows = prony.processes(run="3")             # from the store, by running the program
    table = pandas.DataFrame(rows)

A source is a file of `prony export --format jsonl` (.gz is unpacked) or an open file. Without a source the program
exports the run `run`, or the newest one. The program is $PRONY, the one inside this package (a wheel has it), or
`prony` on PATH. Records have the names of docs/exports.md; nested members are joined by a dot ("step.center_ns").
None: not measured. Times are in ns, memory in bytes.
"""
import gzip
import html
import io
import json
import os
import signal
import subprocess
import sys
import tempfile

# Members that are left out of flat records.
BULKY = ("intervals", "sensors", "log", "gate_log", "details", "parity", "environment")


# The name of one value of an axis, and the option that takes several.
AXES = {"batch": "batches", "dataset": "datasets", "device": "devices", "precision": "precisions", "stage": "stages"}
# (title, member of a cell, function that formats it)
COLUMNS = (("framework", "framework", str), ("network", "network", str), ("stage", "stage", str), ("batch", "batch", str),
           ("device", "device", str), ("precision", "precision", str),
           ("step, ms", "step.center_ns", lambda ns: "%.4g" % (ns / 1e6)),
           ("+/-", "step.half_width", lambda share: "%.2g %%" % (100 * share) if share < 9.99 else ">999 %"),
           ("samples/s", "samples_per_second", lambda rate: "%.4g" % rate),
           ("vs native", "floor.ratio", lambda ratio: "%.2fx" % ratio), ("status", "status", str))


def run(frameworks=None, networks=None, suite=None, store=None, **options):
    """Measures, and returns the Run. Frameworks, networks and every option of `prony run` take one value or a list:
    batch=[1, 8] is `--batches 1,8`, quick=True is `--quick`, worker={"mine": "./worker"} is `--worker mine=./worker`.
    Progress appears on sys.stderr. Raises RuntimeError with the program's message if nothing was measured. A cell
    that is not ok raises nothing: its record has status and reason."""
    options.update(frameworks=frameworks, networks=networks, store=store, format="json")
    command = [_program(), "run"] + ([str(suite)] if suite is not None else []) + _words(options)
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE)
        last = ""
        try:
            for line in io.TextIOWrapper(child.stderr, "utf-8", "replace"):
                sys.stderr.write(line)
                last = line.strip() or last
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)  # it stores what was measured
            raise
        finally:
            child.wait()
        output.seek(0)
        try:
            return Run(json.loads(output.read().decode("utf-8"))["run"]["uid"], store)
        except (ValueError, KeyError):
            raise RuntimeError(last or "prony run ended with code %d" % child.returncode)


class Run(object):
    """A stored run. `uid` names it; `cells` and `processes` are its records."""

    def __init__(self, uid="latest", store=None):
        self._lines = lines(run=uid, store=store)
        self.store = store
        self.uid = self._lines[0]["uid"]
        self.cells = [_flat(line, BULKY) for line in self._lines if line["type"] == "cell"]
        self.processes = [record for record, _ in _joined(self._lines)]

    def frame(self):
        """The cells as a pandas.DataFrame."""
        import pandas
        return pandas.DataFrame(self.cells)

    def figures(self):
        """The charts of `prony report --figures`."""
        with tempfile.TemporaryDirectory() as folder:
            self._call("report", "--figures", folder)
            names = sorted(name for name in os.listdir(folder) if name.endswith(".svg"))
            return [Figure(name[:-4], _text(os.path.join(folder, name))) for name in names]

    def report(self, path):
        """Writes the HTML page."""
        self._call("report", "-o", str(path))

    def __repr__(self):
        return self._call("show")

    def _repr_html_(self):
        """A table: a column for each axis and figure that a cell has."""
        columns = [column for column in COLUMNS if any(cell.get(column[1]) is not None for cell in self.cells)]
        rows = [[html.escape(show(cell[name])) if cell.get(name) is not None else "-" for _, name, show in columns]
                for cell in self.cells]
        head = "".join("<th>%s</th>" % html.escape(title) for title, _, _ in columns)
        body = "".join("<tr>%s</tr>" % "".join("<td>%s</td>" % text for text in row) for row in rows)
        return "<table><thead><tr>%s</tr></thead><tbody>%s</tbody></table>" % (head, body)

    def _call(self, verb, *words):
        return _output([_program(), verb] + list(words) + [self.uid] + _words({"store": self.store}))


class Figure(object):
    """A chart: `name`, and `svg`, its text."""

    def __init__(self, name, svg):
        self.name, self.svg = name, svg

    def _repr_svg_(self):
        return self.svg

    def __repr__(self):
        return "<prony.Figure %s>" % self.name


def lines(source=None, run=None, store=None):
    """All objects of the export, unchanged and in order: a run, its cells, their processes."""
    if source is None:
        return _parse(io.StringIO(_export(run, store)))
    if run is not None or store is not None:
        raise ValueError("give either a source, or run and store")
    if hasattr(source, "read"):
        return _parse(source)
    opened = gzip.open if str(source).endswith(".gz") else open
    with opened(source, "rt", encoding="utf-8") as stream:
        return _parse(stream)


def runs(source=None, run=None, store=None):
    """A flat record for each run: when, where, how, and its environment."""
    return [_flat(line, ()) for line in lines(source, run, store) if line["type"] == "run"]


def cells(source=None, run=None, store=None):
    """A flat record for each cell: its axes, how it ended, its estimates."""
    return [_flat(line, BULKY) for line in lines(source, run, store) if line["type"] == "cell"]


def processes(source=None, run=None, store=None):
    """A flat record for each process (replicate): its axes and its measurements. "status" and "flags" are those
    of the process, "cell.status" and "cell.flags" those of its cell."""
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


def main():
    """The command `prony` of a wheel: becomes the program."""
    os.execvp(_program(), ["prony"] + sys.argv[1:])


def _program():
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "prony")
    return os.environ.get("PRONY") or (inside if os.path.exists(inside) else "prony")


def _export(run, store):
    command = [_program(), "export", "--format", "jsonl"]
    return _output(command + _words({"store": store}) + ([str(run)] if run is not None else []))


def _words(options):
    """{"batch": [1, 8], "quick": True} becomes ["--batches=1,8", "--quick"]; None and False are left out."""
    words = []
    for name, value in sorted(options.items()):
        option = "--" + AXES.get(name, name).replace("_", "-")
        if isinstance(value, dict):
            words += ["%s=%s=%s" % (option, key, one) for key, one in sorted(value.items())]
        elif isinstance(value, (list, tuple)):
            words.append("%s=%s" % (option, ",".join(map(str, value))))
        elif value is True:
            words.append(option)
        elif value is not None and value is not False:
            words.append("%s=%s" % (option, value))
    return words


def _output(command):
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, error = done.communicate()
    if done.returncode:
        raise RuntimeError(error.decode("utf-8", "replace").strip())
    return output.decode("utf-8")


def _text(path):
    with io.open(path, encoding="utf-8") as stream:
        return stream.read()


def _parse(stream):
    found = []
    for number, text in enumerate(stream, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except ValueError as error:
            raise ValueError("line %d is not JSON (%s); "
                             "the source must be a complete file of 'prony export --format jsonl'"
                             % (number, error))
        if not isinstance(line, dict) or line.get("type") not in ("run", "cell", "process"):
            raise ValueError("line %d is not a run, cell or process; "
                             "the source must be a file of 'prony export --format jsonl'" % number)
        found.append(line)
    return found


def _flat(line, without, before=""):
    """{"step": {"low_ns": 1}} becomes {"step.low_ns": 1}; lists of strings become "a,b"."""
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
    """The axes of a cell: its members before "status", in the order of the key."""
    axes = {}
    for name, value in line.items():
        if name == "status":
            break
        if name not in ("type", "run", "key", "hash"):
            axes[name] = value
    return axes


def _joined(found):
    """Yields (flat record, line) for each process, both with the axes of its cell."""
    of = {(line["run"], line["hash"]): line for line in found if line["type"] == "cell"}
    for line in found:
        if line["type"] != "process":
            continue
        cell = of[line["run"], line["cell"]]
        axes = _axes(cell)
        own = _flat(line, BULKY)
        # A process has its own effective precision.
        record = dict(axes)
        record.update(("process_" + name if name in axes else name, value) for name, value in own.items())
        record["cell.status"], record["cell.flags"] = cell["status"], ",".join(cell["flags"])
        yield record, dict(line, axes=axes)
