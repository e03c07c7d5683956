"""Batches by torch's DataLoader, as a training script has them: one process for each core, samples in a
Dataset, its own collation (docs/frameworks-python.md, "pytorch")."""
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

try:  # photographs only
    from PIL import Image
    from torchvision import transforms
    MISSING = None
except ImportError as error:
    MISSING = str(error)


def problems(data):
    """List of str: why this data set cannot be loaded."""
    if data.format == "images" and MISSING:
        return ["input native: photographs need torchvision and Pillow in its environment (%s)" % MISSING]
    return data.problems()


class Plain(Dataset):
    """MNIST and CIFAR-10: values as stored in one tensor, scaled when a sample is taken."""

    def __init__(self, data):
        values, labels = data.plain()
        self.values = torch.frombuffer(values, dtype=torch.uint8).reshape([-1] + data.shape)
        self.labels = torch.frombuffer(labels, dtype=torch.uint8).long()
        self.shape = data.batch_shape[1:]
        self.scale = data.scale
        self.mean = torch.tensor(data.mean, dtype=torch.float32).reshape(-1, 1, 1)
        self.deviation = torch.tensor(data.deviation, dtype=torch.float32).reshape(-1, 1, 1)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, number):
        value = self.values[number].to(torch.float32).div_(self.scale)
        return value.sub_(self.mean).div_(self.deviation).reshape(self.shape), self.labels[number]


class Photographs(Dataset):
    """Files of JPEG, opened by Pillow, through torchvision's usual transforms."""

    def __init__(self, data):
        self.files = data.photographs()
        height, width = data.batch_shape[2:]
        if data.training:
            views = [transforms.RandomResizedCrop((height, width)), transforms.RandomHorizontalFlip()]
        else:
            views = [transforms.Resize(min(height, width) * 8 // 7),
                     transforms.CenterCrop((height, width))]
        self.view = transforms.Compose(views + [
            transforms.ToTensor(), transforms.Normalize(data.mean, data.deviation)])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        path, label = self.files[number]
        with Image.open(path) as image:
            return self.view(image.convert("RGB")), label


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
