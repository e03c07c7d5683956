"""Batches by torch's DataLoader, as a training script has them: one process for each core, samples in a
Dataset, its own collation (docs/frameworks-python.md, "pytorch")."""
import photographs
import torch
from torch.utils.data import DataLoader, Dataset, Sampler


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


class Photographs(Dataset):
    """Files of JPEG: ToTensor and Normalize in torch."""

    def __init__(self, data):
        self.read, self.scaled = photographs.Photographs(data), Scaling(data)

    def __len__(self):
        return len(self.read)

    def __getitem__(self, number):
        pixels, label = self.read.sample(number)
        values = torch.frombuffer(bytearray(pixels), dtype=torch.uint8)
        values = values.reshape(self.read.height, self.read.width, 3).permute(2, 0, 1)
        return self.scaled(values.contiguous()), label


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
