"""Finds attention in a case's graph, softmax(scale q k' + mask) v, for frameworks that have it as one call. Standard
library only (Python 3.6 or newer); graph/attention.c finds the same."""
import copy

import graph_analysis

ATTENTION = "Attention"  # operator of the nodes that `fused` puts in
FORBIDDEN = -1e4         # its exponential is 0


class _Graph(object):
    def __init__(self, case):
        self.case = case
        self.causal = {}  # of masks that were looked at
        self.producers = {name: node for node in case.nodes for name in node["outputs"]}
        self.readers = {}
        for node in case.nodes:
            for name in node["inputs"]:
                self.readers.setdefault(name, []).append(node)

    def maker(self, name, *ops):
        """The node, of these operators, that computes a value which only one node reads, or None."""
        node = self.producers.get(name)
        if name == self.case.graph["logits"] or len(self.readers.get(name, ())) != 1:
            return None
        return node if node and node["op"] in ops else None

    def reader(self, name, op):
        """The only node that reads a value, if it is of this operator, or None."""
        readers = self.readers.get(name, ())
        alone = len(readers) == 1 and name != self.case.graph["logits"]
        return readers[0] if alone and readers[0]["op"] == op else None

    def number(self, name):
        """The number that a state of one element holds, or None."""
        shape = self.case.shape(name)
        if self.case.values[name]["kind"] != "state" or any(size != 1 for size in shape):
            return None
        return self.case.weight(name).data.cast("B").cast("f")[0]

    def scale(self, name):
        """(node, factor, other operand) if a Mul or Div by a number computes the value, else (None, 1.0, name)."""
        node = self.maker(name, "Mul", "Div")
        for side in (1, 0) if node else ():
            number = self.number(node["inputs"][side])
            if number is not None and (side == 1 or node["op"] == "Mul"):
                return node, number if node["op"] == "Mul" else 1.0 / number, node["inputs"][1 - side]
        return None, 1.0, name

    def outer_scale(self, name):
        """The same for a scale with which only nodes that move elements lie in between."""
        node = self.maker(name, "Reshape", "Transpose")
        while node:
            name = node["inputs"][0]
            node = self.maker(name, "Reshape", "Transpose")
        return self.scale(name)

    def is_causal(self, mask):
        """Whether a mask, a state, has 0 up to the diagonal, and right of it numbers whose exponential is 0."""
        shape = self.case.shape(mask)
        if mask not in self.causal:
            numbers, columns = self.case.weight(mask).data.cast("B").cast("f"), shape[-1]
            self.causal[mask] = len(shape) == 2 and all(
                number == 0 if i % columns <= i // columns else number <= FORBIDDEN
                for i, number in enumerate(numbers))
        return self.causal[mask]

    def attention(self, softmax):
        """(nodes that one call replaces, [(node of a scale above, its other operand)], the call as a node) if the
        node is the Softmax of an attention, else None."""
        inner, name, mask, factor = [softmax], softmax["inputs"][0], None, 1.0
        if softmax["attributes"]["axis"] not in (3, -1) or len(self.case.shape(name)) != 4:
            return None
        added = self.maker(name, "Add")
        if added:
            states = [i for i in (1, 0) if self.case.values[added["inputs"][i]]["kind"] == "state"]
            if not states:
                return None
            mask, name = added["inputs"][states[0]], added["inputs"][1 - states[0]]
            inner.append(added)
        node, times, name = self.scale(name)
        scores = self.maker(name, "MatMul")
        if not scores:
            return None
        scaled, by, key = self.scale(scores["inputs"][1])
        turned, factor = self.maker(key, "Transpose"), factor * times * by
        dropped = self.reader(softmax["outputs"][0], "Dropout")
        weights = (dropped or softmax)["outputs"][0]
        mixed = self.reader(weights, "MatMul")
        if not turned or not mixed or mixed["inputs"][0] != weights:
            return None
        perm = turned["attributes"]["perm"]
        q, k, v = scores["inputs"][0], turned["inputs"][0], mixed["inputs"][1]
        order = [perm[i] for i in (0, 1, 3, 2)] if len(perm) == 4 else []
        shapes = [self.case.shape(value) for value in (q, k, v)]
        if not order or any(len(shape) != 4 for shape in shapes) or not (
                shapes[0][:2] == [shapes[1][i] for i in order[:2]] == shapes[2][:2]):
            return None
        inner += [each for each in (node, scores, scaled, turned, dropped, mixed) if each]
        outer = []
        for name in (q, k):
            node, times, passed = self.outer_scale(name)
            factor *= times
            outer += [(node, passed)] if node else []
        return inner, outer, {
            "op": ATTENTION, "name": mixed["name"], "inputs": [q, k, v] + ([mask] if mask else []),
            "outputs": mixed["outputs"], "attributes": {
                "scale": factor, "key_order": order, "ratio": dropped["attributes"]["ratio"] if dropped else 0.0,
                "causal": bool(mask) and self.is_causal(mask)}}


def fused(case, known=True, drops=True):
    """A copy of the case in which a node of the operator ATTENTION stands for each attention, unless the option
    explicit is set or the framework has no such call (known), or it drops weights and the call cannot (drops). Its inputs are q, k, v and, if there is one, the
    mask; q, v and the result are N x H x T x d. Its attributes are scale (float), key_order (the permutation
    that makes k N x H x T x d), causal (bool: the mask is causal) and ratio (of the dropout of the weights).
    Nodes that scaled q or k become Identity. attention_note is for build's notes."""
    graph, result = _Graph(case), copy.copy(case)
    found = [graph.attention(node) for node in case.nodes if node["op"] == "Softmax"]
    found = [each for each in found if each]
    known = known and "explicit" not in case.options
    dropping = not drops and graph_analysis.drops(case)
    replaced = [each for each in found if known and not (dropping and each[2]["attributes"]["ratio"])]
    result.attention_note = "attention: fused %d of %d" % (len(replaced), len(found)) if found else ""
    changed = {}
    for inner, outer, call in replaced:
        changed.update((node["name"], None) for node in inner)
        changed.update((node["name"], dict(node, op="Identity", inputs=[passed], attributes={}))
                       for node, passed in outer)
        changed[call["name"]] = call
    result.nodes = [changed.get(node["name"], node) for node in case.nodes]
    result.nodes = [node for node in result.nodes if node]
    return result
