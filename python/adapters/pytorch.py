"""The adapter of PyTorch, eager or compiled (docs/frameworks-python.md, "pytorch")."""
import functools
import inspect
import os
import re
import shutil

import adapters

if adapters.target and adapters.target.world_size > 1:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # otherwise gloo asks the name server for this machine

import torch

import adapters.pytorch_data as pytorch_data
import adapters.pytorch_graph as pytorch_graph
import adapters.pytorch_recurrent as recurrent
import graph_analysis
import graph_attention
import own_loader
from adapters.pytorch_capture import CapturedStep
from errors import WorkerError
from safetensors_io import elements

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
# fp16 has five bits of exponent, so gradients are scaled. With torch's default of 65536 the first steps
# overflow and are skipped, which the gate would report as a missing update.
LOSS_SCALE = 1024.0
OPTIONS = ("channels_last", "compile", "cudagraph", "explicit", "fused", "max_autotune")
# The mode of torch.compile, by (max_autotune, cudagraph).
COMPILE_MODES = {(False, False): "default", (True, False): "max-autotune-no-cudagraphs",
                 (False, True): "reduce-overhead", (True, True): "max-autotune"}
SPEED_VARIABLES = ("OMP_", "MKL_", "KMP_", "GOMP_", "DNNL_", "ONEDNN_", "ATEN_", "TORCH", "PYTORCH_",
                   "CUDNN_", "CUDA_LAUNCH", "CUDA_MODULE", "CUDA_DEVICE", "CUBLAS_",
                   "NVIDIA_TF32_OVERRIDE")
LIBRARIES = (("mkl", r"Math Kernel Library Version (\S+)"), ("onednn", r"MKL-DNN v(\S+)"),
             ("openmp", r"OpenMP (\d+)"), ("cuda", r"CUDA_VERSION=([\d.]+)"),
             ("cudnn", r"CUDNN_VERSION=([\d.]+)"))


def _cpu_precisions():
    """The precisions for which the CPU has instructions; others would run as slow loops."""
    found = ["fp32"]
    for word, ask in (("bf16", "_is_mkldnn_bf16_supported"), ("fp16", "_is_mkldnn_fp16_supported")):
        if getattr(torch.ops.mkldnn, ask, bool)():
            found.append(word)
    return found


def _compile_mode(case):
    return COMPILE_MODES["max_autotune" in case.options, "cudagraph" in case.options]


def _captures(case):
    """Whether whole steps are captured; with compile, torch captures the compiled parts itself."""
    return "cudagraph" in case.options and "compile" not in case.options


def _capture_problems(case):
    """List of str: why the option cudagraph is not supported."""
    reasons = []
    if "cudagraph" in case.options and case.device == "cpu":
        reasons.append("option cudagraph needs a GPU")
    if not _captures(case) or case.stage == "forward":
        return reasons
    if case.recipe["precision"] == "fp16":
        reasons.append("option cudagraph without compile cannot train in fp16: GradScaler reads from the GPU")
    if case.recipe["optimiser"] == "rmsprop" and "capturable" not in inspect.signature(
            torch.optim.RMSprop).parameters:
        reasons.append("option cudagraph: RMSprop of torch %s cannot be captured" % torch.__version__)
    return reasons


def _compile_problems(case):
    """List of str: why the options of torch.compile are not supported."""
    if "compile" not in case.options:
        return ["option max_autotune needs option compile"] if "max_autotune" in case.options else []
    reasons = []
    if not any(shutil.which(name) for name in (os.environ.get("CXX") or "g++", "g++", "clang++")):
        reasons.append("option compile needs a C++ compiler: install g++")
    if not hasattr(torch, "compile"):
        reasons.append("option compile needs torch 2.0 or newer")
    return reasons


def _rank_problems(target, options):
    """List of str: why several ranks are not supported."""
    if target.world_size == 1:
        return []
    reasons = ["option %s is not supported with several ranks" % word
               for word in ("compile", "cudagraph") if word in options]
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        reasons.append("several ranks: torch %s is built without gloo" % torch.__version__)
    return reasons


def _precisions(device):
    return _cpu_precisions() if device == "cpu" else ["fp32", "tf32", "fp16", "bf16"]


def _devices():
    return ["cpu"] + ["cuda:%d" % i for i in range(torch.cuda.device_count())]


def _instruction_set():
    """The instruction set that torch uses; torch 1.13 only reports it in a text."""
    if hasattr(torch.backends, "cpu"):
        return torch.backends.cpu.get_cpu_capability()
    found = re.search(r"CPU capability usage: (\S+)", torch.__config__.show())
    return found.group(1) if found else ""


class Adapter(adapters.Adapter):
    options = OPTIONS
    collectives = "gloo"

    @property
    def no_layers(self):
        for word in ("compile", "cudagraph"):
            if word in adapters.target.options:
                return "with the option %s there are no layers; profile without it" % word
        return ""

    def profile_begin(self, steps):
        from adapters.pytorch_profile import LayerProfile, Named, layers_of
        self.plain_step = self.step
        # Overrides the method of the class.
        self.module.forward = Named(self.module, layers_of(self.module, self.builder)).run
        self.layer_profile = LayerProfile()
        self.step = self.layer_profile.begin(self.step)

    def profile_end(self, instants):
        events = self.layer_profile.end(instants)
        del self.module.forward
        self.step = self.plain_step
        self.plain_step = self.layer_profile = None
        return events

    def hello(self):
        config = torch.__config__.show()
        found = [(name, re.search(pattern, config)) for name, pattern in LIBRARIES]
        devices = _devices()
        precisions = {word for device in devices for word in _precisions(device)}
        return {"name": "pytorch", "version": torch.__version__,
                "libraries": {name: match.group(1).split("-")[0] for name, match in found if match},
                "devices": devices, "precisions": sorted(precisions),
                "stages": ["forward", "forward-backward", "train"],
                "instruction_set": _instruction_set()}

    def supports(self, case):
        recipe = case.recipe
        reasons = adapters.unsupported(
            case, input=["resident", "stream", "native"], stage=["forward", "forward-backward", "train"],
            optimiser=["sgd", "momentum", "rmsprop", "adamw"])
        if recipe["precision"] not in _precisions(case.device):
            reasons.append("precision %s is not supported on this %s" % (recipe["precision"], case.device))
        if "fused" in case.options and recipe["optimiser"] == "rmsprop":
            reasons.append("option fused is not supported with rmsprop")
        if "fused" in case.options and "fused" not in inspect.signature(torch.optim.SGD).parameters:
            reasons.append("option fused: SGD of torch %s does not have it" % torch.__version__)
        reasons += _rank_problems(adapters.target, case.options)
        return reasons + _compile_problems(case) + _capture_problems(case) + pytorch_graph.problems(case)

    def open(self, case):
        recipe = case.recipe
        self.device = torch.device(case.device)
        self.cuda = self.device.type == "cuda"
        torch.set_num_threads(recipe["threads"])
        if torch.get_num_interop_threads() != 1:
            torch.set_num_interop_threads(1)
        target = adapters.target
        self.ranks, self.seed = target.world_size, recipe["seed"] + target.rank  # each rank its own masks
        torch.manual_seed(self.seed)
        if self.ranks > 1:
            torch.distributed.init_process_group(
                "gloo", "file://" + os.path.join(target.folder, "pytorch"), rank=target.rank, world_size=self.ranks)
        tf32 = recipe["precision"] == "tf32"
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
        if self.cuda:
            torch.cuda.set_device(self.device)
            torch.backends.cudnn.benchmark = True
            self.sync = torch.cuda.synchronize
        if case.stage == "forward":
            self.inference = torch.inference_mode()  # as around a user's loop; ends with the object
            self.inference.__enter__()
        self.low = DTYPES.get(recipe["precision"])
        return {"device": str(self.device), "threads": torch.get_num_threads(),
                "precision": self._precision(recipe["precision"]),
                "settings": self._settings(case)}

    def _precision(self, asked):
        """The precision in effect, read back from torch if possible."""
        if self.low:
            return asked
        if self.cuda and (torch.backends.cuda.matmul.allow_tf32
                          or torch.backends.cudnn.allow_tf32):
            return "tf32"
        return "fp32"

    def _settings(self, case):
        recipe = case.recipe
        settings = {
            "interop_threads": str(torch.get_num_interop_threads()),
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "memory_format": "channels_last" if "channels_last" in case.options else "contiguous",
            "execution": "compile" if "compile" in case.options else "eager",
            "inference_mode": str(torch.is_inference_mode_enabled()),
            "onednn": str(torch.backends.mkldnn.is_available()),
        }
        if self.ranks > 1:
            settings["data_parallel"] = "DistributedDataParallel"
        if "compile" in case.options:
            settings["compile_mode"] = _compile_mode(case)
        if _captures(case):
            settings["execution"] = "eager, each slot's step one CUDA graph"
        if self.cuda:
            settings["cudnn_benchmark"] = str(torch.backends.cudnn.benchmark)
            settings["cudnn_tf32"] = str(torch.backends.cudnn.allow_tf32)
        if self.low:
            settings["low_precision"] = ("weights converted" if case.stage == "forward"
                                         else "autocast, weights fp32")
            if self.low == torch.float16 and case.stage != "forward":
                settings["loss_scale"] = "dynamic from %g" % LOSS_SCALE
        if case.stage == "train":
            settings["optimiser"] = ("fused" if "fused" in case.options
                                     else "foreach" if self.cuda else "loop")
            if recipe["optimiser"] == "rmsprop":
                settings["rmsprop_epsilon"] = "outside"
        settings.update((name, os.environ[name]) for name in sorted(os.environ)
                        if name.startswith(SPEED_VARIABLES))
        return settings

    def build(self, case):
        self.case, self.captured = case, None
        self.forward_only = case.stage == "forward"
        self.batches = [None] * case.slots
        self.format = (torch.channels_last if "channels_last" in case.options
                       else torch.contiguous_format)
        self.weight_dtype = self.low if self.forward_only and self.low else torch.float32
        self.gated = graph_analysis.gated(case)
        self.parameters = {
            name: torch.nn.Parameter(self._weight(name), requires_grad=not self.forward_only)
            for name in case.parameters}
        self.states = {name: self._copied(case.weight(name), self.weight_dtype)
                       for name in case.states}
        builder = pytorch_graph.Builder(
            graph_attention.fused(case, pytorch_graph.SDPBackend is not None), self.parameters, self.states,
            self.low if self.forward_only else None)
        module = builder.module().train(not self.forward_only)
        self.module, self.builder = module, builder
        macs, kernels = self._count(module, builder)
        notes = ["%d activations in place" % builder.inplace] if builder.inplace else []
        if builder.case.attention_note:
            notes.append(", ".join([builder.case.attention_note] + kernels))
        if graph_analysis.normalised(case):
            notes.append("running variance divided by n - 1")
        if "compile" in case.options:
            notes.append("torch.compile fuses what it can")
            module = torch.compile(module, dynamic=False, mode=_compile_mode(case))
            self._compile_now(module)
        elif self.ranks > 1:
            module = torch.nn.parallel.DistributedDataParallel(module)
        else:
            # GraphModule's own call wraps errors, and imports much of torch to do so; when memory is exhausted,
            # that fails again with another error (SystemError).
            module = functools.partial(torch.nn.Module.__call__, module)
        self._make_step(module, case.stage == "train")
        if _captures(case):
            kept = [] if case.stage != "forward-backward" else list(self.parameters.values())
            self.step = self.captured = CapturedStep(self.step, self.results, kept)
        trained = self.parameters.values()
        return {"parameters": sum(p.numel() for p in trained if p.requires_grad or self.forward_only),
                "macs": macs, "notes": "; ".join(notes)}

    def _count(self, module, builder):
        """The module's multiply-accumulates, and its kernels of attention. cuDNN does not time algorithms for this small batch."""
        tries = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = False
        with torch.autocast(self.device.type, self.low, bool(self.low) and not self.forward_only):
            found = pytorch_graph.count(module, builder, self.device)
        torch.backends.cudnn.benchmark = tries
        torch.manual_seed(self.seed)
        return found

    def _copied(self, source, dtype=None):
        """Copies a Tensor to a torch tensor on the device, in the layout and, if given, with another dtype."""
        if elements(source.shape) == 0:
            raise WorkerError("unsupported", "tensor %s has no elements" % source.name)
        host = torch.frombuffer(source.data, dtype=pytorch_graph.TYPES[source.dtype]).reshape(source.shape)
        layout = self.format if len(source.shape) == 4 else torch.contiguous_format
        return host.to(self.device, dtype or host.dtype, memory_format=layout, copy=True)

    def _weight(self, name):
        """Copies a parameter to a torch tensor, with the gates of an LSTM in torch's order."""
        value = self._copied(self.case.weight(name), self.weight_dtype)
        return recurrent.to_torch(value) if name in self.gated else value

    def _make_optimiser(self):
        recipe = self.case.recipe
        choice = {"fused": True} if "fused" in self.case.options else {}
        capturable = {"capturable": True} if _captures(self.case) else {}
        trained = list(self.parameters.values())
        if recipe["optimiser"] == "rmsprop":
            return torch.optim.RMSprop(trained, recipe["learning_rate"], alpha=recipe["rho"],
                                       eps=recipe["epsilon"], weight_decay=recipe["weight_decay"], **capturable)
        if recipe["optimiser"] == "adamw":
            groups = [{"params": [value for value in trained if (value.dim() >= 2) == decays],
                       "weight_decay": recipe["weight_decay"] if decays else 0.0} for decays in (True, False)]
            return torch.optim.AdamW(groups, recipe["learning_rate"], (recipe["beta1"], recipe["beta2"]),
                                     recipe["epsilon"], **choice, **capturable)
        momentum = recipe["momentum"] if recipe["optimiser"] == "momentum" else 0.0
        return torch.optim.SGD(trained, recipe["learning_rate"], momentum=momentum,
                               weight_decay=recipe["weight_decay"], **choice)

    def _make_step(self, module, updates):
        """Sets step, with or without the update, and results: [loss or None, logits] of the last step."""
        self.results = results = [None, None]
        batches = self.batches
        self.scaler = None
        if self.forward_only:
            def step(slot):
                results[1] = module(*batches[slot])
            self.step = step
            return
        optimiser = self._make_optimiser()
        clear = optimiser.zero_grad
        update = optimiser.step if updates else None
        clip = self._clip() if updates else None
        if self.low is None:
            def step(slot):
                clear(set_to_none=True)
                loss, results[1] = module(*batches[slot])
                loss.backward()
                if clip:
                    clip()
                if update:
                    update()
                results[0] = loss
        else:
            step = self._low_step(module, optimiser, update, clip)
        self.step = step

    def _clip(self):
        """Clips all gradients, or None."""
        limit = self.case.recipe.get("clip_norm")
        trained = list(self.parameters.values())
        return functools.partial(torch.nn.utils.clip_grad_norm_, trained, limit) if limit else None

    def _low_step(self, module, optimiser, update, clip):
        """The step with autocast and, for fp16 gradients, a scaled loss."""
        results, batches, clear = self.results, self.batches, optimiser.zero_grad
        kind, dtype = self.device.type, self.low
        half = dtype == torch.float16
        if hasattr(torch.amp, "GradScaler"):
            scaler = torch.amp.GradScaler(kind, init_scale=LOSS_SCALE, enabled=half)
        else:  # before 2.3
            scaler = torch.cuda.amp.GradScaler(init_scale=LOSS_SCALE, enabled=half)
        self.scaler = scaler

        def step(slot):
            clear(set_to_none=True)
            with torch.autocast(kind, dtype=dtype):
                loss, results[1] = module(*batches[slot])
            scaler.scale(loss).backward()
            if clip:
                scaler.unscale_(optimiser)
                clip()
            if update:
                scaler.step(optimiser)
                scaler.update()
            results[0] = loss
        return step

    def _compile_now(self, module):
        """torch.compile compiles at the first call. Makes that call here, on batch 0 and without an update, and
        restores state and random numbers."""
        kept = {name: state.clone() for name, state in self.states.items()}
        self._make_step(module, False)
        self.feed(0, *self.case.batch(0))
        self.step(0)
        self.sync()
        for name, state in kept.items():
            self.states[name].copy_(state)
        for parameter in self.parameters.values():
            parameter.grad = None
        torch.manual_seed(self.seed)

    def feed(self, slot, inputs, labels):
        batch = [self._copied(part) for part in inputs + labels]
        self._place(slot, batch[:len(inputs)] if self.forward_only else batch)

    def _place(self, slot, batch):
        """Makes the batch that of its slot; a captured step reads it where the first one is."""
        if self.captured and slot in self.captured.graphs:
            for place, part in zip(self.batches[slot], batch):
                place.copy_(part)
        else:
            self.batches[slot] = batch

    def loader_problems(self, case):
        return pytorch_data.problems(own_loader.Data(case))

    def loader(self, case):
        return pytorch_data.loader(own_loader.Data(case))

    def take(self, slot, batch):
        x, y = batch
        layout = self.format if x.dim() == 4 else torch.contiguous_format
        x = x.to(self.device, memory_format=layout)
        self._place(slot, (x,) if self.forward_only else (x, y.to(self.device)))

    def read(self, what, tensors):
        for tensor in tensors:
            self._host(self._value(what, tensor.name), tensor)

    def _value(self, what, name):
        """The torch tensor for a Tensor that is to be read."""
        if what in ("logits", "loss"):
            return self.results[what == "logits"]
        if what == "state":
            return self.states[name]
        return self._bundled(name, self._gradient(name) if what == "gradients"
                             else self.parameters[name].detach())

    def _bundled(self, name, value):
        """A parameter's tensor or gradient, with gates in the bundle's order."""
        return recurrent.from_torch(value) if name in self.gated else value

    def _gradient(self, name):
        gradient = self.parameters[name].grad
        if gradient is None:
            raise WorkerError("invalid", "%s has no gradient" % name)
        # GradScaler.step has already divided by the scale.
        if self.scaler and self.scaler.is_enabled() and self.case.stage == "forward-backward":
            return gradient / self.scaler.get_scale()
        return gradient

    @staticmethod
    def _host(value, tensor):
        """Copies a torch tensor to an F32 Tensor of the same shape."""
        if list(value.shape) != tensor.shape:
            raise ValueError("%s has the shape %s, but the case says %s"
                             % (tensor.name, list(value.shape), tensor.shape))
        target = torch.frombuffer(tensor.data, dtype=torch.float32)
        target.reshape(tensor.shape).copy_(value.detach())

    def close(self):
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()

    def status_of(self, error):
        # On a GPU this is torch.OutOfMemoryError, a RuntimeError. On a CPU, and for memory of NVIDIA's
        # libraries (CUBLAS_STATUS_ALLOC_FAILED), there is no special type.
        if isinstance(error, RuntimeError) and any(
                text in str(error) for text in ("out of memory", "can't allocate memory",
                                                "not enough memory", "_STATUS_ALLOC_FAILED")):
            return "out-of-memory"
        return None
