"""Forward, backward and update of a graph in Python's own floats (float64): slow, plain, and
independent of every framework. For networks of a few thousand multiply-accumulates.

Tensors are flat lists, row-major; shapes come from the graph."""
import math


class Reference(object):
    """bundle: worker_driver.Bundle. step(batch) leaves loss, logits and gradients."""

    def __init__(self, bundle):
        self.graph, self.recipe, self.shapes = bundle.graph, bundle.recipe, bundle.shapes
        self.batches = bundle.batches
        self.weights = {name: list(data) for name, data in bundle.weights.items()}
        self.momenta = {name: [0.0] * len(data) for name, data in bundle.weights.items()}

    def step(self, batch):
        x, y = self.batches[batch]
        values = dict(self.weights, x=x, y=y)
        tape = []
        for node in self.graph["nodes"]:
            forward = getattr(self, "_" + node["op"].lower())
            inputs = [values[name] for name in node["inputs"]]
            result, backward = forward(node, inputs)
            values[node["outputs"][0]] = result
            tape.append((node, backward))
        self.loss, self.logits = values[self.graph["loss"]], values[self.graph["logits"]]
        gradients = {self.graph["loss"]: [1.0]}
        for node, backward in reversed(tape):
            for name, gradient in zip(node["inputs"], backward(gradients[node["outputs"][0]])):
                if gradient is not None:
                    old = gradients.get(name)
                    gradients[name] = gradient if old is None else [
                        a + b for a, b in zip(old, gradient)]
        self.gradients = {name: gradients[name] for name in self.weights}
        if self.recipe["stage"] == "train":
            self._update()

    def _update(self):
        recipe = self.recipe
        lr, kind = recipe["learning_rate"], recipe["optimiser"]
        for name, w in self.weights.items():
            state = self.momenta[name]
            for i, gradient in enumerate(self.gradients[name]):
                g = gradient + recipe["weight_decay"] * w[i]
                if kind == "momentum":
                    state[i] = g = recipe["momentum"] * state[i] + g
                elif kind == "rmsprop":
                    state[i] = recipe["rho"] * state[i] + (1 - recipe["rho"]) * g * g
                    g = g / (math.sqrt(state[i]) + recipe["epsilon"])
                w[i] -= lr * g

    def _windows(self, node, kernel):
        """(output row, output column, [(kernel row, column, input row, column)]) of a window that
        moves over the first input; positions in the padding are left out."""
        height, width = self.shapes[node["inputs"][0]][2:]
        rows, columns = self.shapes[node["outputs"][0]][2:]
        a = node["attributes"]
        for i in range(rows):
            for j in range(columns):
                spots = []
                for p in range(kernel[0]):
                    for q in range(kernel[1]):
                        r = i * a["strides"][0] + p - a["pads"][0]
                        c = j * a["strides"][1] + q - a["pads"][1]
                        if 0 <= r < height and 0 <= c < width:
                            spots.append((p, q, r, c))
                yield i, j, spots

    def _conv(self, node, inputs):
        x, w, b = inputs
        n, channels, height, width = self.shapes[node["inputs"][0]]
        outs, per_group, kh, kw = self.shapes[node["inputs"][1]]
        _, _, rows, columns = self.shapes[node["outputs"][0]]
        group_outs = outs // node["attributes"]["group"]
        terms = []  # (output index, weight index, input index)
        for i, j, spots in self._windows(node, (kh, kw)):
            for s in range(n):
                for o in range(outs):
                    out = ((s * outs + o) * rows + i) * columns + j
                    for c in range(per_group):
                        source = o // group_outs * per_group + c
                        for p, q, r, k in spots:
                            terms.append((out, ((o * per_group + c) * kh + p) * kw + q,
                                          ((s * channels + source) * height + r) * width + k))
        plane = rows * columns
        y = [b[i // plane % outs] for i in range(n * outs * plane)]
        for out, weight, place in terms:
            y[out] += w[weight] * x[place]

        def backward(dy):
            dx, dw, db = [0.0] * len(x), [0.0] * len(w), [0.0] * outs
            for out, weight, place in terms:
                dx[place] += w[weight] * dy[out]
                dw[weight] += x[place] * dy[out]
            for i, value in enumerate(dy):
                db[i // plane % outs] += value
            return dx, dw, db
        return y, backward

    def _maxpool(self, node, inputs):
        x = inputs[0]
        n, channels, height, width = self.shapes[node["inputs"][0]]
        _, _, rows, columns = self.shapes[node["outputs"][0]]
        chosen = [0] * (n * channels * rows * columns)
        for i, j, spots in self._windows(node, node["attributes"]["kernel_shape"]):
            for plane in range(n * channels):
                places = [(plane * height + r) * width + c for _, _, r, c in spots]
                chosen[(plane * rows + i) * columns + j] = max(places, key=lambda k: x[k])

        def backward(dy):
            dx = [0.0] * len(x)
            for place, value in zip(chosen, dy):
                dx[place] += value
            return (dx,)
        return [x[place] for place in chosen], backward

    def _gemm(self, node, inputs):
        a, b, bias = inputs
        n, inner = self.shapes[node["inputs"][0]]
        outs = self.shapes[node["outputs"][0]][1]
        alpha = node["attributes"]["alpha"]
        if node["attributes"]["transB"]:
            at = lambda k, o: o * inner + k
        else:
            at = lambda k, o: k * outs + o
        y = [bias[o] + alpha * sum(a[s * inner + k] * b[at(k, o)] for k in range(inner))
             for s in range(n) for o in range(outs)]

        def backward(dy):
            da, db, dc = [0.0] * len(a), [0.0] * len(b), [0.0] * outs
            for s in range(n):
                for o in range(outs):
                    d = dy[s * outs + o]
                    dc[o] += d
                    for k in range(inner):
                        da[s * inner + k] += alpha * d * b[at(k, o)]
                        db[at(k, o)] += alpha * d * a[s * inner + k]
            return da, db, dc
        return y, backward

    def _relu(self, node, inputs):
        x = inputs[0]
        return [max(v, 0.0) for v in x], lambda dy: (
            [d if v > 0 else 0.0 for v, d in zip(x, dy)],)

    def _flatten(self, node, inputs):
        return inputs[0], lambda dy: (dy,)

    _dropout = _flatten  # the reference is for `dropout` false: the identity

    def _add(self, node, inputs):
        return [a + b for a, b in zip(*inputs)], lambda dy: (dy, dy)

    def _softmaxcrossentropyloss(self, node, inputs):
        logits, labels = inputs
        n, classes = self.shapes[node["inputs"][0]]
        loss, gradient = 0.0, []
        for s, label in enumerate(labels):
            row = logits[s * classes:(s + 1) * classes]
            peak = max(row)
            total = sum(math.exp(v - peak) for v in row)
            loss += (peak + math.log(total) - row[label]) / n
            gradient += [(math.exp(v - peak) / total - (o == label)) / n
                         for o, v in enumerate(row)]
        return [loss], lambda dy: ([dy[0] * g for g in gradient], None)
