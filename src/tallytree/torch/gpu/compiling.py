"""Kernels in CUDA C++, compiled on first use by the compiler library that comes with PyTorch.

No separate compiler is needed: PyTorch's builds for NVIDIA devices include NVRTC. A kernel is compiled
for a number of states and a dtype, and cached for the life of the process.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from tallytree.errors import TallytreeError
from tallytree.kernels.launches import launch_kernel

_HEADERS = (
    "numbers.cuh",
    "sentences.cuh",
    "team.cuh",
    "words.cuh",
    "looking.cuh",
    "factors.cuh",
    "messages.cuh",
    "slopes.cuh",
    "products.cuh",
    "tables.cuh",
    "counted.cuh",
    "filling.cuh",
    "gathering.cuh",
    "asking.cuh",
    "sweeps.cuh",
    "sums.cuh",
    "wide.cuh",
    "courses.cuh",
    "risks.cuh",
)


class Kernel:
    """A function on the device."""

    def __init__(self, device: int, function: ctypes.c_void_p, module: ctypes.c_void_p) -> None:
        self._device, self._function = device, function.value or 0
        self._module = module  # keeps the code loaded
        self._memory = 47 << 10  # of 48 KiB, which includes static shared memory
        self._launch = ctypes.cast(_driver().cuLaunchKernel, ctypes.c_void_p).value or 0

    def __call__(self, blocks: int, threads: int, memory: int, *arguments: Any) -> None:
        """Launch on the current stream of the device.

        Arguments are bytes, or other objects with a buffer, in the form of C: see
        :mod:`tallytree.torch.gpu.structures`.
        """
        if memory > self._memory:  # more than the default limit of a block
            _called(_driver().cuFuncSetAttribute, self._device, ctypes.c_void_p(self._function), 8, memory)
            self._memory = memory
        inputs = self._launch, self._function, blocks, threads, memory, stream(self._device), arguments
        if _current_device() != self._device or launch_kernel(*inputs):  # not the usual case, or a failure
            _called(launch_kernel, self._device, *inputs)


def _called(function: Any, device: int, *arguments: Any) -> None:
    """Call a function of the driver with a device as the current one."""
    if _current_device() != device:
        with torch.cuda.device(device):
            _called(function, device, *arguments)
        return
    status = function(*arguments)
    if status == _NO_CONTEXT:  # a new thread: let PyTorch create its context
        torch.cuda.current_stream(device).synchronize()
        status = function(*arguments)
    if status:
        _checked(status, "cuLaunchKernel" if function is launch_kernel else function.__name__)


_NO_CONTEXT = 201
_current_device = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)
_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
"""What PyTorch's own functions call, without their checks, which take longer than a launch."""


def stream(device: int) -> int:
    """Return the address of the current stream."""
    if _current_stream is None:
        return torch.cuda.current_stream(device).cuda_stream
    found: int = _current_stream(device)
    return found


def is_idle(device: int, stream: int) -> bool:
    """Return whether a stream has finished its work; raise an error if it failed."""
    if _current_device() != device:
        with torch.cuda.device(device):
            return is_idle(device, stream)
    status: int = _driver().cuStreamQuery(stream)
    if status and status != _NOT_READY:
        _checked(status, "cuStreamQuery")
    return not status


_NOT_READY = 600


def capturing() -> bool:
    """Return whether launches are captured in a CUDA graph, so that nothing may be waited for."""
    started = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return started and torch.cuda.is_current_stream_capturing()


@contextmanager
def preparing(device: torch.device) -> Iterator[None]:
    """Allow what a capture forbids, on another stream: memory of the host, copies, loading kernels.

    Without a capture, nothing changes.
    """
    if not capturing():
        yield
        return
    mode = ctypes.c_int(_RELAXED)
    exchange = _driver().cuThreadExchangeStreamCaptureMode
    _called(exchange, device.index or 0, ctypes.byref(mode))
    try:
        with torch.cuda.stream(_beside(device)):
            yield
            torch.cuda.current_stream().synchronize()
    finally:
        _called(exchange, device.index or 0, ctypes.byref(mode))


_RELAXED = 2


@functools.cache
def _beside(device: torch.device) -> torch.cuda.Stream:
    """Return a stream for preparations."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def real(number: float, kind: str) -> Any:
    """Return a number for a kernel, ``"float"`` or ``"double"``."""
    return ctypes.c_float(number) if kind == "float" else ctypes.c_double(number)


def _checked(status: int, what: str) -> None:
    if status:
        raise TallytreeError(
            f"the GPU driver failed with status {status} in {what}; see the list of CUDA driver errors"
        )


def kernel(source: str, name: str, device: torch.device, **settings: Any) -> Kernel:
    """Return the kernel `name` of a source file, or of a source, for a device; settings are macros."""
    place = torch.device(device)
    with preparing(place):
        return _loaded(source, name, place.index or 0, tuple(settings.items()))


@functools.cache
def processors(device: torch.device) -> int:
    """Return the number of multiprocessors of a device."""
    return torch.cuda.get_device_properties(device).multi_processor_count


@functools.cache
def has_clusters(device: torch.device) -> bool:
    """Return whether blocks of a device can work together: since compute capability 9.0 (Hopper)."""
    return torch.cuda.get_device_capability(device) >= (9, 0)


@functools.cache
def block_memory(device: torch.device) -> int:
    """Return the maximum shared memory of a block on a device."""
    properties = torch.cuda.get_device_properties(device)
    most: int = getattr(properties, "shared_memory_per_block_optin", 48 << 10)
    return most - (1 << 10)


@functools.cache
def plenty(device: torch.device) -> int:
    """Return the bytes that are used without a query for free memory, which is slow: 2 % of the memory."""
    return torch.cuda.get_device_properties(device).total_memory // 50


def room(device: torch.device) -> int:
    """Return the bytes available for tensors on a device: free memory, and what PyTorch has cached."""
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


@functools.cache
def _loaded(source: str, name: str, device: int, settings: tuple[tuple[str, Any], ...]) -> Kernel:
    code = _compiled(source, torch.cuda.get_device_capability(device), settings)
    driver = _driver()
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    with torch.cuda.device(device):
        torch.cuda.current_stream().synchronize()  # creates a context if needed
        _checked(driver.cuModuleLoadData(ctypes.byref(module), code), "cuModuleLoadData")
        _checked(
            driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), "cuModuleGetFunction"
        )
    return Kernel(device, function, module)


@functools.cache
def _compiled(source: str, capability: tuple[int, int], settings: tuple[tuple[str, Any], ...]) -> bytes:
    compiler = _nvrtc()
    files = resources.files(__package__) / "kernels"
    texts = [(files / header).read_bytes() for header in _HEADERS]
    program = ctypes.c_void_p()
    count = len(_HEADERS)
    status = compiler.nvrtcCreateProgram(
        ctypes.byref(program),
        source.encode() if "\n" in source else (files / source).read_bytes(),
        b"kernels.cu",
        count,
        (ctypes.c_char_p * count)(*texts),
        (ctypes.c_char_p * count)(*(header.encode() for header in _HEADERS)),
    )
    _checked(status, "nvrtcCreateProgram")
    options = [f"--gpu-architecture=sm_{capability[0]}{capability[1]}", "-std=c++17"]
    options += [f"-D{key}={value}" for key, value in settings]
    packed = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    if compiler.nvrtcCompileProgram(program, len(options), packed):
        raise TallytreeError(
            f"kernels do not compile for this GPU:\n{_text(compiler, program, 'ProgramLog').decode()}"
        )
    return _text(compiler, program, "CUBIN")


def _text(compiler: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(compiler, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(compiler, f"nvrtcGet{what}")(program, text)
    return text.raw


@functools.cache
def _driver() -> ctypes.CDLL:
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuStreamQuery.argtypes = [ctypes.c_void_p]
    return driver


@functools.cache
def _nvrtc() -> ctypes.CDLL:
    """Load the compiler library: the one next to PyTorch, or the system's."""
    major = (torch.version.cuda or "").partition(".")[0]
    name = f"libnvrtc.so.{major}"
    beside = sorted(Path(torch.__file__).parent.parent.glob(f"nvidia/**/{name}"))
    for candidate in [*map(str, beside), name]:
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise TallytreeError(
        f"{name}, which compiles kernels for the GPU, was not found next to PyTorch {torch.__version__} or "
        "on the system; install PyTorch's CUDA build with pip, which has it, or move the tensors to the CPU"
    )
