"""Whole steps of PyTorch as CUDA graphs: the option cudagraph without compile."""
import torch

EAGER_STEPS = 1  # before the first capture: libraries choose algorithms, the optimiser makes its buffers


class CapturedStep:
    """Runs a step(slot) of which results and batches are lists in place. Each slot's first step after the eager
    ones is captured; from then on it is replayed, and its batch must stay where it is. The graphs share their
    memory, since they run one after the other. `kept` are the tensors whose gradients a reader wants."""

    def __init__(self, step, results, kept):
        self.step, self.results, self.kept = step, results, kept
        self.graphs, self.pool, self.eager = {}, torch.cuda.graph_pool_handle(), EAGER_STEPS

    def __call__(self, slot):
        if slot not in self.graphs:
            if self.eager > 0:
                self.eager -= 1
                return self._aside(slot)
            self._capture(slot)
        graph, self.results[:], gradients = self.graphs[slot]
        graph.replay()
        for tensor, gradient in zip(self.kept, gradients):
            tensor.grad = gradient

    def _aside(self, slot):
        """A step on another stream than the default one, as PyTorch asks for before a capture."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.step(slot)
        torch.cuda.current_stream().wait_stream(stream)

    def _capture(self, slot):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            self.step(slot)
        self.graphs[slot] = graph, list(self.results), [tensor.grad for tensor in self.kept]
