"""Answers questions of adapters about a case's graph. It uses the standard library only (Python 3.6 or newer).

`case` is a case.Case, `node` one of its nodes (dict), `attributes` the attributes of a node. Lists of pads are
ONNX's [top, left, bottom, right]. Nothing here changes a case."""
from safetensors_io import elements

GATES = "iofc"  # order of an LSTM's gates in the rows of the bundle's weights and bias


def problems(case, operators, refusals):
    """List of str: why an adapter cannot translate the graph. operators: names of the operators that it
    supports (any container); refusals: {operator: (case, node) -> the reason (str) why this node is not
    supported, or None}, said for the first node of the operator."""
    used, said = {name for node in case.nodes for name in node["inputs"] if name}, set()
    reasons = ["operator %s is not supported" % op
               for op in sorted({node["op"] for node in case.nodes} - set(operators))]
    for node in case.nodes:
        if used.intersection(node["outputs"][1:]):
            reasons.append("%s %s: its second output is used" % (node["op"], node["name"]))
        reason = refusals[node["op"]](case, node) if node["op"] in refusals else None
        if reason and (node["op"], reason) not in said:
            said.add((node["op"], reason))
            reasons.append("%s %s: %s" % (node["op"], node["name"], reason))
    if case.stage != "forward" and not case.graph.get("loss"):
        reasons.append("stage %s: the network has no loss" % case.stage)
    return reasons


def single_problems(case):
    """List of str: reasons for adapters that support only one float input and one label per sample."""
    reasons = ["%d inputs: only one is supported" % len(case.inputs)] if len(case.inputs) > 1 else []
    reasons += ["input %s: type %s is not supported" % (name, case.dtype(name))
                for name in case.inputs if case.dtype(name) != "F32"]
    if case.stage != "forward" and case.labels and case.ignores_labels():
        reasons.append("the loss ignores labels or has several per sample")
    return reasons


def gather_problem(case, node):
    """The reason if a Gather does not read rows of a table, else None."""
    axis = node["attributes"].get("axis", 0)
    return "only axis 0, not %d" % axis if axis else None


def caches(case):
    """List of str: the states that every step writes (TensorScatter)."""
    return [node["inputs"][0] for node in case.nodes if node["op"] == "TensorScatter"]


def wanted(case):
    """List of str: the values that a step computes: [logits], or [loss, logits] when it trains."""
    graph = case.graph
    return [graph["logits"]] if case.stage == "forward" else [graph["loss"], graph["logits"]]


def drops(case):
    """Whether Dropout is active in this case."""
    return bool(case.recipe["dropout"]) and case.stage != "forward"


def differentiates(case, op):
    """Whether a step computes the gradient of an operator of that name."""
    return case.stage != "forward" and any(node["op"] == op for node in case.nodes)


def last_uses(nodes, kept):
    """One list for each node: names of the values (parameters included) that no later node reads, which may be
    released after the node. kept: names that are never released."""
    seen, found = set(kept), []
    for node in reversed(nodes):
        names = [name for name in node["inputs"] + node["outputs"] if name]
        found.append([name for name in dict.fromkeys(names) if name not in seen])
        seen.update(names)
    return found[::-1]


def even(pads):
    """Whether the padding is the same on both sides."""
    return pads[:2] == pads[2:]


def within_half(attributes):
    """Whether a pool's padding is the same on both sides and at most half a window, as most frameworks
    require."""
    return even(attributes["pads"]) and all(
        2 * pad <= size for pad, size in zip(attributes["pads"], attributes["kernel_shape"]))


def window_reach(attributes, input_shape, shape):
    """[bottom, right]: the padding with which rounding down gives the graph's windows. It replaces ceil_mode,
    and is negative if no window reaches the end. input_shape and shape: of its input and output, N x C x H x
    W."""
    behind = []
    for i in range(2):
        dilation = attributes.get("dilations", [1, 1])[i]
        reach = ((shape[2 + i] - 1) * attributes["strides"][i] + 1
                 + (attributes["kernel_shape"][i] - 1) * dilation)
        behind.append(reach - attributes["pads"][i] - input_shape[2 + i])
    return behind


def same_padding(attributes, input_shape, shape):
    """Whether the padding is the one called "same": ceil(size / stride) windows, and an odd element of padding
    at the end."""
    for i in range(2):
        size, stride = input_shape[2 + i], attributes["strides"][i]
        window = (attributes["kernel_shape"][i] - 1) * attributes.get("dilations", [1, 1])[i] + 1
        count = -(-size // stride)
        total = max(0, (count - 1) * stride + window - size)
        if shape[2 + i] != count or attributes["pads"][i] != total // 2:
            return False
        # Padding at the end that no window reaches changes nothing.
        reach = (count - 1) * stride + window - attributes["pads"][i] - size
        if attributes["pads"][2 + i] < reach and not attributes.get("ceil_mode", False):
            return False
    return True


def window_counts(attributes, input_shape, shape):
    """The divisors of an AveragePool: (list of one int for each row of windows, list for each
    column); the divisor of a window is their product. Padding counts if the attribute says so; the part that
    ceil_mode adds never counts."""
    found = []
    for i in range(2):
        begin, end = (-attributes["pads"][i], input_shape[2 + i] + attributes["pads"][2 + i])
        if not attributes.get("count_include_pad", False):
            begin, end = 0, input_shape[2 + i]
        starts = [k * attributes["strides"][i] - attributes["pads"][i] for k in range(shape[2 + i])]
        found.append([min(start + attributes["kernel_shape"][i], end) - max(start, begin)
                      for start in starts])
    return tuple(found)


def transposed_size(attributes, input_shape):
    """[height, width] of a ConvTranspose before its padding is cut off."""
    a = attributes
    return [(input_shape[2 + i] - 1) * a["strides"][i] + (a["kernel_shape"][i] - 1) * a["dilations"][i] + 1
            + a["output_padding"][i] for i in range(2)]


def resize_weights(attributes, axis, size):
    """The matrix (list of rows) by which a linear Resize multiplies an axis (0: height, 1: width) with `size`
    elements."""
    scale = attributes["scales"][axis]
    count = size * scale
    rows = []
    for i in range(count):
        at = max(0.0, (i + 0.5) / scale - 0.5)
        if attributes["coordinate_transformation_mode"] == "align_corners":
            at = i * (size - 1.0) / (count - 1) if count > 1 else 0.0
        low = min(int(at), size - 1)
        row = [0.0] * size
        row[low] += 1.0 - (at - low)
        row[min(low + 1, size - 1)] += at - low
        rows.append(row)
    return rows


def splits(case, nodes):
    """{name of a Slice: (name of the first of its group, sizes, its index)} for Slices that together divide a
    whole value. One split has one concatenation as its gradient; separate slices would each have a gradient of
    the whole value's size."""
    groups, found = {}, {}
    for node in nodes:
        if node["op"] == "Slice" and node["attributes"]["step"] == 1:
            groups.setdefault((node["inputs"][0], node["attributes"]["axis"]), []).append(node)
    for (value, axis), group in groups.items():
        cuts = sorted(set((node["attributes"]["start"], node["attributes"]["end"])
                          for node in group))
        edges = [0] + [end for _, end in cuts]
        if (len(cuts) < 2 or [start for start, _ in cuts] != edges[:-1]
                or edges[-1] != case.shape(value)[axis]):
            continue
        sizes = [end - start for start, end in cuts]
        for node in group:
            cut = (node["attributes"]["start"], node["attributes"]["end"])
            found[node["name"]] = (group[0]["name"], sizes, cuts.index(cut))
    return found


def batch_stays_first(case, nodes):
    """Whether the nodes treat samples, along the first dimension, independently, so that another batch size
    works too."""
    batch = case.recipe["batch"]
    for node in nodes:
        shapes = [case.shape(name) for name in node["inputs"] + node["outputs"][:1]
                  if name and case.values[name]["kind"] in ("activation", "input")]
        moved = (node["op"] == "Expand"
                 or node["op"] == "Transpose" and node["attributes"]["perm"][0] != 0
                 or node["op"] in ("Concat", "Slice", "Softmax", "LayerNormalization", "RMSNormalization")
                 and node["attributes"]["axis"] == 0)
        # A weight with one row per sample of the batch.
        fixed = node["op"] in ("Add", "Sub", "Mul", "Div", "MatMul") and any(
            case.values[name]["kind"] in ("parameter", "state")
            and len(case.shape(name)) == len(case.shape(node["outputs"][0]))
            and case.shape(name)[0] != 1 for name in node["inputs"])
        fixed = fixed or node["op"] == "TensorScatter"
        if moved or fixed or any(shape and shape[0] != batch for shape in shapes):
            return False
    return True


def free_shape(case, shape):
    """A value's shape, with -1 for the batch if that is the first dimension, as in code for any batch size."""
    return [-1] + shape[1:] if shape[:1] == [case.recipe["batch"]] else shape


def gated(case):
    """Set of str: the parameters whose rows are the gates of an LSTM."""
    return {name for node in case.nodes if node["op"] == "LSTM" for name in node["inputs"][1:]}


def gate_order(letters):
    """For each gate of a framework, its index among the bundle's four blocks of rows: "ifco" (torch) gives [0,
    2, 3, 1]. gate_order_back is the inverse."""
    return [GATES.index(letter) for letter in letters]


def gate_order_back(letters):
    """For each gate of a bundle, its index among the framework's blocks of rows."""
    return [letters.index(letter) for letter in GATES]


def states_problem(case, node):
    """The reason if an LSTM or RNN is more than one that gives its last state, with ReLU in an RNN; else None."""
    a = node["attributes"]
    if a.get("sequence", False):
        return "the state of every time is not supported"
    if a.get("direction", "forward") != "forward":
        return "reading the last time first is not supported"
    return "an activation other than ReLU is not supported" if a.get("activation", "Relu") != "Relu" else None


def recurrent_problem(case, node):
    """The same, or the reason if it cannot be a layer that owns its weights."""
    return states_problem(case, node) or owner_problem(case, node)


def owner_problem(case, node):
    """The reason if a recurrent node cannot be a layer that owns its weights, else None."""
    for name in node["inputs"][1:]:
        if case.values[name]["kind"] != "parameter":
            return "its weights are not parameters"
        if sum(other["inputs"].count(name) for other in case.nodes) != 1:
            return "another operator also reads its weights"
    return None


def dilated_problem(case, node):
    """The reason if a pool or convolution needs dilations, else None."""
    return "dilations are not supported" if node["attributes"].get("dilations", [1, 1]) != [1, 1] else None


def even_size_problem(case, node):
    """The reason if an LRN has an even size, else None."""
    return "the size must be odd" if node["attributes"]["size"] % 2 == 0 else None


def dense_problem(case, node):
    """The reason if a Gemm is not x w + b with w of the shape outputs x inputs, else None."""
    a = node["attributes"]
    if a["transA"] or not a["transB"] or a["alpha"] != 1 or a["beta"] != 1:
        return "only x w + b is supported (no scale, no transposed input)"
    return None


def statistics_problem(case, node):
    """The reason if a batch has no variance for this BatchNormalization, else None."""
    if case.stage != "forward" and lone_value_per_channel(case, node):
        return "training needs more than one value per channel"
    return None


def shapes_problem(case, node):
    """The reason if the two operands have different shapes, else None."""
    first, second = (case.shape(name) for name in node["inputs"])
    return None if first == second else "the operands must have the same shape"


def variance_note(case):
    """For build's notes, in frameworks whose running variance is divided by n - 1."""
    return "running variance divided by n - 1" if normalised(case) else ""


def normalised(case):
    """Whether a step updates the running statistics of a batch normalisation."""
    return case.stage != "forward" and any(n["op"] == "BatchNormalization" for n in case.nodes)


def lone_value_per_channel(case, node):
    """Whether a BatchNormalization has only one value for each channel, and so no variance."""
    shape = case.shape(node["inputs"][0])
    return elements(shape) == shape[1]
