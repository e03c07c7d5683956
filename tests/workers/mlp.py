#!/usr/bin/env python3
"""A worker that trains the network mlp in plain Python and refuses every other one:
docs/worker-protocol.md with the bundle's files in place of shared memory. Computes in double
precision from F32 and gives F32 back, so that it passes the gate; it is no match for anybody."""
import array
import json
import math
import os
import random
import struct
import sys
import time
from operator import mul

NAME = sys.argv[1] if len(sys.argv) > 1 else "mlp"
OPERATORS = ["Gemm", "Relu", "Gemm", "Relu", "Gemm", "SoftmaxCrossEntropyLoss"]
STAGES = ["forward", "forward-backward", "train"]
now = time.monotonic_ns
folder, recipe, parameters = "", {}, {}  # the case; name -> shape
weights, speed, gradients, slots, last = {}, {}, {}, {}, {}  # a parameter is a list of rows
MAY = {"hello": "new", "supports": "greeted", "open": "greeted", "build": "opened", "feed": "built ran",
       "run": "built ran", "read": "built ran", "close": "new greeted opened built ran failed"}
THEN = {"hello": "greeted", "open": "opened", "build": "built", "run": "ran"}
place = "new"


class Refusal(Exception):
    pass


def need(condition, why, status="invalid"):
    if not condition:
        raise Refusal(status, why)


def load(name):
    """Every tensor of a safetensors file, as an array."""
    with open(os.path.join(folder, name), "rb") as file:
        image = file.read()
    start = 8 + struct.unpack_from("<Q", image)[0]
    rows = json.loads(image[8:start])
    return {key: array.array("f" if row["dtype"] == "F32" else "q",
                             image[slice(*[start + at for at in row["data_offsets"]])])
            for key, row in rows.items() if key != "__metadata__"}


def matrix(flat, width):
    return [list(flat[at:at + width]) for at in range(0, len(flat), width)]


def read_case(request):
    global folder, recipe, parameters
    folder = request["bundle"]
    with open(os.path.join(folder, "case.json"), encoding="utf-8") as file:
        document = json.load(file)
    recipe, graph = document["recipe"], document["graph"]
    parameters = {value["name"]: value["shape"] for value in graph["values"]
                  if value["kind"] == "parameter"}
    if [node["op"] for node in graph["nodes"] if node["op"] != "Dropout"] != OPERATORS:
        return "only the network mlp"
    plain = recipe["optimiser"] in ("sgd", "momentum") and not recipe["weight_decay"]
    return "" if plain and recipe["precision"] == "fp32" else "only fp32, sgd and momentum"


def step(slot):
    x, labels = slots[slot]
    training, rate = recipe["stage"] != "forward", 0.2
    rate = rate if training and recipe["dropout"] else 0.0
    inputs, masks, h = [], [], x
    for layer in "123":
        inputs.append(h)
        units = list(zip(weights["fc%s.weight" % layer], weights["fc%s.bias" % layer][0]))
        h = [[sum(map(mul, row, unit)) + bias for unit, bias in units] for row in h]
        if layer != "3":
            masks.append([[(v > 0) * (random.random() >= rate) / (1 - rate) for v in row]
                          for row in h])
            h = [list(map(mul, row, mask)) for row, mask in zip(h, masks[-1])]
    odds = [[math.exp(v - max(row)) for v in row] for row in h]
    chances = [[v / sum(row) for v in row] for row in odds]
    last["logits"] = h
    last["loss"] = [[-sum(math.log(row[k]) for row, k in zip(chances, labels)) / len(h)]]
    if training:
        learn([[(v - (j == k)) / len(h) for j, v in enumerate(row)]
               for row, k in zip(chances, labels)], inputs, masks)


def learn(d, inputs, masks):
    """From the gradient of the logits to those of all parameters, and to the update."""
    for layer in (3, 2, 1):
        columns = list(zip(*inputs[layer - 1]))
        gradients["fc%d.weight" % layer] = [[sum(map(mul, g, c)) for c in columns] for g in zip(*d)]
        gradients["fc%d.bias" % layer] = [[sum(g) for g in zip(*d)]]
        units = list(zip(*weights["fc%d.weight" % layer]))
        if layer > 1:
            d = [[m and m * sum(map(mul, g, unit)) for unit, m in zip(units, mask)]
                 for g, mask in zip(d, masks[layer - 2])]
    if recipe["stage"] != "train":
        return
    keep = recipe["momentum"] if recipe["optimiser"] == "momentum" else 0.0
    for name, rows in weights.items():
        speed[name] = [[keep * v + g for v, g in zip(*pair)]
                       for pair in zip(speed[name], gradients[name])]
        weights[name] = [[w - recipe["learning_rate"] * v for w, v in zip(*pair)]
                         for pair in zip(rows, speed[name])]


def hello(request):
    device, backend, options = (request[key] for key in ("device", "backend", "options"))
    rank, size = request["rank"], request["world_size"]
    need(request["protocol"] == 2, "this is protocol 2")
    need([*map(type, (device, backend, options, rank, size))] == [str, str, list, int, int],
         "a member of hello is of another type")
    need(device[:1].isalpha() and all(type(word) is str for word in options), "no such words")
    need(0 <= rank < size, "rank is outside the world")
    need(device == "cpu" and size == 1 and not backend and not options,
         "there is the CPU alone, no backend and no option", "unsupported")
    return {"protocol": request["protocol"], "name": NAME, "version": "1.0", "libraries": {},
            "devices": ["cpu"], "precisions": ["fp32"], "stages": STAGES, "shared_memory": False,
            "rank": 0, "world_size": 1, "import_ns": 0}


def supports(request):
    why = read_case(request)
    return {"supported": False, "reason": why} if why else {"supported": True}


def open_case(request):
    why = read_case(request)
    need(not why, why, "unsupported")
    return {"device": "cpu", "threads": recipe["threads"], "precision": "fp32", "open_ns": 0}


def build(_):
    need(recipe, "build before open")
    tensors = load("weights.safetensors")
    for name in parameters:
        weights[name] = matrix(tensors[name], parameters[name][-1])
        speed[name] = [[0.0] * parameters[name][-1] for _ in weights[name]]
    gradients.update((name, []) for name in parameters)  # in the graph's order
    return {"parameters": sum(map(math.prod, parameters.values())), "macs": None, "build_ns": 0}


def feed(request):
    need(weights, "feed before build")
    need(0 <= request["slot"] < recipe["slots"], "no such slot")
    tensors, width = load("input.safetensors"), parameters["fc1.weight"][1]
    x, y = [tensors.get("%s.%d" % (name, request["batch"])) for name in ("input", "label")]
    need(x is not None, "no such batch")
    slots[request["slot"]] = matrix(x, width), y
    return {"feed_ns": 0}


def run(request):
    steps, slot, count = request["steps"], request["slot"], recipe.get("slots", 0)
    every = {"end": steps, "step": 1, "blocks": request.get("every", 0)}.get(request["sync"], 0)
    need(weights and steps > 0 and every > 0, "not a run")
    need(0 <= slot < count, "no such slot")
    need(all((slot + i) % count in slots for i in range(min(steps, count))), "run before feed")
    records, begin = array.array("q"), now()
    for i in range(steps):
        step((slot + i) % count)
        if (i + 1) % every == 0 or i + 1 == steps:
            end = now()
            records.extend((begin, end))
            begin = end
    with open(os.path.join(folder, "records.bin"), "wb") as file:
        records.tofile(file)
    return {"steps": steps, "records": len(records) // 2, "begin_at_ns": records[0],
            "end_at_ns": records[-1]}


def read(request):
    what, sets = request["what"], {"weights": weights, "gradients": gradients, "state": {}}
    need(what in sets or what in ("logits", "loss"), "cannot read that")
    need(weights and (what in ("weights", "state") or last), "read before run")
    header, data = {}, b""
    for name, rows in ({what: last[what]} if what in last else sets[what]).items():
        shape = [] if what == "loss" else parameters.get(name, [len(rows), len(rows[0])])
        body = b"".join(array.array("f", row).tobytes() for row in rows)
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(body)]}
        data += body
    text = json.dumps(header).encode()
    image = struct.pack("<Q", len(text)) + text + data
    with open(os.path.join(folder, "read.safetensors"), "wb") as file:
        file.write(image)
    return {"bytes": len(image)}


VERBS = {"hello": hello, "supports": supports, "open": open_case, "build": build, "feed": feed,
         "run": run, "read": read, "close": lambda request: {}}
with open(int(os.environ["PRONY_REQUEST_FD"]), "rb") as requests, \
        open(int(os.environ["PRONY_REPLY_FD"]), "wb") as replies:
    for line in requests:
        request = {}
        try:
            request = json.loads(line.decode())
            verb = request["verb"]
            need(place in MAY[verb].split(), "%s does not come here" % verb)
            reply = {**VERBS[verb](request), "ok": True}
            place = THEN.get(verb, place)
        except Exception as error:  # whatever it is: one reply to a line
            status, why = error.args if isinstance(error, Refusal) else ("invalid", repr(error))
            reply = {"ok": False, "status": status, "error": str(why)}
            place = place if status == "invalid" else "failed"
        known = isinstance(request, dict)
        replies.write(json.dumps({**reply, "id": request.get("id") if known else None}).encode())
        replies.write(b"\n")
        replies.flush()
        if known and request.get("verb") == "close":
            break
