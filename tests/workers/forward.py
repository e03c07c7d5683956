#!/usr/bin/env python3
"""A worker in a hundred lines: the forward pass of networks of Gemm and Relu in plain Python, by docs/worker-protocol.md."""
import array, json, math, os, struct, time
from operator import mul

now, place, folder, recipe, graph, values, slots = time.monotonic_ns, "new", "", {}, {}, {}, {}
THEN = {"hello": "greeted", "open": "opened", "build": "built", "run": "ran"}
MAY = {"hello": "new", "supports": "greeted", "open": "greeted", "build": "opened", "feed": "built ran",
       "run": "built ran", "read": "built ran", "close": "new greeted opened built ran failed"}
def need(condition, why, status="invalid"):
    if not condition:
        raise RuntimeError(status, why)
def load(name):  # every tensor of a safetensors file, as rows of its last dimension
    with open(os.path.join(folder, name), "rb") as file:
        image, rows = file.read(), {}
    start = 8 + struct.unpack_from("<Q", image)[0]
    for key, row in json.loads(image[8:start]).items():
        if row.get("dtype") == "F32":
            flat = array.array("f", image[slice(*[start + at for at in row["data_offsets"]])])
            rows[key] = [flat[at:at + row["shape"][-1]] for at in range(0, len(flat), row["shape"][-1])]
    return rows
def case(request):
    global folder, recipe, graph
    folder = request["bundle"]
    with open(os.path.join(folder, "case.json"), encoding="utf-8") as file:
        document = json.load(file)
    recipe, graph = document["recipe"], document["graph"]
    odd = {node["op"] for node in graph["nodes"]} - {"Gemm", "Relu", "Dropout", "SoftmaxCrossEntropyLoss"}
    odd |= {recipe["stage"], recipe["precision"]} - {"forward", "fp32"}
    return {"supported": not odd, "reason": "none of " + " ".join(sorted(odd))}
def step(slot):
    values[graph["input"]] = slots[slot]
    for node in graph["nodes"]:
        x, *rest = [values.get(name) for name in node["inputs"]]
        if node["op"] == "Gemm":  # y = x W' + b
            x = [[sum(map(mul, row, unit)) + bias for unit, bias in zip(rest[0], rest[1][0])] for row in x]
        elif node["op"] == "Relu":
            x = [[max(v, 0.0) for v in row] for row in x]
        values[node["outputs"][0]] = x
def hello(q):
    need([type(q[key]) for key in ("protocol", "device", "backend", "options", "rank", "world_size")]
         == [int, str, str, list, int, int] and q["protocol"] == 2 and q["device"][:1].isalpha()
         and all(type(word) is str for word in q["options"]) and 0 <= q["rank"] < q["world_size"], "a wrong hello")
    need((q["device"], q["backend"], q["options"], q["world_size"]) == ("cpu", "", [], 1), "the CPU alone", "unsupported")
    return {"protocol": 2, "name": "mine", "version": "1.0", "libraries": {}, "devices": ["cpu"], "precisions": ["fp32"],
            "stages": ["forward"], "shared_memory": False, "rank": 0, "world_size": 1, "import_ns": 0}
def open_case(q):
    can = case(q)
    need(can["supported"], can["reason"], "unsupported")
    return {"device": "cpu", "threads": recipe["threads"], "precision": "fp32", "open_ns": 0}
def build(q):
    values.update(load("weights.safetensors"))
    return {"parameters": sum(len(rows) * len(rows[0]) for rows in values.values()), "macs": None, "build_ns": 0}
def feed(q):
    batch = load("input.safetensors").get("input.%d" % q["batch"])
    need(q["slot"] in range(recipe["slots"]) and batch, "no such slot or batch")
    slots[q["slot"]] = batch
    return {"feed_ns": 0}
def run(q):
    steps, first, count, records, begin = q["steps"], q["slot"], recipe["slots"], array.array("q"), now()
    every = {"end": steps, "step": 1, "blocks": q.get("every", 0)}.get(q["sync"], 0)
    need(steps > 0 and every > 0 and first in range(count)
         and all((first + i) % count in slots for i in range(min(steps, count))), "no such run")
    for i in range(1, steps + 1):
        step((first + i - 1) % count)
        if i % every == 0 or i == steps:
            records.extend((begin, now()))
            begin = records[-1]
    with open(os.path.join(folder, "records.bin"), "wb") as file:
        records.tofile(file)
    return {"steps": steps, "records": len(records) // 2, "begin_at_ns": records[0], "end_at_ns": records[-1]}
def read(q):
    kinds = {"weights": "parameter", "state": "state"}
    need(q["what"] in kinds or q["what"] == "logits" and place == "ran", "nothing of the kind to read")
    names = [v["name"] for v in graph["values"] if v["kind"] == kinds.get(q["what"])] or [graph["logits"]][:q["what"] == "logits"]
    header, data = {}, b""
    shapes = {v["name"]: v["shape"] for v in graph["values"]}
    for name in names:
        body = b"".join(array.array("f", row).tobytes() for row in values[name])
        header["logits" if q["what"] == "logits" else name] = {
            "dtype": "F32", "shape": shapes[name], "data_offsets": [len(data), len(data) + len(body)]}
        data += body
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "read.safetensors"), "wb") as file:
        return {"bytes": file.write(struct.pack("<Q", len(text)) + text + data)}
VERBS = {"hello": hello, "supports": case, "open": open_case, "build": build, "feed": feed, "run": run, "read": read}
with open(int(os.environ["PRONY_REQUEST_FD"]), "rb") as requests, open(int(os.environ["PRONY_REPLY_FD"]), "wb", 0) as replies:
    for line in requests:
        q, reply = {}, {}
        try:
            q = json.loads(line.decode())
            need(place in MAY[q["verb"]].split(), q["verb"] + " does not come here")
            reply = dict(VERBS.get(q["verb"], dict)(q) if q["verb"] != "close" else {}, ok=True)
            place = THEN.get(q["verb"], place)
        except Exception as error:  # whatever it is: one reply to a line
            status, why = error.args if type(error) is RuntimeError else ("invalid", repr(error))
            reply, place = {"ok": False, "status": status, "error": why}, place if status == "invalid" else "failed"
        q = q if isinstance(q, dict) else {}
        replies.write(json.dumps(dict(reply, id=q.get("id"))).encode() + b"\n")
        if q.get("verb") == "close":
            break
