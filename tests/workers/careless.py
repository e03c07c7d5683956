#!/usr/bin/env python3
"""The Python worker with null, and one thing done carelessly: `careless.py FAULT`. worker-check has to
reject each. Needs a copy of nothing: python/worker.py stands beside it in the tree."""
import json
import os
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "python"))

import worker  # noqa: E402

EVERYWHERE = ("new", "greeted", "opened", "built", "ran", "failed")
Worker = worker.Worker


def may_come(verb, places):
    Worker.STATES = dict(Worker.STATES, **{verb: places})


def records():
    """Takes runs whose records do not fit, and drops those that have no place."""
    put, check = Worker.put_records, worker.SharedMemory.check
    Worker.put_records = lambda self, kept: put(
        self, kept[:self.shared.records[1] // 8] if self.shared else kept)
    worker.SharedMemory.check = lambda self, region, size, what: (
        what == "records" or check(self, region, size, what))


def unfed():
    """Runs on slots that hold nothing."""
    run = Worker.run

    def careless(self, request):
        self.fed.update(range(self.case.slots))
        return run(self, request)
    Worker.run = careless


def early_read():
    """Returns logits of a step that has not run."""
    read = Worker.read

    def careless(self, request):
        self.state = "ran"
        return read(self, request)
    Worker.read = careless


def after_failure():
    """Goes on with other work after it failed."""
    Worker.state = property(lambda self: self.__dict__["at"],
                            lambda self, at: self.__dict__.update(
                                at="new" if at == "failed" else at))


def any_target():
    """Takes every device, backend and option, and runs without."""
    Worker.check_target = lambda self, devices: None


def any_rank():
    """Does not look at its rank."""
    target_of = worker.target_of
    worker.target_of = lambda request: target_of(dict(request, rank=0, world_size=1))


def wrong_rank():
    """Says that it is another one of them."""
    hello = Worker.hello
    Worker.hello = lambda self, request: dict(hello(self, request), rank=1, world_size=2)


def other_devices():
    """Lists devices that it was not asked for."""
    hello = Worker.hello
    Worker.hello = lambda self, request: dict(hello(self, request), devices=["cuda:0"])


def old_protocol():
    """Takes a hello of protocol 1."""
    hello = Worker.hello
    Worker.hello = lambda self, request: hello(self, dict(request, protocol=2))


def any_verb():
    """Accepts an unknown verb."""
    answer = Worker.answer
    Worker.answer = lambda self, request: (
        {"id": request.get("id"), "ok": True} if request.get("verb") == "dance"
        else answer(self, request))


def crashed():
    """Calls every refusal a crash."""
    Worker.status_of = lambda self, error: "crashed"


def forgets():
    """Forgets its fed slots after a refused request."""
    answer = Worker.answer

    def careless(self, request):
        reply = answer(self, request)
        if not reply["ok"]:
            self.fed.clear()
        return reply
    Worker.answer = careless


def other_name():
    """As a framework of its own, `mine`, which prony runs."""
    hello = Worker.hello
    Worker.hello = lambda self, request: dict(hello(self, request), name="mine")


def profiled(change):
    """Writes a profile that `change` modifies; None removes the file."""
    profile = Worker.profile
    other_name()

    def careless(self, request):
        reply = profile(self, request)
        path = self.case.path("profile")
        with open(path) as source:
            found = change(json.load(source))
        os.remove(path)
        if found is not None:
            with open(path, "w") as out:
                json.dump(found, out)
        return reply
    Worker.profile = careless


def short_nap():
    time.sleep(0.004)


def long_nap():
    time.sleep(0.008)


def slow_lines():
    """No fault: steps whose lines take a known time."""
    other_name()

    def step(self, slot):
        short_nap()
        long_nap()
    import adapters.null
    adapters.null.Adapter.step = step


FAULTS = {
    "no-profile": lambda: profiled(lambda found: None),
    "half-profile": lambda: profiled(lambda found: dict(found, steps=[])),
    "long-profile": lambda: profiled(lambda found: dict(found, total_ns=10 ** 15)),
    "slow-lines": slow_lines,
    "records": records, "unfed": unfed, "early-read": early_read, "after-failure": after_failure,
    "any-target": any_target, "any-rank": any_rank, "wrong-rank": wrong_rank,
    "other-devices": other_devices, "old-protocol": old_protocol, "any-verb": any_verb,
    "crashed": crashed, "forgets": forgets, "exit-5": lambda: None, "none": lambda: None,
    "second-hello": lambda: may_come("hello", EVERYWHERE),
    "second-open": lambda: may_come("open", ("greeted", "opened", "built", "ran")),
    "second-build": lambda: may_come("build", ("opened", "built", "ran")),
    "late-supports": lambda: may_come("supports", ("greeted", "opened", "built", "ran")),
}


if __name__ == "__main__":
    FAULTS[sys.argv[1]]()
    closed = []
    close = Worker.close
    Worker.close = lambda self, request: (closed.append(True), close(self, request))[1]
    code = worker.main(["--adapter", "null"])
    sys.exit(5 if sys.argv[1] == "exit-5" and not closed else code)
