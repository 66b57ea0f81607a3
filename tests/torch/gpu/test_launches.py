"""Launches: what the driver gets, and what becomes of its errors. A function of C stands for the driver's."""

import ctypes
from contextlib import contextmanager

import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
from tallytree.kernels.launches import launch_kernel  # noqa: E402
from tallytree.torch.gpu import compiling  # noqa: E402
from tallytree.torch.gpu.structures import packing  # noqa: E402

LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *7 * [ctypes.c_uint], *2 * [ctypes.c_void_p], ctypes.c_void_p
)


class Driver:
    """Notes what was launched, with 8 bytes of two arguments; returns one status after the other."""

    def __init__(self, *statuses):
        self.statuses, self.seen, self.asked = list(statuses), [], []
        self.cuLaunchKernel = LAUNCH(self.launch)

    def launch(self, function, *given):
        *numbers, stream, arguments, extra = given
        places = (ctypes.c_void_p * 2).from_address(arguments)
        values = [place and ctypes.c_int64.from_address(place).value for place in places]
        self.seen.append((function, numbers, stream, values, extra))
        return self.statuses.pop(0) if self.statuses else 0

    def cuFuncSetAttribute(self, function, attribute, value):  # noqa: N802 (the driver's name)
        self.asked.append((function.value, attribute, value))
        return 0


@pytest.fixture
def driven(monkeypatch):
    """Return a kernel of device 1, and its driver, which returns some statuses."""

    def made(*statuses, current=1):
        driver = Driver(*statuses)
        monkeypatch.setattr(compiling, "_driver", lambda: driver)
        monkeypatch.setattr(compiling, "stream", lambda device: 70 + device)
        monkeypatch.setattr(compiling, "_current_device", lambda: current)
        return compiling.Kernel(1, ctypes.c_void_p(1234), ctypes.c_void_p(5)), driver

    return made


def packed(number):
    return packing("q")(number)


def test_what_the_driver_gets(driven):
    kernel, driver = driven()
    kernel(7, 128, 300, packed(-11), ctypes.c_int64(2**40))
    kernel(1, 32, 0, packed(3))
    first, second = driver.seen
    assert first == (1234, [7, 1, 1, 128, 1, 1, 300], 71, [-11, 2**40], None)
    assert second == (1234, [1, 1, 1, 32, 1, 1, 0], 71, [3, None], None)
    assert driver.asked == []


def test_a_block_with_much_memory_is_announced_once(driven):
    kernel, driver = driven()
    for memory in (100 << 10, 90 << 10, 47 << 10):
        kernel(1, 32, memory, packed(0))
    assert driver.asked == [(1234, 8, 100 << 10)]
    assert len(driver.seen) == 3


def test_failures_are_told(driven):
    kernel, driver = driven(700, 700)
    with pytest.raises(tt.errors.TallytreeError, match="failed with status 700 in cuLaunchKernel"):
        kernel(1, 32, 0, packed(0))
    assert len(driver.seen) == 2


def test_a_thread_without_a_context_gets_one(driven, monkeypatch):
    kernel, driver = driven(201, 201)
    made = []

    class Stream:
        def synchronize(self):
            made.append(len(driver.seen))

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    kernel(1, 32, 0, packed(9))
    assert made == [2]
    assert [one[3][0] for one in driver.seen] == [9, 9, 9]


def test_another_device_is_current(driven, monkeypatch):
    kernel, driver = driven(current=0)
    used = []

    @contextmanager
    def device(number):
        used.append(number)
        monkeypatch.setattr(compiling, "_current_device", lambda: number)
        yield

    monkeypatch.setattr(torch.cuda, "device", device)
    kernel(1, 32, 0, packed(9))
    assert used == [1]
    assert len(driver.seen) == 1


def test_arguments_are_checked():
    driver = Driver()
    place = ctypes.cast(driver.cuLaunchKernel, ctypes.c_void_p).value
    with pytest.raises(TypeError):
        launch_kernel(place, 1, 1, 32, 0, 0, (packed(1), 5))
    with pytest.raises(ValueError, match="at most 8 arguments"):
        launch_kernel(place, 1, 1, 32, 0, 0, 9 * (packed(1),))
    assert driver.seen == []


def test_numbers_are_packed_as_in_c():
    class Part(ctypes.Structure):
        _fields_ = [("place", ctypes.c_void_p), ("number", ctypes.c_int)]

    class Whole(ctypes.Structure):
        _fields_ = [("first", Part), ("real", ctypes.c_double), ("second", Part), ("last", ctypes.c_int)]

    wanted = Whole(Part(1, -2), 0.5, Part(2**50, 3), 4)
    assert packing("Pi", "d", "Pi", "i")(1, -2, 0.5, 2**50, 3, 4) == bytes(wanted)
