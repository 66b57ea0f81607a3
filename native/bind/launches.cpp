// Launches of kernels on a GPU. Arguments are collected here, since that takes Python longer than the driver takes to
// launch.
#include "bind/launches.h"

#include <array>
#include <cstdint>

#include "bind/checks.h"

namespace tallytree {
namespace {

// cuLaunchKernel of the driver, which is loaded by Python: no header of CUDA is needed.
using Launch = int (*)(void *function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                       unsigned memory, void *stream, void **arguments, void **extra);

// The memory of Python's objects, until it goes out of scope.
class Buffers {
  public:
    explicit Buffers(nb::tuple objects) {
        require(objects.size() <= kMost, "a kernel has at most 8 arguments");
        for (nb::handle object : objects) {
            if (PyObject_GetBuffer(object.ptr(), &views_[count_], PyBUF_SIMPLE) != 0) {
                release();  // the destructor of what was not constructed is not called
                throw nb::python_error();
            }
            places[count_] = views_[count_].buf;
            count_++;
        }
    }
    ~Buffers() { release(); }
    Buffers(const Buffers &) = delete;
    Buffers &operator=(const Buffers &) = delete;

    static constexpr std::size_t kMost = 8;
    std::array<void *, kMost> places{};

  private:
    void release() {
        while (count_ > 0) PyBuffer_Release(&views_[--count_]);
    }

    std::array<Py_buffer, kMost> views_;
    std::size_t count_ = 0;
};

// Returns the driver's status. Arguments are objects with a buffer, each of the layout of a parameter.
int launch_kernel(std::uintptr_t launch, std::uintptr_t function, unsigned blocks, unsigned threads, unsigned memory,
                  std::uintptr_t stream, nb::tuple arguments) {
    Buffers given(arguments);
    const nb::gil_scoped_release unlocked;  // the driver waits if too many launches are pending
    return reinterpret_cast<Launch>(launch)(reinterpret_cast<void *>(function), blocks, 1, 1, threads, 1, 1, memory,
                                            reinterpret_cast<void *>(stream), given.places.data(), nullptr);
}

}  // namespace

void bind_launches(nb::module_ &m) {
    m.def("launch_kernel", &launch_kernel, "launch"_a, "function"_a, "blocks"_a, "threads"_a, "memory"_a, "stream"_a,
          "arguments"_a);
}

}  // namespace tallytree
