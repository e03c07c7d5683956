"""What the oracles share: safetensors files, the interpreter as a program, and how two sets of
results are compared. The caller's framework is somebody else's business: arrays here are NumPy's."""
import json
import os
import struct
import subprocess
import tempfile

import numpy

DTYPES = {"F32": numpy.float32, "F64": numpy.float64, "I64": numpy.int64}


def write_safetensors(path, arrays):
    header, offset = {}, 0
    names = {numpy.dtype(dtype): name for name, dtype in DTYPES.items()}
    for name, array in arrays.items():
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for array in arrays.values():
            file.write(numpy.ascontiguousarray(array).tobytes())


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    arrays = {}
    for name, row in header.items():
        if name != "__metadata__":
            begin, end = row["data_offsets"]
            arrays[name] = numpy.frombuffer(data[begin:end], DTYPES[row["dtype"]]
                                            ).reshape(row["shape"])
    return arrays


class Oracle:
    """Our network NAME for a batch, at its own input size or another one."""

    def __init__(self, name, batch, size=None):
        program = os.environ.get("PRONY_ORACLE")
        if not program:
            raise SystemExit("PRONY_ORACLE must name the program tests/oracles/oracle of a build")
        self.command = [program, name, str(batch)] + ([str(size), str(size)] if size else [])
        self.weights = json.loads(subprocess.run(self.command + ["describe"], check=True,
                                                 stdout=subprocess.PIPE).stdout)

    def run(self, weights, batch, labels):
        """`weights` maps names to arrays, as does `batch` where there are several inputs, which keep
        their types. Returns what oracle.c writes."""
        arrays = {name: numpy.asarray(array, numpy.float32) for name, array in weights.items()}
        if isinstance(batch, dict):
            arrays.update(batch)
        else:
            arrays["input"] = numpy.asarray(batch, numpy.float32)
        arrays["label"] = numpy.asarray(labels, numpy.int64)
        with tempfile.TemporaryDirectory() as folder:
            given, made = os.path.join(folder, "in"), os.path.join(folder, "out")
            write_safetensors(given, arrays)
            subprocess.run(self.command + ["run", given, made], check=True)
            return read_safetensors(made)


def logits_difference(ours, theirs):
    """Largest difference over the root mean square of theirs."""
    theirs = numpy.asarray(theirs, numpy.float64)
    return float(numpy.abs(ours - theirs).max() / numpy.sqrt((theirs ** 2).mean()))


def tensor_difference(ours, theirs):
    """Norm of the difference over the norm of theirs."""
    theirs = numpy.asarray(theirs, numpy.float64)
    return float(numpy.linalg.norm(ours - theirs) / numpy.linalg.norm(theirs))


def compare(ours, theirs):
    """Both as oracle.c names results. The largest difference of each kind, and in which tensor."""
    missing = set(theirs) ^ set(ours)
    if missing:
        raise SystemExit(f"only one side has {sorted(missing)}")
    found = {"evaluation": (logits_difference(ours["evaluation"], theirs["evaluation"]), ""),
             "logits": (logits_difference(ours["logits"], theirs["logits"]), ""),
             "loss": (tensor_difference(ours["loss"], theirs["loss"]), "")}
    for kind in ("gradient", "state"):
        rows = [(tensor_difference(ours[name], theirs[name]), name)
                for name in theirs if name.startswith(kind + "/")]
        if rows:
            found[kind] = max(rows)
    return found


def keep(network, against, precision, found):
    """Appends the figures to the file that PRONY_ORACLE_FIGURES names; tables.py takes them up."""
    if "PRONY_ORACLE_FIGURES" in os.environ:
        row = {"network": network, "against": against, "precision": precision,
               **{kind: float(f"{value:.1e}") for kind, (value, _) in found.items()}}
        with open(os.environ["PRONY_ORACLE_FIGURES"], "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def report(network, size, against, precision, found, bounds):
    """Prints a row; True if every figure is within its bound. Figures without a bound are only shown."""
    keep(network, against, precision, found)
    cells = [f"{network:15} {size:>4} {precision:8}"]
    good = True
    for kind in ("evaluation", "logits", "loss", "gradient", "state"):
        if kind not in found:
            cells.append(f"{kind} -")
            continue
        value, where = found[kind]
        within = kind not in bounds or value <= bounds[kind]  # false for NaN
        good = good and within
        cells.append(f"{kind} {value:.1e}" + ("" if within else f" > {bounds[kind]:.0e} {where}"))
    print("  ".join(cells), flush=True)
    return good
