"""Forward, backward and update of a graph in Python's own floats (float64): slow, plain, and
independent of every framework. For networks of a few thousand multiply-accumulates.

Tensors are flat lists, row-major; shapes come from the graph."""
import math


def count(shape):
    product = 1
    for dimension in shape:
        product *= dimension
    return product


def indices(shape):
    """Every multi-index (list) of a shape, in row-major order."""
    for i in range(count(shape)):
        index = []
        for size in reversed(shape):
            index.insert(0, i % size)
            i //= size
        yield index


def flat(index, shape):
    place = 0
    for i, size in zip(index, shape):
        place = place * size + i
    return place


class Reference(object):
    """bundle: worker_driver.Bundle. step(batch) leaves loss, logits, gradients and states. The
    running variance is of the batch's divided by n - 1 when `unbiased`, as torch has it, else by n;
    RMSprop's epsilon stands inside of the root when `inside`."""

    def __init__(self, bundle, unbiased=True, inside=False):
        self.unbiased, self.inside = unbiased, inside
        self.graph, self.recipe, self.shapes = bundle.graph, bundle.recipe, bundle.shapes
        self.batches = bundle.batches
        self.weights = {name: list(data) for name, data in bundle.weights.items()}
        self.states = {name: list(data) for name, data in bundle.states.items()}
        self.training = self.recipe["stage"] != "forward"
        self.momenta = {name: [0.0] * len(data) for name, data in bundle.weights.items()}
        self.squares = {name: [0.0] * len(data) for name, data in bundle.weights.items()}
        self.updates = 0

    def step(self, batch):
        values = dict(self.weights, **self.states)
        values.update(self.batches[batch])
        tape = []
        for node in self.graph["nodes"]:
            forward = getattr(self, "_" + node["op"].lower())
            inputs = [values[name] for name in node["inputs"]]
            result, backward = forward(node, inputs)
            values[node["outputs"][0]] = result
            tape.append((node, backward))
        self.loss, self.logits = values[self.graph["loss"]], values[self.graph["logits"]]
        if not self.training:
            return
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
        self.updates += 1
        for name, w in self.weights.items():
            state = self.momenta[name]
            for i, gradient in enumerate(self.gradients[name]):
                if kind == "adamw":
                    w[i] -= lr * self._adamw(name, i, gradient, w[i])
                    continue
                g = gradient + recipe["weight_decay"] * w[i]
                if kind == "momentum":
                    state[i] = g = recipe["momentum"] * state[i] + g
                elif kind == "rmsprop":
                    state[i] = recipe["rho"] * state[i] + (1 - recipe["rho"]) * g * g
                    epsilon = recipe["epsilon"]
                    g = g / (math.sqrt(state[i] + epsilon) if self.inside
                             else math.sqrt(state[i]) + epsilon)
                w[i] -= lr * g

    def _adamw(self, name, i, g, w):
        """What the learning rate multiplies: decay only with two dimensions or more."""
        recipe, m, s = self.recipe, self.momenta[name], self.squares[name]
        beta1, beta2 = recipe["beta1"], recipe["beta2"]
        m[i] = beta1 * m[i] + (1 - beta1) * g
        s[i] = beta2 * s[i] + (1 - beta2) * g * g
        mean, square = m[i] / (1 - beta1 ** self.updates), s[i] / (1 - beta2 ** self.updates)
        decay = recipe["weight_decay"] if len(self.shapes[name]) >= 2 else 0.0
        return mean / (math.sqrt(square) + recipe["epsilon"]) + decay * w

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
        x, w, b = inputs + [None] * (3 - len(inputs))
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
        y = [b[i // plane % outs] if b else 0.0 for i in range(n * outs * plane)]
        for out, weight, place in terms:
            y[out] += w[weight] * x[place]

        def backward(dy):
            dx, dw, db = [0.0] * len(x), [0.0] * len(w), [0.0] * outs
            for out, weight, place in terms:
                dx[place] += w[weight] * dy[out]
                dw[weight] += x[place] * dy[out]
            for i, value in enumerate(dy):
                db[i // plane % outs] += value
            return (dx, dw, db)[:len(inputs)]
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

    _identity = _reshape = _flatten

    def _averagepool(self, node, inputs):
        x = inputs[0]
        n, channels, height, width = self.shapes[node["inputs"][0]]
        a = node["attributes"]
        pads, kernel, strides = a["pads"], a["kernel_shape"], a["strides"]
        terms, size = [], count(self.shapes[node["outputs"][0]])
        rows, columns = self.shapes[node["outputs"][0]][2:]
        for i, j, spots in self._windows(node, kernel):
            share = 1.0 / len(spots)
            if a["count_include_pad"]:  # but not what ceil_mode adds behind the padding
                tall = min(i * strides[0] - pads[0] + kernel[0], height + pads[2])
                wide = min(j * strides[1] - pads[1] + kernel[1], width + pads[3])
                share = 1.0 / ((tall - i * strides[0] + pads[0]) * (wide - j * strides[1] + pads[1]))
            for plane in range(n * channels):
                out = (plane * rows + i) * columns + j
                terms += [(out, (plane * height + r) * width + c, share) for _, _, r, c in spots]
        return self._linear(x, size, terms)

    def _globalaveragepool(self, node, inputs):
        x = inputs[0]
        area = self.shapes[node["inputs"][0]][2] * self.shapes[node["inputs"][0]][3]
        return self._linear(x, len(x) // area, [(i // area, i, 1.0 / area) for i in range(len(x))])

    @staticmethod
    def _linear(x, size, terms, fill=0.0):
        """y[out] = fill + sum of share * x[place] over the terms (out, place, share)."""
        y = [fill] * size
        for out, place, share in terms:
            y[out] += share * x[place]

        def backward(dy):
            dx = [0.0] * len(x)
            for out, place, share in terms:
                dx[place] += share * dy[out]
            return (dx,)
        return y, backward

    def _arranged(self, node, inputs, source):
        """y[index] = x[source(index)], a multi-index each; the source may be None: 0."""
        shape, size = self.shapes[node["inputs"][0]], count(self.shapes[node["outputs"][0]])
        terms = []
        for out, index in enumerate(indices(self.shapes[node["outputs"][0]])):
            place = source(index)
            if place is not None and all(0 <= i < n for i, n in zip(place, shape)):
                terms.append((out, flat(place, shape), 1.0))
        return self._linear(inputs[0], size, terms)

    def _transpose(self, node, inputs):
        perm = node["attributes"]["perm"]
        return self._arranged(node, inputs, lambda index: [
            index[perm.index(axis)] for axis in range(len(perm))])

    def _slice(self, node, inputs):
        a = node["attributes"]
        return self._arranged(node, inputs, lambda index: [
            a["start"] + a["step"] * i if axis == a["axis"] else i for axis, i in enumerate(index)])

    def _pad(self, node, inputs):
        a = node["attributes"]
        y, backward = self._arranged(node, inputs, lambda index: [
            i - before for i, before in zip(index, a["pads"])])
        inside, _ = self._arranged(node, [[1.0] * len(inputs[0])], lambda index: [
            i - before for i, before in zip(index, a["pads"])])
        return [v + (1.0 - hit) * a["value"] for v, hit in zip(y, inside)], backward

    def _concat(self, node, inputs):
        axis, terms, before = node["attributes"]["axis"], [], 0
        shape = self.shapes[node["outputs"][0]]
        spans, joined = [], []
        for name, x in zip(node["inputs"], inputs):
            for place, index in enumerate(indices(self.shapes[name])):
                index[axis] += before
                terms.append((flat(index, shape), len(joined) + place, 1.0))
            spans.append((len(joined), len(joined) + len(x)))
            joined = joined + x
            before += self.shapes[name][axis]
        y, backward = self._linear(joined, count(shape), terms)
        return y, lambda dy: [backward(dy)[0][a:b] for a, b in spans]

    def _gather(self, node, inputs):
        table, rows = inputs
        width = count(self.shapes[node["inputs"][0]][1:])
        return self._linear(table, len(rows) * width, [
            (i * width + k, row * width + k, 1.0) for i, row in enumerate(rows) for k in range(width)])

    def _reducemean(self, node, inputs):
        shape, axes = self.shapes[node["inputs"][0]], node["attributes"]["axes"]
        kept = [1 if axis in axes else n for axis, n in enumerate(shape)]
        share = count(kept) / count(shape)
        return self._linear(inputs[0], count(kept), [
            (flat([0 if axis in axes else i for axis, i in enumerate(index)], kept), place, share)
            for place, index in enumerate(indices(shape))])

    def _batchnormalization(self, node, inputs):
        x, scale, bias, mean, variance = inputs
        a, shape = node["attributes"], self.shapes[node["inputs"][0]]
        channels, inner = shape[1], count(shape[2:])
        of = [i // inner % channels for i in range(len(x))]
        n = len(x) // channels
        if self.training:
            keep = a["momentum"]
            correction = n / (n - 1.0) if self.unbiased else 1
            for which, name in enumerate(node["inputs"][3:]):
                batch = [0.0] * channels
                for c, v in zip(of, x):
                    batch[c] += (v - mean[c]) ** 2 / n if which else v / n
                old = self.states[name]
                self.states[name] = [keep * o + (1 - keep) * b * (correction if which else 1)
                                     for o, b in zip(old, batch)]
                if which:
                    variance = batch
                else:
                    mean = batch
        inverse = [1 / math.sqrt(v + a["epsilon"]) for v in variance]
        z = [(v - mean[c]) * inverse[c] for v, c in zip(x, of)]

        def backward(dy):
            dscale, dbias = [0.0] * channels, [0.0] * channels
            for d, v, c in zip(dy, z, of):
                dscale[c] += d * v
                dbias[c] += d
            dx = [scale[c] * inverse[c] * (d - dbias[c] / n - v * dscale[c] / n)
                  for d, v, c in zip(dy, z, of)]
            return dx, dscale, dbias, None, None
        return [scale[c] * v + bias[c] for v, c in zip(z, of)], backward

    def _lrn(self, node, inputs):
        x, a = inputs[0], node["attributes"]
        shape = self.shapes[node["inputs"][0]]
        channels, inner = shape[1], count(shape[2:])
        before, after = (a["size"] - 1) // 2, a["size"] // 2

        def around(i):
            c = i // inner % channels
            return [i + inner * k for k in range(-before, after + 1) if 0 <= c + k < channels]
        base = [a["bias"] + a["alpha"] / a["size"] * sum(x[k] ** 2 for k in around(i))
                for i in range(len(x))]

        def backward(dy):
            dx = [d * b ** -a["beta"] for d, b in zip(dy, base)]
            for i, d in enumerate(dy):
                slope = d * x[i] * -a["beta"] * base[i] ** (-a["beta"] - 1)
                for k in around(i):
                    dx[k] += slope * 2 * a["alpha"] / a["size"] * x[k]
            return (dx,)
        return [v * b ** -a["beta"] for v, b in zip(x, base)], backward

    def _recurrent(self, node, inputs, cell):
        """The last state of each sample. cell(a, c) has the weighted sums a of a step and the cells
        c before it: (state, cells, slopes), where slopes(dstate, dcells) is (da, dcells before)."""
        x, w, r, b = inputs
        n, steps, width = self.shapes[node["inputs"][0]]
        rows, hidden = self.shapes[node["inputs"][2]]
        dot = lambda m, j, v: sum(m[j * len(v) + k] * u for k, u in enumerate(v))
        tape, y = [], []
        for s in range(n):
            h, c = [0.0] * hidden, [0.0] * hidden
            for t in range(s * steps, (s + 1) * steps):
                before, features = h, x[t * width:(t + 1) * width]
                h, c, slopes = cell([b[j] + dot(w, j, features) + dot(r, j, h)
                                     for j in range(rows)], c)
                tape.append((features, before, slopes))
            y += h

        def backward(dy):
            dx, dw, dr, db = [[0.0] * len(v) for v in inputs]
            for s in range(n):
                dh, dc = dy[s * hidden:(s + 1) * hidden], [0.0] * hidden
                for t in reversed(range(s * steps, (s + 1) * steps)):
                    features, before, slopes = tape[t]
                    da, dc = slopes(dh, dc)
                    dh = [sum(da[j] * r[j * hidden + k] for j in range(rows))
                          for k in range(hidden)]
                    for j, d in enumerate(da):
                        db[j] += d
                        for k, v in enumerate(features):
                            dx[t * width + k] += d * w[j * width + k]
                            dw[j * width + k] += d * v
                        for k, v in enumerate(before):
                            dr[j * hidden + k] += d * v
            return dx, dw, dr, db
        return y, backward

    def _lstm(self, node, inputs):
        hidden = self.shapes[node["inputs"][2]][1]
        sigmoid = lambda v: 1 / (1 + math.exp(-v))

        def cell(a, before):
            i, o, f = [[sigmoid(v) for v in a[k * hidden:(k + 1) * hidden]] for k in range(3)]
            g = [math.tanh(v) for v in a[3 * hidden:]]
            c = [f[k] * before[k] + i[k] * g[k] for k in range(hidden)]
            bent = [math.tanh(v) for v in c]

            def slopes(dh, dc):
                dc = [dc[k] + dh[k] * o[k] * (1 - bent[k] ** 2) for k in range(hidden)]
                da = [dc[k] * g[k] * i[k] * (1 - i[k]) for k in range(hidden)]
                da += [dh[k] * bent[k] * o[k] * (1 - o[k]) for k in range(hidden)]
                da += [dc[k] * before[k] * f[k] * (1 - f[k]) for k in range(hidden)]
                da += [dc[k] * i[k] * (1 - g[k] ** 2) for k in range(hidden)]
                return da, [dc[k] * f[k] for k in range(hidden)]
            return [o[k] * bent[k] for k in range(hidden)], c, slopes
        return self._recurrent(node, inputs, cell)

    def _rnn(self, node, inputs):
        def cell(a, before):
            return [max(v, 0.0) for v in a], before, lambda dh, dc: (
                [d if v > 0 else 0.0 for v, d in zip(a, dh)], dc)
        return self._recurrent(node, inputs, cell)

    def _softmax(self, node, inputs):
        shape, axis = self.shapes[node["inputs"][0]], node["attributes"]["axis"]
        rows = {}
        for place, index in enumerate(indices(shape)):
            rows.setdefault(tuple(index[:axis] + index[axis + 1:]), []).append(place)
        y = [0.0] * len(inputs[0])
        for places in rows.values():
            total = sum(math.exp(inputs[0][k]) for k in places)
            for k in places:
                y[k] = math.exp(inputs[0][k]) / total

        def backward(dy):
            dx = [0.0] * len(y)
            for places in rows.values():
                mean = sum(dy[k] * y[k] for k in places)
                for k in places:
                    dx[k] = y[k] * (dy[k] - mean)
            return (dx,)
        return y, backward

    def _binary(self, node, inputs, function, slopes):
        shape = self.shapes[node["outputs"][0]]
        places = []  # of each output element, in both inputs: those of length 1 are repeated
        for index in indices(shape):
            places.append([flat([i if n > 1 else 0 for i, n in zip(index, self.shapes[name])],
                                self.shapes[name]) for name in node["inputs"]])
        a, b = inputs

        def backward(dy):
            da, db = [0.0] * len(a), [0.0] * len(b)
            for d, (i, j) in zip(dy, places):
                da[i] += d * slopes(a[i], b[j])[0]
                db[j] += d * slopes(a[i], b[j])[1]
            return da, db
        return [function(a[i], b[j]) for i, j in places], backward

    def _add(self, node, inputs):
        return self._binary(node, inputs, lambda a, b: a + b, lambda a, b: (1, 1))

    def _sub(self, node, inputs):
        return self._binary(node, inputs, lambda a, b: a - b, lambda a, b: (1, -1))

    def _mul(self, node, inputs):
        return self._binary(node, inputs, lambda a, b: a * b, lambda a, b: (b, a))

    def _div(self, node, inputs):
        return self._binary(node, inputs, lambda a, b: a / b, lambda a, b: (1 / b, -a / b ** 2))

    def _elementwise(self, x, function, slope):
        return [function(v) for v in x], lambda dy: ([d * slope(v) for d, v in zip(dy, x)],)

    def _neg(self, node, inputs):
        return self._elementwise(inputs[0], lambda v: -v, lambda v: -1)

    def _tanh(self, node, inputs):
        return self._elementwise(inputs[0], math.tanh, lambda v: 1 - math.tanh(v) ** 2)

    def _sigmoid(self, node, inputs):
        sigmoid = lambda v: 1 / (1 + math.exp(-v))
        return self._elementwise(inputs[0], sigmoid, lambda v: sigmoid(v) * sigmoid(-v))

    def _clip(self, node, inputs):
        low, high = node["attributes"]["min"], node["attributes"]["max"]
        return self._elementwise(inputs[0], lambda v: min(max(v, low), high),
                                 lambda v: float(low < v < high))

    def _hardsigmoid(self, node, inputs):
        alpha, beta = node["attributes"]["alpha"], node["attributes"]["beta"]
        return self._elementwise(inputs[0], lambda v: min(max(alpha * v + beta, 0.0), 1.0),
                                 lambda v: alpha if 0 < alpha * v + beta < 1 else 0.0)

    def _hardswish(self, node, inputs):
        return self._elementwise(
            inputs[0], lambda v: v * min(max(v / 6 + 0.5, 0.0), 1.0),
            lambda v: 0.0 if v <= -3 else 1.0 if v >= 3 else v / 3 + 0.5)

    def _halfsumofsquares(self, node, inputs):
        return [sum(v * v for v in inputs[0]) / 2], lambda dy: ([dy[0] * v for v in inputs[0]],)

    def _softmaxcrossentropyloss(self, node, inputs):
        logits, labels = inputs
        classes = self.shapes[node["inputs"][0]][1]
        loss, gradient, n = 0.0, [], sum(label != -1 for label in labels)
        for s, label in enumerate(labels):
            if label == -1:
                gradient += [0.0] * classes
                continue
            row = logits[s * classes:(s + 1) * classes]
            peak = max(row)
            total = sum(math.exp(v - peak) for v in row)
            loss += (peak + math.log(total) - row[label]) / n
            gradient += [(math.exp(v - peak) / total - (o == label)) / n
                         for o, v in enumerate(row)]
        return [loss], lambda dy: ([dy[0] * g for g in gradient], None)
