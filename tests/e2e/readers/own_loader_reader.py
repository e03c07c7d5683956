"""Compares the batches of an adapter's own loader with the case's first batch, or with its batches of another
case: prints the largest and the mean difference of values and whether labels are the same.

    own_loader_reader.py PYTHON_FOLDER ADAPTER BUNDLE [OTHER_BUNDLE]
"""
import importlib
import json
import sys

sys.path.insert(0, sys.argv[1])

import adapters  # noqa: E402
import own_loader  # noqa: E402
from case import Case  # noqa: E402

TARGET = adapters.target = adapters.Target("cpu", "", [], 0, 1)
MODULE = importlib.import_module("adapters.%s_data" % sys.argv[2])


def flat(value):
    """List of floats of nested lists."""
    if not isinstance(value, list):
        return [float(value)]
    return [number for part in value for number in flat(part)]


def loaded(case):
    """(values, labels) of the first batch by the adapter's loader."""
    data = own_loader.Data(case)
    classes = [case.shape(case.graph["logits"])[1]] if sys.argv[2] == "cntk" else []
    batches = MODULE.loader(data, *classes)  # whose arrays these may be
    x, y = next(batches)
    if sys.argv[2] == "cntk":
        x, y = x.asarray(), y.asarray().argmax(1)
    if sys.argv[2] == "tensorflow":
        x, y = x.numpy(), y.numpy()
        if x.ndim == 4:
            x = x.transpose(0, 3, 1, 2)
    return flat(x.tolist()), flat(y.tolist())


def stored(case):
    (values,), (labels,) = case.batch(0)
    return values.data.cast("B").cast("f").tolist(), flat(labels.data.cast("B").cast("q").tolist())


def main():
    case = Case(sys.argv[3], TARGET)
    x, y = loaded(case)
    wanted, labels = loaded(Case(sys.argv[4], TARGET)) if len(sys.argv) > 4 else stored(case)
    apart = [abs(a - b) for a, b in zip(x, wanted)]
    print(json.dumps({"values": len(x) == len(wanted), "largest": max(apart),
                      "mean": sum(apart) / len(apart), "labels": y == labels}))


if __name__ == "__main__":
    main()
