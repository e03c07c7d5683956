#!/usr/bin/env python3
"""Exports a user's model of PyTorch or Keras 3 to ONNX: -n model.py:NAME (docs/models.md).

    export_model.py FILE NAME FOLDER [INPUT=DIMS...]

NAME is a class, a function or an object in FILE; "" stands for the only torch.nn.Module that FILE defines. Needs the
standard library and PyTorch, and Keras for a model of Keras (export_keras.py). Writes to FOLDER: model.onnx; eager.safetensors with one batch of the inputs and the
logits that the model itself gives for it (eval mode); manifest.json. After a failure FOLDER/error has one
line that says what is wrong, and the exit code is 1.
"""
import contextlib
import ctypes
import importlib.machinery
import importlib.util
import inspect
import json
import os
import re
import sys
import traceback
import types
import warnings

import export_keras
import safetensors_io

BATCH = 2  # BatchNorm in training mode needs more than one sample
SEED = 1
KERAS = ("keras", "tensorflow", "tf_keras")
KERAS_REMEDY = ("a file with a model of Keras 3 has the line `import keras` or `from keras import ...`, and prony then exports "
                "it on Keras' backend torch; tensorflow.keras is another Keras")
EAGER_OUTPUT = "eager output"  # no name of an input, because it has a blank
FRAMES_SHOWN = 3
OPSET = 17  # the first with LayerNormalization; also PyTorch 1.13 writes it


class ModelError(Exception):
    """What the user can mend; its text is the message."""


class Sources(object):
    """The files of the user that make the model: {path: (bytes, time of the last change in ns)}. When one of them
    changes, the model is exported again."""

    def __init__(self):
        self.files, self.watching = {}, False
        sys.addaudithook(self._hook)

    def _hook(self, event, arguments):
        if self.watching and event == "open" and isinstance(arguments[0], str):
            self.add(arguments[0])

    def add(self, path):
        path = os.path.abspath(path)
        if path in self.files or not is_users(path) or not os.path.isfile(path):
            return
        state = os.stat(path)
        self.files[path] = (state.st_size, state.st_mtime_ns)

    def add_modules(self):
        """Modules that were read from a compiled file."""
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if isinstance(path, str):
                self.add(path)


def is_users(path):
    """Whether a path is neither Python's nor of the environment's packages."""
    installed = (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), os.path.dirname(os.path.abspath(__file__)),
                 "/proc", "/sys", "/dev")
    return os.path.isabs(path) and not any(path.startswith(folder + os.sep) for folder in installed) and (
        "site-packages" not in path.split(os.sep))


def describe(error):
    """An exception in one line, with the last lines of the user's files that led to it."""
    lines = ["%s:%s in %s: %s" % (os.path.basename(frame.filename), frame.lineno, frame.name, frame.line)
             for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    if isinstance(error, SyntaxError):
        lines.append("%s:%s: %s" % (os.path.basename(error.filename or "?"), error.lineno, (error.text or "").strip()))
        text = error.msg
    else:
        text = " ".join(re.sub("\x1b\\[[0-9;]*m", "", str(error)).split())  # Keras writes in bold
    text = "%s: %s" % (type(error).__name__, text)
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] in KERAS:
        text += "; " + KERAS_REMEDY
    elif isinstance(error, ModuleNotFoundError):
        text += ("; the Python of prony's PyTorch is %s: set PRONY_PYTORCH_PYTHON to the Python of an environment "
                 "that has both" % sys.executable)
    return "; ".join(lines[-FRAMES_SHOWN:] + [text])


def load(path):
    """The user's file as a module. Its folder is searched for the modules it imports."""
    name = os.path.splitext(os.path.basename(path))[0]
    if name in sys.modules:
        raise ModelError("a file named %s.py hides the module %s, which prony imports: rename it" % (name, name))
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find(module, name, torch):
    """(name, what has it in the module)."""
    own = {key: value for key, value in vars(module).items()
           if inspect.isclass(value) and issubclass(value, torch.nn.Module) and value.__module__ == module.__name__}
    if not name:
        if len(own) != 1:
            raise ModelError("say which model: write %s.py:NAME, where NAME is a torch.nn.Module or a function that "
                             "returns one; %s" % (module.__name__, "the file defines %s" % ", ".join(sorted(own)) if own
                                                  else "the file defines no torch.nn.Module"))
        name = next(iter(own))
    if not hasattr(module, name):
        raise ModelError("the file has no %s%s" % (name, "; it defines %s" % ", ".join(sorted(own)) if own else ""))
    return name, getattr(module, name)


def build(maker, torch):
    """The model of a class, a function or an object."""
    torch.manual_seed(SEED)
    export_keras.seed(SEED)
    model = maker if isinstance(maker, torch.nn.Module) else maker() if callable(maker) else maker
    if export_keras.is_model(model):
        return export_keras.wrap(model, torch)
    if not isinstance(model, torch.nn.Module):
        raise ModelError("it gives a %s, not a torch.nn.Module%s" % (
            type(model).__name__, "; " + KERAS_REMEDY if type(model).__module__.split(".")[0] in KERAS else ""))
    return model.cpu().train()


def declared_shapes(model, maker, module, torch):
    """[(dims, dtype)] of the attribute input_shapes of the model, its maker or the file."""
    for owner in (model, maker, module):
        declared = getattr(owner, "input_shapes", None)
        if declared is not None:
            break
    shapes = []
    for entry in declared or []:
        dims, dtype = entry, torch.float32
        if not isinstance(entry, (tuple, list)):
            raise ModelError("input_shapes has %r: write a list of shapes, one for each input, [(1, 28, 28)]" % (entry,))
        if len(entry) == 2 and isinstance(entry[0], (tuple, list)):
            dims, dtype = entry
            dtype = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
        if not isinstance(dtype, torch.dtype) or not all(isinstance(size, int) and size > 0 for size in dims):
            raise ModelError("input_shapes has %r: write a tuple of sizes without the batch, (1, 28, 28), or with a "
                             "type, ((16,), \"int64\")" % (entry,))
        shapes.append((tuple(dims), dtype))
    return shapes


def find_inputs(model, shapes, texts, torch):
    """([(name, dims, dtype)], [whether each text of --shape was used]). Names are those of forward()."""
    own = getattr(model, "keras_inputs", {})
    wanted = [p for p in inspect.signature(model.forward).parameters.values()
              if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [p.name for p in wanted] or list(own) or ["input_%d" % i for i in range(len(shapes))]
    if len(shapes) > len(names):
        raise ModelError("input_shapes has %d entries, but forward() takes %d inputs" % (len(shapes), len(names)))
    known = dict({name: each for name, each in own.items() if each[0] is not None}, **dict(zip(names, shapes)))
    used = []
    for text in texts:
        name, _, dims = text.partition("=")
        used.append(name in names)
        if used[-1]:
            try:
                sizes = tuple(int(size) for size in dims.split("x"))
            except ValueError:
                raise ModelError("--shape %s: write the sizes of one sample, --shape %s=1x28x28" % (text, name))
            known[name] = (sizes, known.get(name, own.get(name, (None, torch.float32)))[1])
    missing = [p.name for p in wanted if p.default is p.empty and p.name not in known] + [
        name for name in own if name not in known]
    if missing or not known:
        raise ModelError("the shape of its input %s is not known: write input_shapes = [(1, 28, 28)] in it (one "
                         "sample, without the batch; an integer input: ((16,), \"int64\")), or --shape %s=1x28x28"
                         % (", ".join(missing), (missing or ["x"])[0]))
    inputs = []
    for name in names:
        if name not in known:
            break
        inputs.append((name,) + known[name])
    return inputs, used


def draw(inputs, bounds, torch):
    """A batch: normal floats, integers below the bound of each input."""
    chance = torch.Generator().manual_seed(SEED)
    return [torch.randn((BATCH,) + dims, generator=chance, dtype=dtype) if dtype.is_floating_point
            else torch.randint(bound, (BATCH,) + dims, generator=chance).to(dtype)
            for (_, dims, dtype), bound in zip(inputs, bounds)]


def first_tensor(result, torch):
    """The first tensor of what a model returns."""
    while not isinstance(result, torch.Tensor):
        parts = list(result.values()) if hasattr(result, "values") else list(result)
        if not parts:
            raise ModelError("forward() returns no tensor")
        result = parts[0]
    return result


def draw_batch(model, inputs, torch):
    """A batch that the model accepts. Integers get the largest bound, a size of the model's embeddings, with which
    the model runs: a larger index is an error there."""
    sizes = sorted({m.num_embeddings for m in model.modules() if isinstance(m, torch.nn.Embedding)} if not
                   hasattr(model, "keras_inputs") else export_keras.table_sizes(model))
    bounds = [min(sizes or [2])] * len(inputs)
    model.eval()
    with torch.no_grad():
        model(*draw(inputs, bounds, torch))
        for i, (_, _, dtype) in enumerate(inputs):
            for size in sizes if not dtype.is_floating_point else []:
                tried = bounds[:i] + [size] + bounds[i + 1:]
                try:
                    model(*draw(inputs, tried, torch))
                except IndexError:
                    break
                bounds = tried
    return draw(inputs, bounds, torch)


def keep_buffers(model):
    """Undoes what the exporter's own training step changes in the model's running statistics."""
    kept = [(buffer, buffer.clone()) for buffer in model.buffers()]

    def restore(*_):
        for buffer, old in kept:  # not by an operation, because the exporter would record it
            ctypes.memmove(buffer.data_ptr(), old.data_ptr(), old.numel() * old.element_size())
    return model.register_forward_hook(restore)


def export(model, batch, inputs, path, torch):
    """Writes the ONNX file, with batch normalisation and dropout kept. Returns the user's lines whose Python values
    come from tensors: the file has the branch and the number of this batch only."""
    if importlib.util.find_spec("onnx") is None:
        # The exporter asks this package only for the functions of the user's own operators.
        none = types.SimpleNamespace(graph=types.SimpleNamespace(node=()))
        sys.modules["onnx"] = types.ModuleType("onnx")
        sys.modules["onnx"].__spec__ = importlib.machinery.ModuleSpec("onnx", None)
        sys.modules["onnx"].load_model_from_string = lambda _: none
    options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    model.train()
    hook = keep_buffers(model)
    forms = export_keras.own_operators() if hasattr(model, "keras_inputs") else contextlib.nullcontext()
    with forms, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", torch.jit.TracerWarning)
        torch.onnx.export(model, tuple(batch), path, training=torch.onnx.TrainingMode.PRESERVE,
                          do_constant_folding=False, opset_version=OPSET, input_names=[name for name, _, _ in inputs],
                          dynamic_axes={name: {0: "N"} for name, _, _ in inputs}, **options)
    hook.remove()
    return sorted({"%s:%d" % (os.path.basename(warning.filename), warning.lineno) for warning in caught
                   if is_users(warning.filename)})


def write_eager(model, batch, inputs, path, torch):
    """Writes the batch and the model's own logits."""
    model.eval()
    with torch.no_grad():
        logits = first_tensor(model(*batch), torch).to(torch.float32)
    names = {torch.float32: "F32", torch.int64: "I64", torch.int32: "I32"}
    tensors = []
    for name, tensor in list(zip([name for name, _, _ in inputs], batch)) + [(EAGER_OUTPUT, logits)]:
        if tensor.dtype not in names:
            raise ModelError("input %s has type %s: prony knows float32, int32 and int64" % (name, tensor.dtype))
        data = tensor.contiguous()
        raw = ctypes.string_at(data.data_ptr(), data.numel() * data.element_size())
        tensors.append(safetensors_io.Tensor(name, names[tensor.dtype], data.shape, raw))
    with open(path, "wb") as out:
        out.write(safetensors_io.header(tensors)[0])
        for tensor in tensors:
            out.write(tensor.data)


def run(path, name, folder, texts, sources):
    """Exports the model of a file; see above."""
    sources.add(path)
    export_keras.prepare()
    import torch
    sources.watching = True
    module = load(path)
    name, maker = find(module, name, torch)
    model = build(maker, torch)
    sources.watching = False
    sources.add_modules()
    inputs, used = find_inputs(model, declared_shapes(model, maker, module, torch), texts, torch)
    batch = draw_batch(model, inputs, torch)
    frozen = export(model, batch, inputs, os.path.join(folder, "model.onnx"), torch)
    write_eager(model, batch, inputs, os.path.join(folder, "eager.safetensors"), torch)
    by = "PyTorch %s" % torch.__version__
    if hasattr(model, "keras_inputs"):
        by = "Keras %s on %s" % (sys.modules["keras"].__version__, by)
    manifest = {"name": name, "version": by, "shapes_used": used,
                "frozen": ", ".join(frozen),
                "sources": [{"path": file, "bytes": size, "changed_ns": changed}
                            for file, (size, changed) in sorted(sources.files.items())]}
    with open(os.path.join(folder, "manifest.json"), "w") as out:
        json.dump(manifest, out)


def main(arguments):
    """The exit code."""
    path, name, folder = arguments[:3]
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    try:
        run(path, name, folder, arguments[3:], Sources())
    except ModelError as error:
        message = str(error)
    except (Exception, SystemExit) as error:
        message = describe(error)
    else:
        return 0
    with open(os.path.join(folder, "error"), "w") as out:
        out.write(message)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
