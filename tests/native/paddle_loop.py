#!/usr/bin/env python3
"""PaddlePaddle: LeNet, trained as in PaddlePaddle's practice "image classification with LeNet on MNIST" (docs/practices/cv/image_classification),
its loop in plain Python: a Layer, cross_entropy, backward, step, clear_grad."""
import paddle
import paddle.nn.functional as F
from paddle import nn

import window


class LeNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2D(1, 20, 5), nn.Conv2D(20, 50, 5)
        self.linear1, self.linear2 = nn.Linear(800, 500), nn.Linear(500, 10)

    def forward(self, x):
        x = F.max_pool2d(self.conv1(x), 2, 2)
        x = F.max_pool2d(self.conv2(x), 2, 2)
        return self.linear2(F.relu(self.linear1(paddle.flatten(x, start_axis=1))))


def main():
    options = window.arguments(__doc__, ["lenet"])
    paddle.set_device("cpu")
    paddle.seed(1)
    model = LeNet()
    optim = paddle.optimizer.Momentum(0.001, 0.9, parameters=model.parameters())
    batches = [(paddle.randn((options.batch, 1, 28, 28)), paddle.randint(0, 10, (options.batch, 1)))
               for _ in range(window.SLOTS)]
    train = options.stage == "train"
    if train:
        model.train()
    else:
        model.eval()

    def train_step(slot):
        images, labels = batches[slot]
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optim.step()
        optim.clear_grad()

    def forward_step(slot):
        with paddle.no_grad():
            model(batches[slot][0])

    window.run(train_step if train else forward_step, options, paddle.__version__)


if __name__ == "__main__":
    main()
