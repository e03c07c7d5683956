"""Photographs for --input native in PyTorch and CNTK, by Pillow: like torchvision's RandomResizedCrop and
RandomHorizontalFlip in training, like its Resize and CenterCrop in evaluation."""
import math
import random

AREAS, RATIOS, TRIES = (0.08, 1.0), (math.log(3 / 4), math.log(4 / 3)), 10


def problems(data):
    """List of str: why this data set (own_loader.Data) cannot be loaded here."""
    if data.format in ("images", "lmdb"):
        try:
            import PIL  # noqa: F401
        except ImportError:
            return ["input native: photographs need Pillow, which this Python environment lacks; "
                    "install it there, or run 'prony framework install NAME' (see 'prony list frameworks')"]
    return data.problems()


def random_part(width, height):
    """(left, top, right, bottom): a random part, chosen like torchvision's RandomResizedCrop."""
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


class View(object):
    """Crops and resizes photographs for a case's network; data is an own_loader.Data."""

    def __init__(self, data):
        self.training = data.training
        self.height, self.width = data.batch_shape[2:]

    def seen(self, image):
        """Part of a PIL.Image, in the size of the network's input."""
        from PIL import Image
        if self.training:
            image = image.crop(random_part(*image.size)).resize((self.width, self.height), Image.BILINEAR)
            return image.transpose(Image.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image
        shorter = round(min(self.height, self.width) * 8 / 7)
        width, height = (int(shorter * side / min(image.size)) for side in image.size)
        left, top = int(round((width - self.width) / 2)), int(round((height - self.height) / 2))
        image = image.resize((width, height), Image.BILINEAR)
        return image.crop((left, top, left + self.width, top + self.height))


class Photographs(View):
    """The samples of a folder of files, by number."""

    def __init__(self, data):
        super(Photographs, self).__init__(data)
        self.files = data.photographs()

    def __len__(self):
        return len(self.files)

    def sample(self, number):
        """(bytes, label): red, green and blue of each pixel, [height, width, 3]."""
        from PIL import Image
        path, label = self.files[number]
        with Image.open(path) as image:
            return self.seen(image.convert("RGB")).tobytes(), label
