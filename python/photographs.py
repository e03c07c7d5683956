"""Photographs as the input "native" of PyTorch and CNTK sees them: by Pillow, with the calls that torchvision's
RandomResizedCrop and RandomHorizontalFlip make in training, its Resize and CenterCrop in evaluation."""
import math
import random

AREAS, RATIOS, TRIES = (0.08, 1.0), (math.log(3 / 4), math.log(4 / 3)), 10


def problems(data):
    """List of str: why this data set (own_loader.Data) cannot be loaded here."""
    if data.format in ("images", "lmdb"):
        try:
            import PIL  # noqa: F401
        except ImportError:
            return ["input native: photographs need Pillow, which this environment has not: prony framework install "
                    "NAME makes prony's own again (NAME as in prony list frameworks)"]
    return data.problems()


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


class View(object):
    """What the network of a case sees of photographs; data is an own_loader.Data."""

    def __init__(self, data):
        self.training = data.training
        self.height, self.width = data.batch_shape[2:]

    def seen(self, image):
        """The part of a PIL.Image, as large as the network takes it."""
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
    """Numbered samples of a folder of files."""

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
