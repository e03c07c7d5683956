"""Speaks the worker protocol from the parent's side, and makes bundles: a helper of the tests.

Standard library only. Written from docs/worker-protocol.md, apart from the workers that it tests.
"""
import array
import json
import mmap
import os
import random
import struct
import subprocess
import tempfile
import time

PAGE = 4096
PROTOCOL = 2
RECORDS_BYTES = 16 * 200000
HEADER = struct.Struct("<II7Q")


class Network(object):
    """Lists a network layer by layer, as the builder in graph/graph.h does."""

    def __init__(self, name, input_shape):
        self.nodes, self.values = [], []
        self.name = name
        self.value("x", "input", input_shape)
        self.last, self.shape = "x", list(input_shape)

    def value(self, name, kind, shape, dtype="F32"):
        self.values.append({"name": name, "kind": kind, "dtype": dtype, "shape": list(shape)})

    def node(self, op, name, inputs, shape, **attributes):
        outputs = [name, name + ".1"] if op == "Dropout" else [name]
        if op == "BatchNormalization":
            outputs += [name + ".1", name + ".2"]
        self.nodes.append({"name": name, "op": op, "inputs": inputs, "outputs": outputs,
                           "attributes": attributes})
        for i, output in enumerate(outputs):
            self.value(output, "activation", shape[1:2] if i and len(outputs) == 3 else shape)
        self.last, self.shape = name, list(shape)

    def conv(self, name, channels, kernel, pads=(0, 0, 0, 0), strides=(1, 1), group=1, bias=True):
        n, c, h, w = self.shape
        self.value(name + ".weight", "parameter", [channels, c // group, kernel, kernel])
        inputs = [self.last, name + ".weight"] + ([name + ".bias"] if bias else [])
        if bias:
            self.value(name + ".bias", "parameter", [channels])
        out = [(size + pads[i] + pads[i + 2] - kernel) // strides[i] + 1
               for i, size in enumerate((h, w))]
        self.node("Conv", name, inputs, [n, channels] + out,
                  kernel_shape=[kernel, kernel], strides=list(strides), pads=list(pads),
                  dilations=[1, 1], group=group)

    def pool(self, name, kernel, stride, pads=(0, 0, 0, 0), ceil=False, op="MaxPool", **more):
        n, c, h, w = self.shape
        out = []
        for i, size in enumerate((h, w)):
            room = size + pads[i] + pads[i + 2] - kernel
            steps = room // stride + 1
            out.append(steps + int(ceil and room % stride != 0 and steps * stride < size + pads[i]))
        if op == "MaxPool":
            more["dilations"] = [1, 1]
        self.node(op, name, [self.last], [n, c] + out, kernel_shape=[kernel, kernel],
                  strides=[stride, stride], pads=list(pads), ceil_mode=ceil, **more)

    def batch_norm(self, name, epsilon, momentum):
        channels = self.shape[1]
        for suffix, kind in (("scale", "parameter"), ("bias", "parameter"), ("mean", "state"),
                             ("var", "state")):
            self.value("%s.%s" % (name, suffix), kind, [channels])
        self.node("BatchNormalization", name, [self.last] + [
            "%s.%s" % (name, suffix) for suffix in ("scale", "bias", "mean", "var")],
            self.shape, epsilon=epsilon, momentum=momentum)

    def unary(self, op, name, becomes=None, **attributes):
        self.nodes.append({"name": name, "op": op, "inputs": [self.last], "outputs": [name],
                           "attributes": attributes})
        self.last, self.shape = name, list(becomes or self.shape)
        self.value(name, "activation", self.shape)

    def slice(self, name, source, axis, start, end, step=1):
        shape = next(v["shape"] for v in self.values if v["name"] == source)[:]
        shape[axis] = (end - start - 1) // step + 1
        self.node("Slice", name, [source], shape, axis=axis, start=start, end=end, step=step)

    def relu(self, name):
        self.node("Relu", name, [self.last], self.shape)

    def dropout(self, name, ratio):
        self.node("Dropout", name, [self.last], self.shape, ratio=ratio)

    def add(self, name, other, op="Add"):
        self.node(op, name, [self.last, other], self.shape)

    def flatten(self, name):
        n = self.shape[0]
        features = 1
        for dimension in self.shape[1:]:
            features *= dimension
        self.node("Flatten", name, [self.last], [n, features], axis=1)

    def linear(self, name, features, trans_b=True, alpha=1.0):
        n, width = self.shape
        shape = [features, width] if trans_b else [width, features]
        self.value(name + ".weight", "parameter", shape)
        self.value(name + ".bias", "parameter", [features])
        self.node("Gemm", name, [self.last, name + ".weight", name + ".bias"], [n, features],
                  alpha=alpha, beta=1.0, transA=False, transB=trans_b)

    def recurrent(self, op, name, source, hidden):
        """LSTM or RNN over batch x time x features, to the last state."""
        n, _, width = next(v["shape"] for v in self.values if v["name"] == source)
        rows = hidden * (4 if op == "LSTM" else 1)
        for suffix, shape in (("weight", [rows, width]), ("recurrent", [rows, hidden]),
                              ("bias", [rows])):
            self.value("%s.%s" % (name, suffix), "parameter", shape)
        self.node(op, name, [source] + [
            "%s.%s" % (name, suffix) for suffix in ("weight", "recurrent", "bias")], [n, hidden])

    def graph(self, labels=None):
        """The graph with a loss on the last value; labels: their shape where it is not one per sample."""
        logits = self.last
        self.value("y", "label", labels or [self.shape[0]], "I64")
        self.node("SoftmaxCrossEntropyLoss", "loss", [logits, "y"], [])
        inputs = [value["name"] for value in self.values if value["kind"] == "input"]
        graph = {"name": self.name, "schema": 1, "inputs": inputs, "labels": ["y"], "label": "y",
                 "logits": logits, "loss": "loss", "values": self.values, "nodes": self.nodes}
        return dict(graph, input="x") if inputs == ["x"] else graph


def lenet(batch):
    net = Network("lenet", [batch, 1, 28, 28])
    net.conv("conv1", 20, 5)
    net.pool("pool1", 2, 2)
    net.conv("conv2", 50, 5)
    net.pool("pool2", 2, 2)
    net.flatten("flat")
    net.linear("ip1", 500)
    net.relu("relu1")
    net.linear("ip2", 10)
    return net.graph()


def mlp(batch, width=512):
    net = Network("mlp", [batch, 784])
    for i in (1, 2):
        net.linear("fc%d" % i, width)
        net.relu("relu%d" % i)
        net.dropout("drop%d" % i, 0.2)
    net.linear("fc3", 10)
    return net.graph()


def small(batch):
    """Every operator, with the attributes that go wrong: groups, strides, padding that differs on
    the sides, a sum with a value that a Relu reads too, Gemm in another layout."""
    net = Network("small", [batch, 2, 9, 8])
    net.conv("c1", 4, 3, pads=(1, 0, 0, 1))
    net.relu("r1")
    net.conv("c2", 4, 3, pads=(1, 1, 1, 1), group=2)
    net.add("sum", "c1")
    net.relu("r2")
    net.pool("p1", 2, 2)
    net.conv("c3", 6, 2, strides=(2, 1))
    net.pool("p2", 2, 1, pads=(0, 0, 1, 1))
    net.flatten("flat")
    net.dropout("d1", 0.5)
    net.linear("f1", 7, trans_b=False, alpha=0.5)
    net.relu("r3")
    net.linear("f2", 5)
    return net.graph()


def normalised(batch):
    """Batch and response normalisation, averages and concatenation, and what goes wrong in them:
    momentum, epsilon, padding that counts or not, ceil_mode, an activation that overwrites."""
    net = Network("normalised", [batch, 3, 7, 6])
    net.conv("c1", 6, 3, pads=(1, 1, 1, 1), bias=False)  # its gradient would be rounding
    net.batch_norm("b1", 0.01, 0.8)
    net.relu("r1")
    net.unary("LRN", "n1", alpha=0.5, beta=0.7, bias=1.5, size=3)
    net.pool("a1", 3, 2, (1, 1, 1, 1), True, "AveragePool", count_include_pad=False)
    net.last, net.shape = "n1", [batch, 6, 7, 6]
    net.pool("a2", 3, 2, (1, 1, 1, 1), True, "AveragePool", count_include_pad=True)
    net.last, net.shape = "n1", [batch, 6, 7, 6]
    net.pool("m1", 3, 2, (0, 1, 2, 1), True)
    rows, columns = net.shape[2:]
    net.node("Concat", "cat", ["a1", "a2", "m1"], [batch, 18, rows, columns], axis=1)
    net.unary("Clip", "clip", min=-0.1, max=0.6)
    net.pool("a3", 3, 1, (0, 0, 2, 1), False, "AveragePool", count_include_pad=True)
    net.conv("c2", 4, 1, bias=False)
    net.batch_norm("b2", 1e-3, 0.9)
    net.unary("Clip", "relu6", min=0.0, max=6.0)
    net.unary("GlobalAveragePool", "mean", [batch, 4, 1, 1])
    net.flatten("flat")
    net.linear("f1", 5)
    return net.graph()


def arranged(batch):
    """Gated activations, and a channel shuffle with its slices, reshapes and transposes."""
    net = Network("arranged", [batch, 2, 6, 5])
    net.conv("c1", 4, 3)
    net.unary("Sigmoid", "gate")
    net.add("silu", "c1", "Mul")
    net.slice("left", "silu", 1, 0, 1)
    net.slice("right", "silu", 1, 1, 4)
    net.unary("HardSwish", "swish")
    net.node("Concat", "cat", ["swish", "left"], [batch, 4, 4, 3], axis=1)
    net.unary("Reshape", "groups", [batch, 2, 2, 4, 3], shape=[0, 2, 2, 4, 3])
    net.unary("Transpose", "turn", [batch, 2, 2, 4, 3], perm=[0, 2, 1, 3, 4])
    net.unary("Reshape", "shuffled", [batch, 4, 4, 3], shape=[batch, 4, 4, 3])
    net.unary("Pad", "pad", [batch, 4, 5, 4], pads=[0, 0, 1, 0, 0, 0, 0, 1], value=0.25)
    net.slice("every", "pad", 2, 1, 5, 2)
    net.unary("ReduceMean", "squeeze", [batch, 4, 1, 1], axes=[2, 3], keepdims=True)
    net.unary("HardSigmoid", "excite", alpha=0.25, beta=0.4)
    net.last, net.shape = "every", [batch, 4, 2, 4]
    net.add("scaled", "excite", "Div")
    net.unary("Tanh", "tanh")
    net.add("less", "every", "Sub")
    net.unary("Neg", "neg")
    net.unary("Softmax", "soft", axis=3)
    net.unary("Identity", "same")
    net.unary("Flatten", "flat", [batch, 32], axis=-3)
    net.batch_norm("b1", 1e-5, 0.9)
    net.linear("f1", 5)
    return net.graph()


def sequences(batch):
    """Recurrent layers over what a convolution made, so that the gradient of their input counts."""
    net = Network("sequences", [batch, 2, 4, 3])
    net.conv("c1", 4, 2)
    net.unary("Reshape", "rows", [batch, 4, 6], shape=[0, 4, 6])
    net.recurrent("LSTM", "lstm", "rows", 5)
    net.recurrent("RNN", "rnn", "rows", 3)
    net.node("Concat", "cat", ["lstm", "rnn"], [batch, 8], axis=1)
    net.linear("f1", 5)
    return net.graph()


def tagger(batch):
    """Two inputs, one of them integers that an embedding looks up, and a loss per token that ignores labels."""
    net = Network("tagger", [batch, 6])
    net.values[0]["dtype"] = "I64"
    net.value("features", "input", [batch, 6, 3])
    net.value("table", "parameter", [9, 4])
    net.node("Gather", "embedded", ["table", "x"], [batch, 6, 4], axis=0)
    net.node("Concat", "cat", ["embedded", "features"], [batch, 6, 7], axis=2)
    net.unary("Reshape", "rows", [batch * 6, 7], shape=[batch * 6, 7])
    net.linear("f1", 8)
    net.unary("Tanh", "tanh")
    net.linear("f2", 5)
    return net.graph(labels=[batch, 6])


def count(shape):
    product = 1
    for dimension in shape:
        product *= dimension
    return product


def safetensors(tensors):
    """Bytes of an image of (name, dtype, shape, bytes)."""
    entries, offset = {}, 0
    for name, dtype, shape, data in tensors:
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(entries).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return struct.pack("<Q", len(text)) + text + b"".join(t[3] for t in tensors)


def parse_safetensors(image):
    """{name: (shape, list of float)} of an image whose tensors are F32 or F64, in the order of
    their data."""
    length = struct.unpack_from("<Q", image)[0]
    header = json.loads(bytes(image[8:8 + length]).decode())
    out, data = {}, image[8 + length:]
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        values = array.array({"F32": "f", "F64": "d"}[entry["dtype"]], bytes(data[begin:end]))
        out[name] = (entry["shape"], values.tolist())
    return out


TARGET = {"device": "cpu", "backend": "", "options": [], "rank": 0, "world_size": 1}
RECIPE = {"threads": 1,
          "stage": "train", "precision": "fp32", "batch": 4, "slots": 3, "input": "resident",
          "optimiser": "momentum", "learning_rate": 0.01, "momentum": 0.9, "weight_decay": 0.0,
          "rho": 0.9, "epsilon": 1e-7, "beta1": 0.9, "beta2": 0.999, "dropout": False, "seed": 7}


CODES = {"F32": "f", "I64": "q"}


class Bundle(object):
    """A bundle in a folder, with weights and batches (lists of float) to compute with."""

    def __init__(self, folder, graph, **recipe):
        rng = random.Random(1)
        self.folder, self.graph = folder, graph
        self.shapes = shapes = {value["name"]: value["shape"] for value in graph["values"]}
        self.dtypes = {value["name"]: value["dtype"] for value in graph["values"]}
        self.target = dict(TARGET, **{key: recipe.pop(key) for key in TARGET if key in recipe})
        self.recipe = dict(RECIPE, batch=shapes["x"][0], **recipe)
        self.weights, self.states, self.batches = {}, {}, []
        for value in graph["values"]:
            if value["kind"] == "state":
                low, high = (0.8, 1.25) if value["name"].endswith(".var") else (-0.2, 0.2)
                self.states[value["name"]] = self.f32(
                    [rng.uniform(low, high) for _ in range(count(value["shape"]))])
            if value["kind"] == "parameter" and value["name"].endswith(".scale"):
                self.weights[value["name"]] = self.f32(
                    [rng.uniform(0.5, 1.5) for _ in range(count(value["shape"]))])
            elif value["kind"] == "parameter":
                scale = (2.0 / max(1, count(value["shape"][1:]))) ** 0.5
                self.weights[value["name"]] = self.f32(
                    [rng.gauss(0, scale) for _ in range(count(value["shape"]))])
        for _ in range(self.recipe["slots"]):
            self.batches.append({name: self.draw(rng, name) for name in graph["inputs"] + graph["labels"]})
        self.write()

    def draw(self, rng, name):
        """Values (list) of an input or of labels: of several labels per sample every fifth is ignored."""
        shape, graph = self.shapes[name], self.graph
        if name in graph["labels"]:
            found = [rng.randrange(self.shapes[graph["logits"]][-1]) for _ in range(count(shape))]
            return found if len(shape) == 1 else [-1 if i % 5 == 3 else v for i, v in enumerate(found)]
        if self.dtypes[name] == "I64":
            table = next(node["inputs"][0] for node in graph["nodes"] if name in node["inputs"][1:])
            return [rng.randrange(self.shapes[table][0]) for _ in range(count(shape))]
        return self.f32([rng.random() for _ in range(count(shape))])

    @staticmethod
    def f32(values):
        return array.array("f", values).tolist()

    def write(self):
        def put(name, data, mode="wb"):
            with open(os.path.join(self.folder, name), mode) as out:
                out.write(data)
        f32 = lambda values: array.array("f", values).tobytes()
        put("weights.safetensors", safetensors(
            [(name, "F32", self.shapes[name], f32(data))
             for group in (self.weights, self.states) for name, data in group.items()]))
        put("input.safetensors", safetensors(
            [("%s.%d" % (role, i) + (".%d" % k if len(names) > 1 else ""), self.dtypes[name], self.shapes[name],
              array.array(CODES[self.dtypes[name]], batch[name]).tobytes())
             for role, names in (("input", self.graph["inputs"]), ("label", self.graph["labels"]))
             for i, batch in enumerate(self.batches) for k, name in enumerate(names)]))
        put("case.json", json.dumps({
            "schema": 2, "recipe": self.recipe, "graph": self.graph, "cell": None,
            "files": {"weights": "weights.safetensors", "input": "input.safetensors"},
            "parameters": sum(len(data) for data in self.weights.values()), "macs": 0}), "w")


class Driver(object):
    """A worker process. ask(verb, ...) returns its reply and checks what every reply must keep."""

    def __init__(self, command, shared=True, tensors_bytes=4 << 20, stderr=None, ring_bytes=0,
                 stdout=None, variables=None):
        self.ring_bytes, self.ring = ring_bytes, None
        request_read, self.request_write = os.pipe()
        self.reply_read, reply_write = os.pipe()
        self.shared_fd = self.room = None
        passed = [request_read, reply_write]
        if shared:
            passed.append(self._make_shared(tensors_bytes))
        if ring_bytes:
            ready_read, self.ready = os.pipe()
            self.free, free_write = os.pipe()
            self.ring = {"ready_fd": ready_read, "free_fd": free_write}
            passed += self.ring.values()
        environment = dict(os.environ if variables is None else variables,
                           PRONY_REQUEST_FD=str(request_read),
                           PRONY_REPLY_FD=str(reply_write), PYTHONDONTWRITEBYTECODE="1")
        self.started_ns = time.monotonic_ns()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=passed,
                                        env=environment, stderr=stderr, stdout=stdout)
        for descriptor in passed:
            if descriptor != self.shared_fd:
                os.close(descriptor)
        self.requests = os.fdopen(self.request_write, "wb")
        self.replies = os.fdopen(self.reply_read, "rb")
        self.id = 0

    def _make_shared(self, tensors_bytes):
        with tempfile.TemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as out:
            self.shared_fd = os.dup(out.fileno())
        records = (RECORDS_BYTES + PAGE - 1) // PAGE * PAGE
        self.total = PAGE + records + tensors_bytes + self.ring_bytes
        self.tensors = PAGE + records
        os.ftruncate(self.shared_fd, self.total)
        self.room = mmap.mmap(self.shared_fd, self.total)
        HEADER.pack_into(self.room, 0, 0x79E0B001, PROTOCOL, self.total, PAGE, records, self.tensors,
                         tensors_bytes, PAGE + records + tensors_bytes, self.ring_bytes)
        return self.shared_fd

    def send(self, line):
        """Raw bytes as a request; the parsed reply."""
        self.requests.write(line + b"\n")
        self.requests.flush()
        reply = self.replies.readline()
        if not reply.endswith(b"\n"):
            raise EOFError("the worker ended: code %r" % self.process.wait())
        return json.loads(reply.decode())

    def ask(self, verb, **members):
        self.id += 1
        self.before_ns = time.monotonic_ns()
        reply = self.send(json.dumps(dict(members, id=self.id, verb=verb)).encode())
        self.after_ns = time.monotonic_ns()
        assert reply["id"] == self.id, reply
        for key, value in reply.items():
            if key.endswith("_ns") and not key.endswith("_at_ns"):
                assert 0 <= value <= self.after_ns - self.before_ns, (key, reply)
        return reply

    def must(self, verb, **members):
        reply = self.ask(verb, **members)
        assert reply["ok"] is True, reply
        return reply

    def greeting(self, **target):
        """Members of a hello; of the target what is not the CPU's."""
        members = dict(TARGET, protocol=PROTOCOL)
        members.update(target)
        if self.room:
            members["shared_memory"] = {"fd": self.shared_fd, "bytes": self.total}
        if self.ring:
            members["ring"] = self.ring
        return members

    def hello(self, **target):
        return self.must("hello", **self.greeting(**target))

    def prepare(self, bundle):
        """hello to feed of every slot; (hello, open, build) replies."""
        self.bundle = bundle
        greeting = self.hello(**bundle.target)
        assert self.must("supports", bundle=bundle.folder)["supported"] is True
        opened = self.must("open", bundle=bundle.folder)
        built = self.must("build")
        for slot in range(0 if self.ring else bundle.recipe["slots"]):
            self.must("feed", slot=slot, batch=slot)
        return greeting, opened, built

    def run(self, steps, sync="end", slot=0, **members):
        """List of (begin, end) of a run, checked against the reply and our own clock."""
        reply = self.must("run", steps=steps, sync=sync, slot=slot, **members)
        size = 16 * reply["records"]
        if self.room:
            data = self.room[PAGE:PAGE + size]
        else:
            with open(os.path.join(self.bundle.folder, "records.bin"), "rb") as source:
                data = source.read()
        assert len(data) == size and reply["steps"] == steps, reply
        self.reply = reply
        flat = array.array("q", data).tolist()
        records = list(zip(flat[::2], flat[1::2]))
        assert records[0][0] == reply["begin_at_ns"] and records[-1][1] == reply["end_at_ns"]
        assert self.before_ns <= flat[0] and flat[-1] <= self.after_ns
        assert all(a <= b for a, b in zip(flat, flat[1:])), "instants go backwards"
        assert flat[2::2] == flat[1:-1:2], "a record begins where the last ended"
        return records

    def read(self, what):
        """{name: (shape, list of float)}."""
        size = self.must("read", what=what)["bytes"]
        if self.room:
            return parse_safetensors(self.room[self.tensors:self.tensors + size])
        with open(os.path.join(self.bundle.folder, "read.safetensors"), "rb") as source:
            image = source.read()
        assert len(image) == size
        return parse_safetensors(image)

    def close(self):
        """Asks it to close; its exit code."""
        self.must("close")
        return self.finish()

    def end(self):
        """Ends the process and gives its descriptors back, whatever state it is in."""
        self.process.kill()
        for stream in (self.requests, self.replies):
            try:
                stream.close()
            except OSError:
                pass  # what was still to be sent has no reader
        self.process.wait()
        if self.shared_fd is not None:
            os.close(self.shared_fd)
            self.shared_fd = None

    def finish(self):
        self.requests.close()
        try:
            return self.process.wait(timeout=120)
        finally:
            self.process.kill()
            self.process.wait()
            self.replies.close()
            if self.shared_fd is not None:
                os.close(self.shared_fd)
                self.shared_fd = None
