#!/usr/bin/env python3
"""Measures the floor of the frameworks, network by network: bench_floor, then native and the frameworks.

    floor.py --build BUILD [NETWORK[:BATCH]...]     measure, and keep the results in --results
    floor.py --table [--results FILE]               the table of docs/measured, from that file

For each network and stage bench_floor is run (share of the peak, step over the sum of its commands,
reorders, allocations, threads), then `prony run` with native and the frameworks, whose processes
it interleaves, into a store of its own. Results of a network replace older ones of the same network,
batch and stage, so that the whole can be measured in pieces. Standard library only.
"""
import argparse
import datetime
import glob
import json
import os
import subprocess
import sys
import tempfile

NETWORKS = ["lenet:64", "lstm:32", "alexnet:8", "googlenet:8", "resnet50:8", "inception3:8", "vgg16:8"]
FRAMEWORKS = "native,mxnet,onnxruntime,openvino,tensorflow,tensorflow1,xla,pytorch"
STEP_OVER_SUM_MAX = 1.05
SHARE_MIN = {("resnet50", "train"): 0.60, ("vgg16", "train"): 0.75}
# Bursts of other work lengthen steps, but not the median of times shorter than the pause between bursts.
STEP_OVER_IN_STEP = 0.95, 1.05
CALM_MIN = 0.9
STAGES = ["forward", "train"]


def fail(message):
    sys.exit(f"floor.py: {message}")


def load(path):
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except FileNotFoundError:
        return {"entries": {}}
    except ValueError as problem:
        return fail(f"{path}: {problem}")


def save(path, results):
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(os.path.abspath(path)), delete=False,
                                     encoding="utf-8") as stream:
        json.dump(results, stream, indent=1)
        stream.write("\n")
    os.replace(stream.name, path)


def find_library():
    """The path of oneDNN as `prony framework install native` installs it."""
    if os.environ.get("PRONY_NATIVE_LIBRARY"):
        return os.environ["PRONY_NATIVE_LIBRARY"]
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    found = glob.glob(os.path.join(home, "prony/frameworks/native/**/libdnnl.so.3*"), recursive=True)
    return sorted(found)[0] if found else fail(
        "no libdnnl.so.3: 'prony framework install native', or name one in PRONY_NATIVE_LIBRARY")


def bench(options, network, batch, stage):
    """One line of bench_floor."""
    command = [os.path.join(options.build, "tests/bench_floor"), "--json", "--top", "5", network,
               str(batch), stage, str(options.threads)]
    environment = dict(os.environ, PRONY_NATIVE_LIBRARY=find_library())
    environment.pop("PRONY_BENCH_CPU_TIME", None)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        fail(f"{' '.join(command)}: exit code {done.returncode}")
    return json.loads(done.stdout)


def compare(options, network, batch):
    """The cells of a run of native and the frameworks."""
    with tempfile.TemporaryDirectory(prefix="prony-floor-") as folder:
        command = [os.path.join(options.build, "prony"), "run", "-f", options.frameworks, "-n",
                   network, "-b", str(batch), "-s", ",".join(options.stages), "-D",
                   f"cpu:{options.threads}", "--quick", "--repeat", str(options.repeat), "--store",
                   os.path.join(folder, "floor.db"), "--format", "json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    try:
        # Unsupported or missing cells change the exit code, not the output.
        return json.loads(done.stdout)
    except ValueError:
        return fail(f"{' '.join(command)}: exit code {done.returncode}, and no results")


def keep(cell):
    """The figures of a cell that the table needs."""
    details = cell.get("details") or {}
    return {"framework": cell["framework"], "status": cell["status"], "reason": cell["reason"],
            "version": details.get("version"), "step_ns": cell["step"]["center_ns"],
            "half_width": cell["step"]["half_width"], "processes": cell["step"]["processes"], "floor": cell["floor"]}


def machine_of(run):
    facts = (run.get("environment") or {}).get("must_match") or {}
    return {"cpu": facts.get("cpu_model"), "host_cores": facts.get("cores_usable"),
            "load": ((run.get("environment") or {}).get("informational") or {}).get("load")}


def measure(options):
    results = load(options.results)
    for word in options.networks:
        network, _, batch = word.rpartition(":")
        if not network or not batch.isdigit():
            fail(f"'{word}': write NETWORK:BATCH, as in resnet50:8")
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        run = compare(options, network, batch) if options.part != "bench" else None
        for stage in options.stages:
            key = f"{network} {batch} {stage}"
            entry = results["entries"].setdefault(key, {})
            entry.update(network=network, batch=int(batch), stage=stage)
            if options.part != "run":
                entry.update(bench=bench(options, network, batch, stage), bench_at=now)
            if run:
                entry.update(cells=[keep(cell) for cell in run["cells"] if cell["stage"] == stage],
                             run_at=now, machine=machine_of(run["run"]))
            save(options.results, results)
            print(f"{key}: {verdict(entry)}", file=sys.stderr)


def milliseconds(ns):
    if ns is None:
        return "-"
    value = ns / 1e6
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def cell_of(entry, framework):
    for cell in entry.get("cells", []):
        if cell["framework"] == framework:
            return cell
    return None


def cell_text(cell, native):
    if cell is None:
        return ""
    if cell["step_ns"] is None:
        return cell["status"]
    interval = "" if cell["half_width"] is None else f" +/- {100 * cell['half_width']:.2g} %"
    ratio = cell["floor"]["ratio"]
    beside = "" if native or ratio is None else f", {ratio:.2f}x"
    return milliseconds(cell["step_ns"]) + interval + beside


def heaviest(entry):
    """The layer that loses most against the peak."""
    commands = (entry.get("bench") or {}).get("commands") or []
    if not commands:
        return None
    command = commands[0]
    share = command["share_of_peak"]
    of_peak = "" if share is None else f", {share:.2f} of the peak"
    return f"{command['name']}: {milliseconds(command['in_step_ns'])} ms{of_peak}"


def verdict(entry):
    cells = entry.get("cells")
    if cells is None:
        return "the frameworks were not run"
    native = cell_of(entry, "native")
    if native is None or native["step_ns"] is None:
        return "there is no floor: native " + (native["status"] if native else "was not asked for")
    others = [cell for cell in cells if cell["step_ns"] is not None and not is_native(cell)]
    broken = [cell for cell in others if cell["floor"]["broken"]]
    near = [cell for cell in others if cell["floor"]["low"] is None or cell["floor"]["low"] <= 1]
    if not others:
        return "nothing to compare"
    if not broken:
        return f"undecided: {', '.join(map(beside, near))}" if near else "holds"
    layer = heaviest(entry)
    return f"**broken by {', '.join(map(beside, broken))}**" + (f" (layer that loses most: {layer})" if layer else "")


def is_native(cell):
    """native itself, or another oneDNN under it."""
    return cell["framework"].split("@")[0] == "native"


def beside(cell):
    floor = cell["floor"]
    interval = "" if floor["low"] is None else f", {floor['low']:.2f} to {floor['high']:.2f}"
    return f"{cell['framework']} ({floor['ratio']:.2f}x{interval})"


def bench_texts(seen):
    if not seen:
        return [""] * 6
    reorders = seen["reorders"]
    pair = "-"
    if seen["one_thread_ns"]:
        pair = f"{seen['one_thread_ns'] / seen['all_threads_ns']:.2f}"
    return [milliseconds(seen["step"]["median_ns"]), f"{seen['step_over_warm']:.3f}",
            f"{reorders['input']}, {reorders['activations']}, {reorders['weights']}",
            f"{seen['creations']}, {seen['allocations']} + {seen['library_allocations']}", f"{seen['share_of_peak']:.2f}", pair]


def disturbed(seen):
    """Why the figures of a bench are unreliable; empty if they are reliable."""
    low, high = STEP_OVER_IN_STEP
    peak = seen["peak_flops_per_second"]
    if not low <= seen["step_over_in_step"] <= high:
        return f"a step takes {seen['step_over_in_step']:.2f} of what its commands take within steps"
    if peak["fma_worst"] < CALM_MIN * peak["fma"]:
        return f"the FMA loop fell to {peak['fma_worst'] / peak['fma']:.2f} of its best"
    return ""


def misses(entry):
    """The goals that the bench missed."""
    seen = entry.get("bench")
    if not seen:
        return
    name = f"{entry['network']} {entry['stage']}"
    if disturbed(seen):
        yield f"{name}: disturbed by other work, to be measured again: {disturbed(seen)}"
    if seen["step_over_warm"] > STEP_OVER_SUM_MAX:
        # Where the time beyond the commands' time alone is spent.
        late = ", ".join(f"{command['name']} +{milliseconds(command['in_step_ns'] - command['warm_ns'])}"
                         for command in seen.get("slower_in_step", [])[:3])
        yield (f"{name}: step / sum {seen['step_over_warm']:.3f} > {STEP_OVER_SUM_MAX}"
               + (f"; slower within the step, ms: {late}" if late else ""))
    wanted = SHARE_MIN.get((entry["network"], entry["stage"]))
    if wanted and seen["share_of_peak"] < wanted:
        yield f"{name}: share of the peak {seen['share_of_peak']:.2f} < {wanted}; {heaviest(entry)}"
    if seen["reorders"]["activations"]:
        yield f"{name}: {seen['reorders']['activations']} reorders of activations"
    if seen["allocations"] or seen["creations"]:
        yield f"{name}: {seen['allocations']} allocations, {seen['creations']} creations in a step"


def head_lines(entries):
    machines = {entry["machine"]["cpu"] for entry in entries if entry.get("machine")}
    times = sorted(time for entry in entries for time in (entry.get("bench_at"), entry.get("run_at"))
                   if time)
    if times:
        yield (f"Measured {times[0]} to {times[-1]}"
               + (f" on {', '.join(sorted(filter(None, machines)))}" if machines else "") + ".")
    peaks = [entry["bench"]["peak_flops_per_second"] for entry in entries if entry.get("bench")]
    if peaks:
        for kind, name in (("fma", f"our FMA loop ({peaks[0]['fma_set']})"), ("sgemm", "sgemm")):
            values = [peak[kind] / 1e9 for peak in peaks]
            yield f"{name}: {min(values):.0f} to {max(values):.0f} GFLOP/s in the same runs."


def table(results):
    """The table as Markdown."""
    entries = list(results["entries"].values())
    frameworks = []
    for entry in entries:
        for cell in entry.get("cells", []):
            if cell["framework"] not in frameworks and cell["framework"] != "native":
                frameworks.append(cell["framework"])
    frameworks = ["native"] + sorted(frameworks)
    titles = ["network", "batch, stage", "bench ms", "step / sum", "reorders: input, act., weights",
              "creations, allocations: own + library", "share of peak", "threads vs 1"]
    titles += [f"{name} ms" for name in frameworks] + ["verdict"]
    lines = [" ".join(head_lines(entries)), "", "| " + " | ".join(titles) + " |",
             "| --- | --- |" + " ---: |" * (len(titles) - 3) + " --- |"]
    for entry in entries:
        row = [f"`{entry['network']}`", f"{entry['batch']}, {entry['stage']}"]
        row += bench_texts(entry.get("bench"))
        row += [cell_text(cell_of(entry, name), name == "native") for name in frameworks]
        lines.append("| " + " | ".join(row + [verdict(entry)]) + " |")
    decided = [verdict(entry) for entry in entries if entry.get("cells")]
    if decided:
        lines += ["", f"{sum(not text.startswith('undecided') for text in decided)} of {len(decided)} rows decided."]
    missed = [line for entry in entries for line in misses(entry)]
    if missed:
        lines += ["", "Not reached:", ""] + [f"- {line}" for line in missed]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK:BATCH",
                        help="default: " + " ".join(NETWORKS))
    parser.add_argument("--build", default="build", help="folder of the build (default: build)")
    parser.add_argument("--results", default="floor.json", help="where figures are kept")
    parser.add_argument("--table", action="store_true", help="print the table, measure nothing")
    parser.add_argument("-f", "--frameworks", default=FRAMEWORKS)
    parser.add_argument("-s", "--stages", default=",".join(STAGES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5, help="processes of each cell")
    parser.add_argument("--part", choices=["bench", "run", "both"], default="both")
    options = parser.parse_args()
    options.networks = options.networks or NETWORKS
    options.stages = options.stages.split(",")
    if not options.table:
        measure(options)
    sys.stdout.write(table(load(options.results)))


if __name__ == "__main__":
    main()
