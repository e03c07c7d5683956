#!/usr/bin/env python3
"""Compares the photographs decoded, cut, resized and scaled per second by prony and by a PyTorch DataLoader (workers =
cores, PIL, torchvision's transforms, collate included) on the same files, cores and parts, caches warm,
passes in turn. Then measures the noise between the two results, in dB per photograph.

    PYTHON tests/bench/decode.py build/tests/bench_decode FOLDER [--side 224] [--passes 20] [--batch 32]

PYTHON has torch, torchvision and Pillow. The last line says whether the lower limit of the 95 % t interval of
the ratio (of its logarithm, over the passes) is at least 2 and the median at full-size decode at least 40 dB.
"""
import argparse
import math
import os
import statistics
import subprocess
import tempfile
import time

import numpy
import torch
import torchvision
from PIL import Image
from torchvision import transforms
from torchvision.transforms import functional

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Quantiles of Student's t for two-sided 95 %, by degrees of freedom; beyond: that of 30.
T95 = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145,
       2.131, 2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045]


class Prony:
    """The bench program, which answers one line at a time; the parts it uses of each photograph."""

    def __init__(self, program, folder, side, stage):
        self.process = subprocess.Popen([program, folder, str(side), stage], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.parts = []
        for line in self.process.stdout:
            if line == "ready\n":
                break
            name, *numbers = line.rsplit(" ", 6)
            self.parts.append((name, *map(int, numbers)))

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def seconds(self):
        return int(self.ask("pass")) / 1e9

    def planes(self, side):
        with tempfile.NamedTemporaryFile() as stream:
            self.ask("planes " + stream.name)
            return numpy.fromfile(stream.name, "uint8").reshape(len(self.parts), 3, side, side)


class Photographs(torch.utils.data.Dataset):
    """The same parts by PIL and torchvision; the bytes if not `scaled`."""

    def __init__(self, folder, parts, side, stage, scaled=True):
        self.folder, self.parts, self.side, self.stage = folder, parts, side, stage
        resized = (side * 16 + 7) // 14
        self.centre = transforms.Compose([transforms.Resize(resized), transforms.CenterCrop(side)])
        self.scale = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)]) \
            if scaled else functional.pil_to_tensor

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, at):
        name, left, top, width, height, mirrored, _ = self.parts[at]
        with Image.open(os.path.join(self.folder, name)) as picture:
            picture = picture.convert("RGB")
        if self.stage == "train":
            picture = functional.resized_crop(picture, top, left, height, width, [self.side, self.side])
            picture = functional.hflip(picture) if mirrored else picture
        else:
            picture = self.centre(picture)
        return self.scale(picture), at


def loader_seconds(loader):
    start = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - start


def ratio_limits(ratios):
    """Geometric mean and the 95 % t interval of the logarithms."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = statistics.mean(logs)
    if len(logs) < 2:
        return math.exp(middle), 0.0, math.inf
    half = (T95[len(logs) - 2] if len(logs) <= len(T95) + 1 else 2.042) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def noise_db(ours, theirs):
    square = numpy.mean((ours.astype("float64") - theirs) ** 2)
    return 10 * math.log10(255 ** 2 / max(square, 1e-9))


def measure(prony, photographs, arguments, cores):
    loader = torch.utils.data.DataLoader(photographs, batch_size=arguments.batch, num_workers=cores,
                                         persistent_workers=True)
    # The first pass of each warms the caches and starts the workers.
    prony.seconds(), loader_seconds(loader)
    ours, theirs = [], []
    for number in range(arguments.passes):
        turns = [(ours, prony.seconds), (theirs, lambda: loader_seconds(loader))]
        for seconds, take in turns if number % 2 == 0 else turns[::-1]:
            seconds.append(take())
    return ours, theirs


def compare(stage, arguments, cores):
    prony = Prony(arguments.program, arguments.folder, arguments.side, stage)
    count = len(prony.parts)
    ours, theirs = measure(prony, Photographs(arguments.folder, prony.parts, arguments.side, stage), arguments,
                           cores)
    middle, low, high = ratio_limits([b / a for a, b in zip(ours, theirs)])
    print("%s, %d photographs, %d cores: prony %.0f /s, DataLoader %.0f /s: %.2fx (95 %%: %.2f to %.2f)"
          % (stage, count, cores, count / statistics.median(ours), count / statistics.median(theirs), middle,
             low, high))
    planes = prony.planes(arguments.side)
    plain = Photographs(arguments.folder, prony.parts, arguments.side, stage, scaled=False)
    noise = {}
    for at, part in enumerate(prony.parts):
        noise.setdefault(part[6], []).append(noise_db(planes[at], plain[at][0].numpy()))
    for eighths, rows in sorted(noise.items(), reverse=True):
        print("  decoded at %d/8: %d photographs, median %.1f dB, least %.1f dB"
              % (eighths, len(rows), statistics.median(rows), min(rows)))
    return low >= 2 and statistics.median(noise.get(8, [math.inf])) >= 40


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(1)
    print("torch %s, torchvision %s, Pillow %s" % (torch.__version__, torchvision.__version__, Image.__version__))
    good = [compare(stage, arguments, cores) for stage in ("train", "evaluation")]
    print("holds" if all(good) else "does not hold")
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
