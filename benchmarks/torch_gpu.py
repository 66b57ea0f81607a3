"""The layers for PyTorch on a GPU: losses with gradients from Python, and kernel rates relative to the peak.

Emissions are on the device, and losses and gradients stay there. A rate counts steps of the form
max(a, b + c): for every position, every two tags and every tally in reach. The peak is that of such steps in
registers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from common import Row, interleaved, show
from torch_layers import LABELS, POSITIONS, contenders, sentences, truths
from torch_steps import steps

import tallytree as tt

PEAK = """
#include "numbers.cuh"
extern "C" __global__ void peak(REAL *out, REAL step) {
    REAL x[16];
    for (int i = 0; i < 16; i++) x[i] = REAL(i + threadIdx.x);
    for (int round = 0; round < 4096; round++, step += REAL(1)) {
#pragma unroll
        for (int i = 0; i < 16; i++) x[i] = larger(x[i], x[(i + 1) % 16] + step);
    }
    REAL sum = 0;
    for (int i = 0; i < 16; i++) sum += x[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


def finished(run: Callable[[], object], torch: Any) -> Callable[[], object]:
    """Return a contender that waits for the device."""

    def waited() -> None:
        run()
        torch.cuda.synchronize()

    return waited


def peak(torch: Any, real: str) -> float:
    """Return the steps a second of dependent chains in registers."""
    from tallytree.torch.gpu import compiling

    device = torch.device("cuda")
    kernel = compiling.kernel(PEAK, "peak", device, REAL=real, STATES=1)
    blocks = 8 * compiling.processors(device)
    out = torch.empty(blocks * 256, dtype=torch.float64, device=device)
    place, number = ctypes.c_void_p(out.data_ptr()), compiling.real(0.5, real)
    times = interleaved({"": finished(lambda: kernel(blocks, 256, 0, place, number), torch)})
    return blocks * 256 * 16 * 4096 / times[""]


def nothing(torch: Any) -> Callable[[], object]:
    """Return a contender that computes nothing: a function with one gradient, on the device."""

    class Nothing(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, given: Any) -> Any:
            return given.new_empty(())

        @staticmethod
        def backward(ctx: Any, gain: Any) -> Any:
            return torch.empty_like(given)

    given = torch.zeros(64, POSITIONS, len(LABELS), device="cuda", requires_grad=True)
    return lambda: torch.autograd.grad(Nothing.apply(given), given)


NOT_CAPTURED = ("a count", "decoding", "pytorch-crf", "pytorch-crf decoding", "nothing")


def replayed(run: Callable[[], object], torch: Any) -> Callable[[], object]:
    """Return a contender that replays another as a CUDA graph."""
    with torch.cuda.stream(torch.cuda.Stream()):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    replay: Callable[[], object] = graph.replay
    return replay


def layers(torch: Any, theirs: Any, sizes: Sequence[int]) -> list[Row]:
    """Return one row for each batch and each thing that is done with it, called and replayed."""
    found = []
    for batch in sizes:
        runs = {"nothing": nothing(torch)} | contenders(batch, 4.0, theirs, "cuda")
        times = interleaved({name: finished(run, torch) for name, run in runs.items()}, budget=4.0)
        graphs = {name: replayed(run, torch) for name, run in runs.items() if name not in NOT_CAPTURED}
        alone = interleaved({name: finished(run, torch) for name, run in graphs.items()}, budget=1.0)
        for name, time in times.items():
            row: Row = {"batch": batch, "what": name, "ms": 1000 * time}
            found.append(row | {"replay, ms": 1000 * alone[name] if name in alone else None})
    return found


def searched(
    torch: Any, loss: Any, names: Any, real: Any, states: int = len(LABELS)
) -> tuple[Callable[[], object], int, int]:
    """Return the search for the most violated tags of 4,096 sentences by tables, its steps and its bytes."""
    from tallytree.torch.functions import Scores
    from tallytree.torch.gpu import backend, findings, searching
    from tallytree.torch.inputs import Ends

    tags = truths(256, torch).repeat(16, 1).cuda()
    tags, ends = tags % states, Ends(None, None, *tags.shape)
    scores = torch.randn(*tags.shape, states, device="cuda", dtype=real)
    links = torch.randn(states, states, device="cuda", dtype=real)
    counts = backend._Counted(Scores(scores, links, ends), loss, names, tags)
    known = counts.run(summed=False)
    assert known is not None
    found, run = known
    asked = searching.Values(found.losses, None, found.which, found.right, 1.0)
    steps = int(counts.counting.boxes[:, :-1, :2].long().prod(2).sum()) * states**2
    words = findings.slot(tags.device).quiet
    return lambda: searching.best(run, asked, known=words), steps, run.bytes


def rates(torch: Any) -> list[Row]:
    """Return what kernels reach of the peak, and the memory that they take beside what was forecast."""
    found = []
    for real, name in ((torch.float32, "float"), (torch.float64, "double")):
        most = peak(torch, name)
        for what, loss in (("token F1", tt.losses.FBeta(background=0)), ("chunk F1", tt.losses.ChunkFBeta())):
            run, steps, forecast = searched(torch, loss, tuple(LABELS), real)
            seconds = interleaved({"": finished(run, torch)})[""]
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            finished(run, torch)()
            taken = torch.cuda.max_memory_allocated() - before
            row: Row = {"numbers": name, "what": what, "ms": 1000 * seconds, "Top/s": steps / seconds / 1e12}
            found.append(
                row | {"of the peak": steps / seconds / most, "MB": taken / 1e6, "forecast": forecast / 1e6}
            )
    return found


def rates_by_tags(torch: Any) -> list[Row]:
    """Return what tables reach of the peak in single precision, for several numbers of tags."""
    most, found = peak(torch, "float"), []
    for states in (20, 23, 32, 45, 64):
        loss = tt.losses.FBeta(background=0)
        run, steps, _ = searched(torch, loss, None, torch.float32, states)
        seconds = interleaved({"": finished(run, torch)}, budget=0.5)[""]
        row: Row = {"tags": states, "ms": 1000 * seconds, "Top/s": steps / seconds / 1e12}
        found.append(row | {"of the peak": steps / seconds / most})
    return found


def by_bounds(torch: Any) -> list[Row]:
    """Return the times of the F1 hinge, by tables and by bounds; sentences have 5 to 25 words."""
    from tallytree.torch.functions import Scores
    from tallytree.torch.gpu import backend, findings, searching
    from tallytree.torch.inputs import Ends

    found, words = [], findings.slot(torch.device("cuda", 0)).quiet
    for batch in (64, 4096):
        for sharp, name in ((0.0, "random"), (4.0, "trained")):
            emissions, tags, mask = sentences(batch, sharp, "cuda")
            links = 0.1 * torch.randn(len(LABELS), len(LABELS), device="cuda")
            scores = Scores(emissions.detach(), links, Ends(None, mask, *tags.shape))
            loss = tt.losses.FBeta(background=0)
            known = backend._Counted(scores, loss, tuple(LABELS), tags).run(summed=False)
            assert known is not None
            truth, run = known
            asked = searching.Values(truth.losses, None, truth.which, truth.right, 1.0)
            runs = {
                "tables": partial(searching.best, run, asked, known=words),
                "bounds": partial(searching.best, run, asked, known=words, bounds=True),
            }
            times = interleaved({name: finished(one, torch) for name, one in runs.items()}, budget=0.5)
            row: Row = {"batch": batch, "scores": name}
            found.append(row | {f"{key}, ms": 1000 * seconds for key, seconds in times.items()})
    return found


def main(quick: bool = False) -> dict[str, list[Row]]:
    """Measure batches of 64 to 4,096 sentences; quickly, the layers alone."""
    try:
        import torch
    except ImportError:
        torch = None  # type: ignore[assignment]
    if torch is None or not torch.cuda.is_available():
        print("the layers for PyTorch on a GPU: skipped, because there is no GPU\n")
        return {}
    try:
        import torchcrf as theirs
    except ImportError:
        theirs = None
    machine = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}"
    note = f"{POSITIONS} positions, {len(LABELS)} tags, {machine}"
    tables = {"torch_gpu": layers(torch, theirs, (64, 4096) if quick else (64, 512, 4096))}
    show("Layers for PyTorch on a GPU, with gradients, called and replayed", tables["torch_gpu"], note)
    if quick:
        return tables
    tables |= {"torch_gpu_rates": rates(torch), "torch_gpu_tags": rates_by_tags(torch)}
    tables |= {"torch_gpu_bounds": by_bounds(torch), "torch_gpu_steps": steps(torch)}
    show("Searches of 4,096 sentences by tables", tables["torch_gpu_rates"], note)
    show("Searches of 4,096 sentences by tables, F1", tables["torch_gpu_tags"], note)
    show("F1 hinge with slack scaling, by tables and by bounds", tables["torch_gpu_bounds"], note)
    show(
        "Training steps of the example tagger, and the share of the loss", tables["torch_gpu_steps"], machine
    )
    return tables


if __name__ == "__main__":
    main()
