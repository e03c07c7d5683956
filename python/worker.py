"""The worker of frameworks with a Python interface, which answers the requests of docs/worker-protocol.md.

`python3 worker.py --adapter NAME` runs under Python 3.6 to 3.13 with the standard library only. The timed part
is `timed_loop`, or the framework's own loop in `marked_loop`."""
import array
import atexit
import functools
import gc
import importlib
import json
import mmap
import os
import struct
import sys
import time

import adapters
import batch_ring
import own_loader
import safetensors_io
from case import Case
from errors import WorkerError

PROTOCOL = 2
LINE_BYTES_MAX = 1 << 20
ERROR_CHARACTERS_MAX = 2000
SHARED_MAGIC = 0x79E0B001
SHARED_HEADER = struct.Struct("<II7Q")
FIT = "fit"  # the option that runs steps in the framework's own loop
PROFILE_STEPS_MAX = 100000
READOUTS = ("logits", "loss", "weights", "gradients", "state")

if hasattr(time, "monotonic_ns"):
    now = time.monotonic_ns
else:
    def now():
        """Python 3.6: a double holds nanoseconds exactly for the first 104 days of uptime."""
        return int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e9)


def timed_loop(step, sync, now, blocks, slot, following, records):
    """Runs blocks of steps and records when each began and ended.

    blocks: list of int, steps in each block; following: list, the slot after each slot; records:
    array of 2 x len(blocks) signed 64-bit times to fill. Nothing else happens here."""
    index = 0
    sync()
    begin = now()
    for block in blocks:
        for _ in range(block):
            step(slot)
            slot = following[slot]
        sync()
        end = now()
        records[index] = begin
        records[index + 1] = end
        index += 2
        begin = end


def marked_loop(fit, now, blocks, slot, records):
    """Runs blocks by the framework's own loop: fit(blocks, slot, mark) calls mark when a block begins and when
    it has ended."""
    count = [0]

    def mark():
        records[count[0]] = now()
        count[0] += 1
    fit(blocks, slot, mark)
    if count[0] != len(records):
        raise WorkerError("crashed", "the framework's loop ran %d of %d blocks"
                          % (count[0] // 2, len(blocks)))


def load_adapter(name):
    """Imports an adapter, and with it its framework; `name` is a name in adapters/ or the path of a file."""
    if not name.endswith(".py"):
        return importlib.import_module("adapters." + name)
    from importlib import util
    spec = util.spec_from_file_location(os.path.basename(name)[:-3] + "_adapter", name)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class SharedMemory(object):
    """The memory that the parent offered; regions are (offset, bytes): records, tensors and ring."""

    def __init__(self, fd, size):
        os.set_inheritable(fd, False)
        try:
            self.room = mmap.mmap(fd, size)
        except (OSError, ValueError) as error:
            raise WorkerError("invalid", "shared memory of %d bytes: %s" % (size, error))
        if size < SHARED_HEADER.size:
            raise WorkerError("invalid", "shared memory of %d bytes is too small for its header" % size)
        header = SHARED_HEADER.unpack_from(self.room)
        if header[:2] != (SHARED_MAGIC, PROTOCOL) or header[2] > size:
            raise WorkerError("invalid", "shared memory: magic 0x%08X, version %d, %d of %d bytes"
                              % (header[0], header[1], header[2], size))
        self.records, self.tensors, self.ring = header[3:5], header[5:7], header[7:9]
        for offset, length in (self.records, self.tensors, self.ring):
            if offset + length > size:
                raise WorkerError("invalid", "shared memory: a region extends beyond its end")

    def check(self, region, size, what):
        """Raises WorkerError if `size` bytes of `what` do not fit into a region."""
        if size > region[1]:
            raise WorkerError("invalid", "%s need %d bytes, but shared memory has room for %d"
                              % (what, size, region[1]))


def mxcsr():
    """The SSE control word of this thread (flush to zero, denormals are zero); None on other processors than
    x86-64, where glibc's fegetenv(3) stores it at byte 28."""
    if os.uname().machine != "x86_64":
        return None
    import ctypes
    environment = (ctypes.c_uint32 * 8)()
    ctypes.CDLL("libm.so.6").fegetenv(environment)
    return environment[7]


def freeze_garbage():
    """Collects garbage and excludes the objects that now exist from later collections."""
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()


class Worker(object):
    """One method per verb, which takes the request (dict) and returns the members of the reply (dict)."""

    # The states in which each verb is allowed (docs/worker-protocol.md, "States").
    STATES = {"hello": ("new",), "supports": ("greeted",), "open": ("greeted",),
              "build": ("opened",), "feed": ("built", "ran"), "run": ("built", "ran"),
              "read": ("built", "ran"), "profile": ("ran",),
              "close": ("new", "greeted", "opened", "built", "ran", "failed")}

    def __init__(self, adapter_name):
        self.adapter_name = adapter_name
        self.adapter = self.shared = self.ring = self.arriving = self.case = None
        self.state = "new"
        self.fed = set()
        self.profiled = False

    def hello(self, request):
        if request.get("protocol") != PROTOCOL:
            raise WorkerError("invalid", "protocol %r is not supported: this worker speaks %d"
                              % (request.get("protocol"), PROTOCOL))
        self.profiled = request.get("profile", False)
        if type(self.profiled) is not bool:
            raise WorkerError("invalid", "hello: profile must be true or false")
        offered = request.get("shared_memory")
        if offered:
            self.shared = SharedMemory(offered["fd"], offered["bytes"])
        if self.shared and request.get("ring"):
            self.ring = batch_ring.Ring(request["ring"])
        adapters.target = self.target = target_of(request)
        begin = now()
        try:
            module = load_adapter(self.adapter_name)
        except (ImportError, OSError) as error:
            raise WorkerError("missing", "adapter %s cannot be loaded under Python %d.%d: %s; "
                                         "'prony doctor' checks it, 'prony framework install' repairs prony's"
                              % ((self.adapter_name,) + sys.version_info[:2] + (error,)))
        import_ns = now() - begin
        self.adapter = module.Adapter()
        reply = {"protocol": PROTOCOL, "shared_memory": self.shared is not None,
                 "rank": self.target.rank, "world_size": self.target.world_size,
                 "import_ns": import_ns, "profiles": self.profiles()}
        if self.adapter.no_layers:
            reply["no_layers"] = self.adapter.no_layers
        if self.target.world_size > 1:
            reply["collectives"] = self.adapter.collectives
        reply.update(self.adapter.hello())
        self.check_target(reply["devices"])
        self.state = "greeted"
        return reply

    def profiles(self):
        """List of str: the kinds of profile that this worker supports."""
        return ([] if self.adapter.no_layers else ["layers"]) + ["lines"]

    def check_target(self, devices):
        """Raises WorkerError if the adapter does not have hello's backend, device or options."""
        target, adapter = self.target, self.adapter
        if target.world_size > 1 and not adapter.collectives:
            raise WorkerError("unsupported", "world_size %d: adapter %s has no data parallel training"
                              % (target.world_size, self.adapter_name))
        asked = [("backend", target.backend, adapter.backends), ("device", target.device, devices)]
        asked += [("option", word, adapter.options) for word in target.options]
        for kind, word, known in asked:
            if word not in known:
                raise WorkerError("unsupported", "unknown %s %s; known: %s" % (
                    kind, word or "(none)", ", ".join(filter(None, known)) or "none"))

    def supports(self, request):
        case = Case(member(request, "bundle", str), self.target)
        load, source = case.stage == "load", case.recipe["input"]
        reasons = [] if load else self.adapter.supports(case)
        if source == "native":
            reasons += self.adapter.loader_problems(case)
        elif load and source != "stream":
            reasons.append("stage load needs --input stream or native, not %s" % source)
        if reasons:
            return {"supported": False, "reason": "; ".join(reasons)[:ERROR_CHARACTERS_MAX]}
        return {"supported": True}

    def open(self, request):
        begin = now()
        self.case = Case(member(request, "bundle", str), self.target)
        if self.case.recipe["input"] == "stream":
            if not self.ring:
                raise WorkerError("invalid", "input stream: hello has no member ring")
            self.ring.lay_out(self.case, self.shared.room, self.shared.ring)
            self.arriving = self.ring
        reply = self.adapter.open(self.case)
        reply["settings"].update(python="%d.%d.%d" % sys.version_info[:3],
                                 python_gc="disabled in runs")
        word = mxcsr()
        if word is not None:
            reply["mxcsr"] = word
        self.state = "opened"
        reply["open_ns"] = now() - begin
        return reply

    def build(self, request):
        begin = now()
        reply = {"parameters": None, "macs": None}
        if self.case.stage != "load":
            reply = self.adapter.build(self.case)
        if self.case.recipe["input"] == "native":
            self.arriving = own_loader.OwnLoader(self.adapter, self.case)
        reply["build_ns"] = now() - begin
        self.state = "built"
        freeze_garbage()
        return reply

    def feed(self, request):
        begin = now()
        if self.case.recipe["input"] != "resident":
            raise WorkerError("invalid", "feed is only for resident input, not %s" % self.case.recipe["input"])
        slot, batch = member(request, "slot", int), member(request, "batch", int)
        if not 0 <= slot < self.case.slots:
            raise WorkerError("invalid", "there is no slot %d (%d slots)" % (slot, self.case.slots))
        self.adapter.feed(slot, *self.case.batch(batch))
        self.fed.add(slot)
        return {"feed_ns": now() - begin}

    def first_slot(self, request):
        """The slot of a request's first step. Raises WorkerError if a step has no batch."""
        slot, slots = member(request, "slot", int), self.case.slots
        if not 0 <= slot < slots:
            raise WorkerError("invalid", "there is no slot %d (%d slots)" % (slot, slots))
        for used in range(slot, slot + min(request["steps"], slots)):
            if used % slots not in self.fed and not self.arriving:
                raise WorkerError("invalid", "slot %d has no batch: feed it before run" % (used % slots))
        return slot

    def loop(self, blocks, slot, records, call=lambda function: function()):
        """Runs blocks of steps from `slot` on; `call` is given the function that runs them."""
        slots = self.case.slots
        following = [(i + 1) % slots for i in range(slots)]
        adapter = self.adapter
        gc.disable()
        try:
            if FIT in self.target.options:
                call(functools.partial(marked_loop, adapter.fit, now, blocks, slot, records))
            else:
                call(functools.partial(timed_loop, self.stepping(), adapter.sync, now, blocks, slot,
                                       following, records))
        finally:
            gc.enable()

    def run(self, request):
        blocks = block_sizes(request)
        slot = self.first_slot(request)
        records = array.array("q", bytes(16 * len(blocks)))
        if self.shared:
            self.shared.check(self.shared.records, 16 * len(blocks), "records")
        self.loop(blocks, slot, records)
        self.state = "ran"
        self.put_records(records)
        reply = {"steps": request["steps"], "records": len(blocks),
                 "begin_at_ns": records[0], "end_at_ns": records[-1]}
        if self.arriving:
            reply.update(wait_ns=self.arriving.waited, copy_ns=self.arriving.copied)
        return reply

    def stepping(self):
        """The function that runs one step on a slot."""
        if not self.arriving:
            return self.adapter.step
        step = None if self.case.stage == "load" else self.adapter.step
        self.arriving.begin()
        if self.arriving is self.ring:
            return self.ring.stepping(self.adapter.feed, step, now)
        return self.arriving.stepping(step, now)

    def put_records(self, records):
        if sys.byteorder == "big":
            records = array.array("q", records)
            records.byteswap()
        if self.shared:
            offset = self.shared.records[0]
            self.shared.room[offset:offset + 8 * len(records)] = records.tobytes()
        else:
            with open(self.case.path("records"), "wb") as out:
                records.tofile(out)

    def read(self, request):
        what = member(request, "what", str)
        if what not in READOUTS:
            raise WorkerError("invalid", "cannot read %r" % (what,))
        if what not in ("weights", "state") and self.state != "ran":
            raise WorkerError("invalid", "%s cannot be read before a run" % what)
        if what in ("loss", "gradients") and self.case.stage == "forward":
            raise WorkerError("invalid", "the stage forward computes no %s" % what)
        tensors = self.listed(what)
        size = safetensors_io.header(tensors)[1]
        if self.shared:
            self.shared.check(self.shared.tensors, size, what)
            offset = self.shared.tensors[0]
            room = memoryview(self.shared.room)[offset:offset + size]
        else:
            room = memoryview(bytearray(size))
        safetensors_io.lay_out(tensors, room)
        self.adapter.read(what, tensors)
        if not self.shared:
            with open(self.case.path("read"), "wb") as out:
                out.write(room)
        return {"bytes": size}

    def listed(self, what):
        """List of Tensor, without data: the tensors of a readout."""
        case = self.case
        if what in ("logits", "loss"):
            shape = case.shape(case.graph["logits"]) if what == "logits" else []
            return [safetensors_io.Tensor(what, "F32", shape)]
        names = case.states if what == "state" else case.parameters
        return [safetensors_io.Tensor(name, "F32", case.shape(name)) for name in names]

    def profile(self, request):
        what = member(request, "what", str)
        steps = member(request, "steps", int)
        if not self.profiled:
            raise WorkerError("invalid", "profile needs profile: true in hello")
        if what not in self.profiles():
            raise WorkerError("invalid", "%s has no profile of %r" % (self.adapter_name, what))
        if self.arriving:
            raise WorkerError("invalid", "only steps on resident input can be profiled")
        if not 1 <= steps <= PROFILE_STEPS_MAX:
            raise WorkerError("invalid", "profile of %d steps" % steps)
        slot = self.first_slot(request)
        records = array.array("q", bytes(16 * steps))
        if what == "layers":
            self.adapter.profile_begin(steps)
            self.loop([1] * steps, slot, records)
            found = {"events": self.adapter.profile_end(records)}
        else:
            from line_tracer import LineTracer
            tracer = LineTracer(now)
            self.loop([1] * steps, slot, records, tracer.run)
            found = tracer.report()
        found["steps"] = [[records[2 * i], records[2 * i + 1]] for i in range(steps)]
        with open(self.case.path("profile"), "w") as out:
            json.dump(found, out)
        return {"steps": steps, "begin_at_ns": records[0], "end_at_ns": records[-1],
                "events": len(found.get("events") or found["functions"])}

    def close(self, request):
        self.arriving = None  # this ends the loader's processes
        if self.adapter:
            self.adapter.close()
        return {}

    def check_state(self, verb):
        """Raises WorkerError if the verb is unknown or not allowed in this state."""
        if not isinstance(verb, str) or verb not in self.STATES:
            raise WorkerError("invalid", "unknown verb %r" % (verb,))
        if self.state not in self.STATES[verb]:
            raise WorkerError("invalid", "%s is not allowed in the state %s"
                              % (verb, self.state))

    def status_of(self, error):
        """The status of the protocol for an exception."""
        if isinstance(error, WorkerError):
            return error.status
        if isinstance(error, MemoryError):
            return "out-of-memory"
        return (self.adapter.status_of(error) if self.adapter else None) or "crashed"

    def answer(self, request):
        """The whole reply (dict) to a request (dict)."""
        reply = {"id": request.get("id"), "ok": True}
        try:
            self.check_state(request.get("verb"))
            reply.update(getattr(self, request["verb"])(request))
        except Exception as error:
            import traceback
            traceback.print_exc()
            lines = str(error).split("\n")
            text = lines[0] if isinstance(error, WorkerError) else "%s: %s" % (
                type(error).__name__, lines[0])
            reply = {"id": request.get("id"), "ok": False, "status": self.status_of(error),
                     "error": text[:ERROR_CHARACTERS_MAX]}
            if reply["status"] != "invalid":
                self.state = "failed"
        return reply


def member(request, key, kind):
    """A member of a request. Raises WorkerError if it does not have that type."""
    value = request.get(key)
    if type(value) is not kind:
        raise WorkerError("invalid", "%s must be %s, not %r" % (
            key, "an integer" if kind is int else "a string", value))
    return value


def target_of(request):
    """The Target in a hello. Raises WorkerError if it is incomplete."""
    words = [request.get("device"), request.get("backend")]
    options, rank, world_size = (request.get(key) for key in ("options", "rank", "world_size"))
    if not all(isinstance(word, str) for word in words) or not words[0]:
        raise WorkerError("invalid", "hello: device and backend must be strings, not %r" % (words,))
    if not isinstance(options, list) or not all(isinstance(word, str) for word in options):
        raise WorkerError("invalid", "hello: options must be an array of strings")
    if type(rank) is not int or type(world_size) is not int or not 0 <= rank < world_size:
        raise WorkerError("invalid", "hello: rank %r and world_size %r: "
                                     "rank must be from 0 to world_size - 1" % (rank, world_size))
    return adapters.Target(words[0], words[1], options, rank, world_size, request.get("rendezvous"))


def block_sizes(request):
    """List of int: the steps of each block, from the members steps, sync and every of a run."""
    steps, sync = member(request, "steps", int), member(request, "sync", str)
    if steps < 1:
        raise WorkerError("invalid", "run of %d steps" % steps)
    every = {"end": steps, "step": 1, "blocks": request.get("every")}.get(sync)
    if type(every) is not int or every < 1:
        raise WorkerError("invalid", "sync %r with every %r: "
                                     "sync must be end, step or blocks, and every at least 1"
                                     % (sync, request.get("every")))
    rest = [steps % every] if steps % every else []
    return [every] * (steps // every) + rest


def read_request(requests):
    """The next request (dict) of a binary stream, None at its end. Raises ValueError for other lines."""
    line = requests.readline(LINE_BYTES_MAX)
    if len(line) == LINE_BYTES_MAX and not line.endswith(b"\n"):
        while line and not line.endswith(b"\n"):
            line = requests.readline(LINE_BYTES_MAX)
        raise ValueError("longer than %d bytes" % LINE_BYTES_MAX)
    if not line:
        return None
    try:
        request = json.loads(line.decode())
    except RecursionError:
        raise ValueError("nested too deep")
    if not isinstance(request, dict):
        raise ValueError("not an object")
    return request


def serve(worker, requests, replies):
    """Answers the requests of a binary stream one by one until close or its end."""
    while True:
        try:
            request = read_request(requests)
            if request is None:
                return
        except ValueError as error:
            request = {"verb": None}
            sys.stderr.write("worker: bad request: %s\n" % error)
        replies.write(json.dumps(worker.answer(request)).encode() + b"\n")
        replies.flush()
        if request.get("verb") == "close":
            return


def adapter_names():
    """Sorted list of the adapters in this folder."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "adapters")
    return sorted(name[:-3] for name in os.listdir(folder)
                  if name.endswith(".py") and name[0] != "_" and "_" not in name)


def channel(variable, mode):
    """The stream of the file descriptor in an environment variable; children do not inherit it."""
    fd = int(os.environ[variable])
    os.set_inheritable(fd, False)
    return os.fdopen(fd, mode)


def main(arguments):
    if len(arguments) != 2 or arguments[0] != "--adapter" or not (
            arguments[1] in adapter_names() or arguments[1].endswith(".py")):
        sys.stderr.write("usage: worker.py --adapter NAME, a file FILE.py or one of: %s\n"
                         % ", ".join(adapter_names()))
        return 64
    try:
        requests, replies = channel("PRONY_REQUEST_FD", "rb"), channel("PRONY_REPLY_FD", "wb")
    except (KeyError, ValueError, OSError) as error:
        sys.stderr.write("worker.py must be started by prony (docs/worker-protocol.md): %r\n" % error)
        return 64
    serve(Worker(arguments[1]), requests, replies)
    return 0


def leave(code):
    """Ends this process like multiprocessing does: joins threads, calls functions registered with atexit,
    flushes streams. It does not destroy the framework's objects, which would take up to a second."""
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    try:
        atexit._run_exitfuncs()
    except BaseException:  # atexit has printed it; an ordinary exit ignores it as well
        pass
    import ctypes
    ctypes.CDLL(None).fflush(None)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, ValueError, OSError):
            pass  # None, closed, or without a reader
    os._exit(code)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
