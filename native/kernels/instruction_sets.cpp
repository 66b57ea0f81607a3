// Which kernels this machine can run.
#include <cstring>

#include "kernels/maxplus.h"

namespace tallytree {

#define TALLYTREE_DECLARE(isa)                   \
    namespace isa {                              \
    extern const KernelsOf<double> doubles;      \
    extern const KernelsOf<float> floats;        \
    extern const SumKernels sums;                \
    extern const SumProductKernels sum_products; \
    extern const ChainKernels chains;            \
    extern const MatrixKernels matrices;         \
    extern const TallyKernels tallies;           \
    extern const ColumnKernels columns;          \
    }
TALLYTREE_DECLARE(baseline)
#ifdef TALLYTREE_X86_64
TALLYTREE_DECLARE(v3)
TALLYTREE_DECLARE(v4)
#endif

const MaxPlusKernels *maxplus_kernels(const char *name) {
    struct Candidate {
        MaxPlusKernels kernels;
        bool runs;
    };
    static const Candidate candidates[] = {
#ifdef TALLYTREE_X86_64
        {{v4::doubles, v4::sums, "v4", v4::floats, v4::sum_products, v4::chains, v4::matrices, v4::tallies,
          v4::columns},
         __builtin_cpu_supports("x86-64-v4") != 0},
        {{v3::doubles, v3::sums, "v3", v3::floats, v3::sum_products, v3::chains, v3::matrices, v3::tallies,
          v3::columns},
         __builtin_cpu_supports("x86-64-v3") != 0},
#endif
        {{baseline::doubles, baseline::sums, "baseline", baseline::floats, baseline::sum_products, baseline::chains,
          baseline::matrices, baseline::tallies, baseline::columns},
         true},
    };
    for (const auto &c : candidates)
        if (c.runs && (name == nullptr || std::strcmp(name, c.kernels.name) == 0)) return &c.kernels;
    return nullptr;
}

}  // namespace tallytree
