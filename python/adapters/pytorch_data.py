"""Batches by torch's DataLoader, as a training script has them: one process for each core, samples in a
Dataset, its own collation (docs/frameworks-python.md, "pytorch")."""
import math
import random
from importlib import util

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

AREAS, RATIOS, TRIES = (0.08, 1.0), (math.log(3 / 4), math.log(4 / 3)), 10


def problems(data):
    """List of str: why this data set cannot be loaded."""
    if data.format == "images" and not util.find_spec("PIL"):
        return ["input native: photographs need Pillow, which this environment has not: prony framework install NAME "
                "makes prony's own again (NAME as in prony list frameworks)"]
    return data.problems()


class Plain(Dataset):
    """MNIST and CIFAR-10: values as stored in one tensor, scaled when a sample is taken."""

    def __init__(self, data):
        values, labels = data.plain()
        self.values = torch.frombuffer(values, dtype=torch.uint8).reshape([-1] + data.shape)
        self.labels = torch.frombuffer(labels, dtype=torch.uint8).long()
        self.scaled = Scaling(data)
        self.shape = data.batch_shape[1:]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, number):
        return self.scaled(self.values[number]).reshape(self.shape), self.labels[number]


class Scaling(object):
    """Turns the bytes of a sample, channels first, into what the network takes."""

    def __init__(self, data):
        self.scale = data.scale
        self.mean, self.deviation = (torch.tensor(channel, dtype=torch.float32).reshape(-1, 1, 1)
                                     for channel in (data.mean, data.deviation))

    def __call__(self, value):
        return value.to(torch.float32).div_(self.scale).sub_(self.mean).div_(self.deviation)


def random_part(width, height):
    """(left, top, right, bottom): the part that torchvision's RandomResizedCrop draws."""
    for _ in range(TRIES):
        area, ratio = width * height * random.uniform(*AREAS), math.exp(random.uniform(*RATIOS))
        wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < wide <= width and 0 < high <= height:
            left, top = random.randint(0, width - wide), random.randint(0, height - high)
            return left, top, left + wide, top + high
    low, most = (math.exp(ratio) for ratio in RATIOS)
    wide = min(width, round(height * most))
    high = min(height, round(width / low))
    left, top = (width - wide) // 2, (height - high) // 2
    return left, top, left + wide, top + high


class Photographs(Dataset):
    """Files of JPEG, by the calls of Pillow that torchvision's transforms make: RandomResizedCrop and
    RandomHorizontalFlip, or Resize and CenterCrop; then ToTensor and Normalize in torch."""

    def __init__(self, data):
        self.files, self.training, self.scaled = data.photographs(), data.training, Scaling(data)
        self.height, self.width = data.batch_shape[2:]

    def __len__(self):
        return len(self.files)

    def seen(self, image):
        """The part of a photograph, as large as the network takes it."""
        from PIL import Image
        if self.training:
            image = image.crop(random_part(*image.size)).resize((self.width, self.height), Image.BILINEAR)
            return image.transpose(Image.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image
        shorter = min(self.height, self.width) * 8 // 7
        width, height = (int(shorter * side / min(image.size)) for side in image.size)
        left, top = int(round((width - self.width) / 2)), int(round((height - self.height) / 2))
        image = image.resize((width, height), Image.BILINEAR)
        return image.crop((left, top, left + self.width, top + self.height))

    def __getitem__(self, number):
        from PIL import Image
        path, label = self.files[number]
        with Image.open(path) as image:
            image = self.seen(image.convert("RGB"))
        pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
        return self.scaled(pixels.reshape(self.height, self.width, 3).permute(2, 0, 1).contiguous()), label


class Endless(Sampler):
    """Lists of sample numbers, a batch each, from one epoch into the next."""

    def __init__(self, data):
        self.data = data

    def __iter__(self):
        numbers = self.data.order()
        while True:
            yield [next(numbers) for _ in range(self.data.batch)]


def loader(data):
    """Endless iterator over (images, labels)."""
    samples = Photographs(data) if data.format == "images" else Plain(data)
    made = DataLoader(samples, batch_sampler=Endless(data), num_workers=data.threads)
    return iter(made)
