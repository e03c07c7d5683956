"""Compares photographs of --input native of PyTorch and CNTK, in evaluation, with PNG files of prony's input:
prints the largest mean difference of one, in levels of 255, and how many there were.

    photographs_reader.py PYTHON_FOLDER PHOTOGRAPHS CONVERTED SIZE
"""
import json
import os
import sys

sys.path.insert(0, sys.argv[1])
try:
    from PIL import Image, ImageChops, ImageStat
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
    sys.exit()

import photographs  # noqa: E402


class Asked(object):
    """What an own_loader.Data would say."""
    training = False
    batch_shape = [1, 3, int(sys.argv[4]), int(sys.argv[4])]

    @staticmethod
    def photographs():
        return []


def main():
    samples = photographs.Photographs(Asked)
    files = sorted(os.path.join(place, name) for place, _, names in os.walk(sys.argv[2]) for name in names)
    with open(os.path.join(sys.argv[3], "map.txt"), encoding="ascii") as stream:
        ours = [line.split("\t")[0] for line in stream]
    largest = 0
    for file, our in zip(files[len(files) - len(ours):], ours):
        with Image.open(file) as image, Image.open(os.path.join(sys.argv[3], our)) as wanted:
            apart = ImageChops.difference(samples.seen(image.convert("RGB")), wanted.convert("RGB"))
            largest = max(largest, *ImageStat.Stat(apart).mean)
    print(json.dumps({"largest": largest, "count": len(ours)}))


if __name__ == "__main__":
    main()
