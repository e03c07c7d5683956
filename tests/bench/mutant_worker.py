#!/usr/bin/env python3
"""A worker that computes something other than requested: `mutant_worker.py NAME MUTATION COMMAND...` starts
the worker COMMAND, passes requests and replies on, and gives it a copy of the case with one
mutation. A case without a place for the mutation is refused. For random_mutants.py."""
import array
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

WEIGHTS = "weights.safetensors"
TF32_DROPS = 13  # of the 24 bits of a float32's significand


class NoPlace(Exception):
    pass


def nodes(case, operator, wanted=lambda attributes: True):
    """The attributes of the first wanted node."""
    for node in case["graph"]["nodes"]:
        if node["op"] == operator and wanted(node["attributes"]):
            return node["attributes"]
    raise NoPlace("no %s to change" % operator)


def set_number(operator, member, factor):
    def change(case, _):
        attributes = nodes(case, operator)
        attributes[member] *= factor
    return change


def rate(case, _):
    case["recipe"]["learning_rate"] *= 1.01


def momentum(case, _):
    case["recipe"]["momentum"] = 0.0


def padding(case, _):
    """Exchanges begins and ends: the sizes stay."""
    for node in case["graph"]["nodes"]:
        pads = node["attributes"].get("pads", [])
        half = len(pads) // 2
        if node["op"] in ("Conv", "MaxPool", "AveragePool") and pads[:half] != pads[half:]:
            node["attributes"]["pads"] = pads[half:] + pads[:half]
            return
    raise NoPlace("no padding to change")


def included(case, _):
    attributes = nodes(case, "AveragePool", lambda a: any(a["pads"]))
    attributes["count_include_pad"] = not attributes["count_include_pad"]


def other_function(case, _):
    for node in case["graph"]["nodes"]:
        if node["op"] in ("Tanh", "Sigmoid"):
            node["op"] = "Sigmoid" if node["op"] == "Tanh" else "Tanh"
            return
    raise NoPlace("no function to change")


def matrices(case):
    return [value["name"] for value in case["graph"]["values"]
            if value["kind"] == "parameter" and len(value["shape"]) > 1]


def channels(case, weights):
    for value in case["graph"]["values"]:
        shape = value.get("shape", [])
        if value["kind"] == "parameter" and len(shape) > 1 and shape[1] > 1:
            data, plane = weights[value["name"]], 1
            for size in shape[2:]:
                plane *= size
            for at in range(0, len(data), plane * shape[1]):
                first, second = data[at:at + plane], data[at + plane:at + 2 * plane]
                data[at:at + plane], data[at + plane:at + 2 * plane] = second, first
            return
    raise NoPlace("no two channels to change")


def scaled(case, weights):
    data = weights[matrices(case)[-1]]
    data[0] *= 1.01


def rounded(case, weights):
    for name in matrices(case):
        data = weights[name]
        bits = array.array("I", data.tobytes())
        half = 1 << TF32_DROPS - 1
        for i, word in enumerate(bits):
            bits[i] = (word + half) >> TF32_DROPS << TF32_DROPS & 0xffffffff
        data[:] = array.array("f", bits.tobytes())


MUTATIONS = {"rate": rate, "momentum": momentum, "padding": padding, "included": included,
             "function": other_function, "channels": channels, "scaled": scaled, "rounded": rounded,
             "epsilon": set_number("BatchNormalization", "epsilon", 100),
             "lrn": set_number("LRN", "alpha", 1.1), "slope": set_number("LeakyRelu", "alpha", 1.01),
             "elu": set_number("Elu", "alpha", 1.01)}


def mutated(folder, mutation, target):
    """A copy of the bundle with the mutation, below `target`."""
    copy = os.path.join(target, "case")
    if os.path.isdir(copy):
        return copy
    with open(os.path.join(folder, "case.json"), encoding="utf-8") as stream:
        case = json.load(stream)
    with open(os.path.join(folder, WEIGHTS), "rb") as stream:
        image = stream.read()
    start = 8 + struct.unpack_from("<Q", image)[0]
    rows = {name: row["data_offsets"] for name, row in json.loads(image[8:start]).items()
            if name != "__metadata__" and row["dtype"] == "F32"}
    weights = {name: array.array("f", image[start + at:start + end])
               for name, (at, end) in rows.items()}
    MUTATIONS[mutation](case, weights)
    shutil.copytree(folder, copy)
    image = bytearray(image)
    for name, (at, end) in rows.items():
        image[start + at:start + end] = weights[name].tobytes()
    for name, data in ((WEIGHTS, bytes(image)), ("case.json", json.dumps(case).encode())):
        os.unlink(os.path.join(copy, name))  # the file may be a link that others share
        with open(os.path.join(copy, name), "wb") as stream:
            stream.write(data)
    return copy


def serve(name, mutation, command, target):
    requests = os.fdopen(int(os.environ["PRONY_REQUEST_FD"]), "r", encoding="utf-8")
    replies = os.fdopen(int(os.environ["PRONY_REPLY_FD"]), "w", encoding="utf-8")
    (to_read, to_write), (back_read, back_write) = os.pipe(), os.pipe()
    for end in (to_read, back_write):
        os.set_inheritable(end, True)
    child = subprocess.Popen(command, close_fds=False, env={
        **os.environ, "PRONY_REQUEST_FD": str(to_read), "PRONY_REPLY_FD": str(back_write)})
    os.close(to_read)
    os.close(back_write)
    with os.fdopen(to_write, "w", encoding="utf-8") as to, \
            os.fdopen(back_read, "r", encoding="utf-8") as back:
        for line in requests:
            request = json.loads(line)
            try:
                if "bundle" in request:
                    request["bundle"] = mutated(request["bundle"], mutation, target)
            except NoPlace as why:
                reply = {"id": request["id"], "ok": True, "supported": False, "reason": str(why)}
            else:
                print(json.dumps(request), file=to, flush=True)
                reply = json.loads(back.readline())
            if request["verb"] == "hello" and reply["ok"]:
                reply["name"] = name
            print(json.dumps(reply), file=replies, flush=True)
    return child.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="prony-mutant-") as place:
        status = serve(sys.argv[1], sys.argv[2], sys.argv[3:], place)
    sys.exit(status)
