"""The emulator itself: small kernels with mistakes that it must find."""

import numpy as np
import pytest

pytest.importorskip("torch")

from kernel_emulator import Emulator

from tallytree.torch.gpu.structures import packing

KERNEL = """
struct Asked {
    int *out;
    long long unused[2];
};
extern "C" __global__ void turned(const __grid_constant__ Asked asked) {
    BLOCK_MEMORY;
    int *shared = reinterpret_cast<int *>(memory), own = threadIdx.x;
    BODY
    asked.out[blockIdx.x * blockDim.x + own] = shared[blockDim.x - 1 - own];
}
"""


def run(emulator: Emulator, body: str, blocks: int = 3, threads: int = 64, memory: int = 256) -> np.ndarray:
    """Return what a kernel writes that turns the numbers of its threads around, in two launches."""
    path = emulator.folder / f"turned{len(emulator.libraries)}.cu"
    path.write_text(KERNEL.replace("BODY", body))
    kernel, out = (
        emulator.kernel(str(path), "turned", None),
        np.full((2, blocks, threads), -7, dtype=np.int32),
    )
    for launch in out:
        kernel(blocks, threads, memory, packing("qqq")(launch.ctypes.data, 0, 0))
    return out


def test_barriers(emulator: Emulator) -> None:
    out = run(emulator, "shared[own] = own; __syncthreads();")
    np.testing.assert_array_equal(out, np.broadcast_to(np.arange(64)[::-1], out.shape))


@pytest.mark.parametrize("body", ["shared[own] = own;", "shared[own] = own; __syncwarp();"])
def test_a_missing_barrier_of_the_block(emulator: Emulator, body: str) -> None:
    out = run(emulator, body)
    assert (out == -1).any(), "some numbers are read before they are written"


@pytest.mark.parametrize("barrier", ["", "__syncwarp();"])
def test_a_missing_barrier_of_the_warp(emulator: Emulator, barrier: str) -> None:
    """A number that is replaced before all others have read it."""
    body = f"shared[own] = own; __syncwarp(); int seen = shared[own ^ 31]; {barrier} shared[own] = seen;"
    out = run(emulator, body + "__syncthreads();")
    right = np.broadcast_to(np.arange(64)[::-1] ^ 31, out.shape)
    assert np.array_equal(out, right) == bool(barrier)


def test_what_a_warp_exchanges(emulator: Emulator) -> None:
    body = """
    unsigned odd = __ballot_sync(~0u, own % 2);
    int most = __reduce_max_sync(~0u, own % 5 - 9), least = __reduce_min_sync(~0u, own - 40);
    int other = __shfl_xor_sync(~0u, own, 1), before = __shfl_up_sync(~0u, own, 2);
    int first = __shfl_sync(~0u, own, 0);
    int end = own / 32 * 32, expected = own % 32 < 2 ? own : own - 2;
    bool right = odd == 0xaaaaaaaau && most == -5 && least == end - 40;
    right = right && other == (own ^ 1) && before == expected && first == end;
    shared[own] = right ? own : -5;
    __syncthreads();
    """
    out = run(emulator, body)
    np.testing.assert_array_equal(out, np.broadcast_to(np.arange(64)[::-1], out.shape))


def test_threads_that_have_ended(emulator: Emulator) -> None:
    """They take no part in what the rest of their warp does."""
    body = "if (own % 2) return; shared[own + 1] = int(__ballot_sync(~0u, true)); __syncthreads();"
    out = run(emulator, body)
    assert np.unique(out[..., ::2]).tolist() == [0x55555555]
    assert np.unique(out[..., 1::2]).tolist() == [-7]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if (own) __syncwarp(); else __shfl_sync(~0u, own, 0);", "wait for different things"),
        ("if (own % 2) __syncthreads(); else __syncwarp();", "wait for different things"),
        ("__shfl_sync(1u, own, 0);", "only whole warps"),
        ("if (own == 63) shared[64] = 1;", "beyond the memory of the block"),
    ],
)
def test_mistakes(emulator: Emulator, body: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        run(emulator, body)
    test_barriers(emulator)


def test_launches_that_do_not_fit(emulator: Emulator) -> None:
    with pytest.raises(AssertionError, match="no such blocks"):
        run(emulator, "", threads=48)
    path = emulator.folder / "small.cu"
    path.write_text(KERNEL.replace("BODY", ""))
    with pytest.raises(AssertionError, match="wrong size"):
        emulator.kernel(str(path), "turned", None)(1, 32, 0, packing("q")(0))
