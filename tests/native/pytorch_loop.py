#!/usr/bin/env python3
"""PyTorch: LeNet as in pytorch/examples (mnist/main.py: zero_grad, forward, loss, backward, step), ResNet-50 as in
pytorch/examples (imagenet/main.py) with torchvision.models.resnet50, whose definition stands here where torchvision is not; GPT-2 is
in pytorch_gpt2.py."""
import torch
import torch.nn.functional as F
from torch import nn

import window
from pytorch_gpt2 import Gpt2


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.fc1, self.fc2 = nn.Linear(800, 500), nn.Linear(500, 10)

    def forward(self, x):
        x = F.max_pool2d(self.conv1(x), 2)
        x = F.max_pool2d(self.conv2(x), 2)
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False),
                                            nn.BatchNorm2d(4 * width))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


def resnet50():
    try:
        from torchvision.models import resnet50 as made
        return made()
    except ImportError:
        pass
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(inputs, width, stride if i == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def main():
    options = window.arguments(__doc__, ["lenet", "resnet50", "gpt2-bytes"], compile="through torch.compile")
    torch.set_num_threads(options.threads)
    torch.set_num_interop_threads(1)
    torch.manual_seed(1)
    if options.network == "gpt2-bytes":
        batches = [(torch.randint(window.WORDS, (options.batch, window.TOKENS)),
                    torch.randint(window.WORDS, (options.batch * window.TOKENS,))) for _ in range(window.SLOTS)]
    else:
        channels, rows, columns, classes = window.image_shape(options.network)
        batches = [(torch.randn(options.batch, channels, rows, columns),
                    torch.randint(classes, (options.batch,))) for _ in range(window.SLOTS)]
    model = {"lenet": LeNet, "resnet50": resnet50, "gpt2-bytes": Gpt2}[options.network]()
    train = options.stage == "train"
    model.train(train)
    run = torch.compile(model) if options.compile else model
    optimizer = torch.optim.SGD(model.parameters(), 0.001, momentum=0.9)

    def train_step(slot):
        data, target = batches[slot]
        optimizer.zero_grad()
        loss = F.cross_entropy(run(data), target)
        loss.backward()
        optimizer.step()

    def forward_step(slot):
        run(batches[slot][0])

    with torch.inference_mode(not train):
        window.run(train_step if train else forward_step, options, torch.__version__)


if __name__ == "__main__":
    main()
