// A run's life: memory, the order of segments, and what is read straight from the tables.
#include "tables/run.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/rounding.h"
#include "tables/step_scheduler.h"
#include "tables/upward.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tallytree {

// ---- memory ------------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kKeepBytes = std::size_t{64} << 20;  // larger blocks go back to the system
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Blocks of middling size are the system's own: a heap that has fallen into pieces would hold more than a memory limit.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)  // a sanitizer looks at the heap alone
bool is_mapped(std::size_t bytes) { return bytes >= (std::size_t{128} << 10) && bytes < 2 * kHugePage; }
void *map(std::size_t bytes) {
    void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? nullptr : data;
}
void unmap(void *data, std::size_t bytes) { munmap(data, bytes); }
#else
bool is_mapped(std::size_t) { return false; }
void *map(std::size_t) { return nullptr; }
void unmap(void *, std::size_t) {}
#endif

// Large blocks ask for huge pages: a table is written once, so the time would go to page faults.
void *allocate(std::size_t bytes) {
    if (is_mapped(bytes)) return map(bytes);
    if (bytes < 2 * kHugePage) return std::aligned_alloc(kAlignment, bytes);
    void *data = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
#ifdef MADV_HUGEPAGE
    if (data) madvise(data, bytes, MADV_HUGEPAGE);
#endif
    return data;
}

void release(void *data, std::size_t bytes) {
    if (!data) return;
    is_mapped(bytes) ? unmap(data, bytes) : std::free(data);
}

struct Spare {
    std::mutex lock;
    void *data = nullptr;
    std::size_t bytes = 0;
};
Spare small_spare, large_spare;  // large arenas come and go between small ones, which should not wait for the system
Spare &spare_of(std::size_t bytes) { return bytes < 2 * kHugePage ? small_spare : large_spare; }

}  // namespace

Arena::Arena(Index bytes, Arena &&used) {
    bytes_ = (static_cast<std::size_t>(std::max<Index>(bytes, 1)) + kAlignment - 1) / kAlignment * kAlignment;
    if (used.bytes_ >= bytes_ && used.bytes_ <= std::max(kKeepBytes, bytes_)) {
        bytes_ = 0;
        swap(used);
        return;
    }
    {
        Spare &spare = spare_of(bytes_);
        const std::lock_guard guard(spare.lock);
        if (spare.data && spare.bytes >= bytes_ && spare.bytes <= 16 * bytes_ + 4096) {
            data_ = spare.data;
            bytes_ = spare.bytes;
            spare.data = nullptr;
        } else if (spare.bytes < bytes_) {  // this one will take its place
            release(std::exchange(spare.data, nullptr), spare.bytes);
        }
    }
    if (!data_) data_ = allocate(bytes_);
    if (!data_) throw std::bad_alloc();
}

Arena::~Arena() {
    if (!data_) return;
    void *data = data_;
    std::size_t bytes = bytes_;
    if (bytes <= kKeepBytes) {
        Spare &spare = spare_of(bytes);
        const std::lock_guard guard(spare.lock);
        if (!spare.data || spare.bytes < bytes) {
            std::swap(spare.data, data);
            std::swap(spare.bytes, bytes);
        }
    }
    release(data, bytes);
}

void Arena::trim(double memory_limit) {
    constexpr double kShare = 16;
    for (Spare *spare : {&small_spare, &large_spare}) {
        const std::lock_guard guard(spare->lock);
        if (spare->data && kShare * static_cast<double>(spare->bytes) > memory_limit)
            release(std::exchange(spare->data, nullptr), spare->bytes);
    }
}

// ---- the run ------------------------------------------------------------------------------------------------------

template <class Real>
RunOf<Real>::RunOf(std::shared_ptr<const Layout> layout, std::vector<TableBlock<double>> scores, AlgebraKind algebra,
                   std::uint64_t prime, const MaxPlusKernels *kernels, Arena used)
    : layout_(std::move(layout)),
      skeleton_(*layout_->skeleton),
      scores_(std::move(scores)),
      kind_(algebra),
      prime_(prime),
      kernels_(kernels),
      arena_(layout_->bytes(layout_->arena), std::move(used)) {}

// Of some cells of a segment, grains from which on threads are worth their start.
constexpr double kShared = 32;

template <class Real>
double RunOf<Real>::operations_needed(Index segment) const {
    return operations_of(*layout_, {layout_->segment_begin[segment], layout_->segment_begin[segment + 1]}, needed_);
}

template <class Real>
template <class Algebra>
void RunOf<Real>::run_segments(Algebra &algebra, Range segments, const Poll &poll, bool again) {
    std::vector<std::int32_t> steps;
    const Index last = layout_->segment_begin[segments.last];
    for (Index t = layout_->segment_begin[segments.first]; t < last; t += skeleton_.steps[t].together)
        if (!again || (!layout_->tables[t].checkpoint && !needed(static_cast<std::int32_t>(t)).empty()))
            steps.push_back(static_cast<std::int32_t>(t));
    loaded_ = -1;  // until all of them are there: an interrupt leaves tables of two segments in the same memory
    if (threads_.count > 1 && (!some_needed_ || operations_needed(segments.first) >= kShared * threads_.grain)) {
        run_together(algebra, steps, poll);
    } else {
        const TableRounding<Real> rounding;
        UpwardOf<Real> up(*this, poll);
        for (auto t : steps) up.step(algebra, t);
        if (!again && rounding.overflowed()) overflowed_ = true;
    }
    native_steps_ += static_cast<Index>(steps.size());
    loaded_ = segments.last - 1;
}

template <class Real>
template <class Algebra>
void RunOf<Real>::run_together(const Algebra &algebra, std::span<const std::int32_t> steps, const Poll &poll) {
    struct alignas(kAlignment) Member {  // what a thread has to itself
        Algebra algebra;
        std::optional<UpwardOf<Real>> up;
    };
    std::vector<Member> members(threads_.count);
    const StepWork work = [&](Worker &worker, std::int32_t t, Part part) {
        const TableRounding<Real> rounding;
        Member &member = members[worker.number];
        if (!member.up) {
            member.algebra = algebra;
            member.up.emplace(*this, worker.poll);
        }
        member.up->step(member.algebra, t, part);
        if (!some_needed_ && rounding.overflowed()) overflowed_ = true;
    };
    work_together(*layout_, steps, threads_, work, poll);
}

template <class Real>
template <class Action>
void RunOf<Real>::with_algebra(Action action) const {
    if constexpr (!Double<Real>) {
        MaxPlusOf<Real> algebra;
        action(algebra);
    } else if (kind_ == AlgebraKind::MaxPlus) {
        MaxPlus algebra;
        action(algebra);
    } else if (kind_ == AlgebraKind::LogSumExp) {
        LogSumExp algebra;
        algebra.kernels = kernels_;
        action(algebra);
    } else {
        CountingModulo algebra;
        algebra.prime = prime_;
        action(algebra);
    }
}

template <class Real>
void RunOf<Real>::upward(const Poll &poll, Threads threads) {
    threads_ = threads;
    const Poll usual = outside_tables<Real>(poll);
    with_algebra(
        [&](auto &algebra) { run_segments(algebra, {0, std::ssize(layout_->segment_begin) - 1}, usual, false); });
}

template <class Real>
void RunOf<Real>::load_segment(Index segment, const Poll &poll) {
    if (segment == loaded_) return;
    const Poll usual = outside_tables<Real>(poll);
    with_algebra([&](auto &algebra) { run_segments(algebra, {segment, segment + 1}, usual, true); });
}

// What such tables hold besides is nobody's, so that the next one who comes has them computed again.
template <class Real>
void RunOf<Real>::load_segment(Index segment, std::span<const TableCell> wanted, const Poll &poll) {
    if (segment == loaded_) return;
    if (!knows_needed_cells(*layout_)) return load_segment(segment, poll);
    needed_.resize(layout_->tables.size());
    find_needed_cells(*layout_, segment, wanted, needed_);
    some_needed_ = true;
    const auto whole = [this] {
        some_needed_ = false;
        loaded_ = -1;
    };
    try {
        load_segment(segment, poll);
    } catch (...) {
        whole();
        throw;
    }
    whole();
}

// Stretches are sorted in the layout's order of statistics, which need not be the user's.
static void sort_root(Root &root, Index n) {
    std::vector<Index> order(root.cells.size());
    std::iota(order.begin(), order.end(), 0);
    const Index *t = root.tallies.data();
    std::sort(order.begin(), order.end(), [&](Index x, Index y) {
        return std::lexicographical_compare(t + x * n, t + (x + 1) * n, t + y * n, t + (y + 1) * n);
    });
    Root sorted;
    for (auto i : order) {
        sorted.cells.push_back(root.cells[i]);
        sorted.values.push_back(root.values[i]);
        sorted.tallies.insert(sorted.tallies.end(), t + i * n, t + (i + 1) * n);
    }
    root = std::move(sorted);
}

template <class Real>
double RunOf<Real>::constant() const {
    double sum = 0;
    for (auto ref : skeleton_.constant_scores) sum += *scores_[ref.block].row(ref.row);
    return sum;
}

template <class Real>
std::vector<double> RunOf<Real>::root_values() const {
    const TableRounding<Real> rounding;
    const auto last = static_cast<std::int32_t>(layout_->tables.size()) - 1;
    const Stretches stretches(*layout_, last);
    std::vector<double> values;
    if (layout_->root_state < 0) return values;
    values.reserve(layout_->tables[last].cells);
    const double add = constant();
    for (Index r = 0; r < stretches.count; r++)
        for (Index i = 0; i < stretches.length[r]; i++) {
            const double v = row(last, layout_->root_state)[stretches.start[r] + i];
            if (kind_ == AlgebraKind::Counting) values.push_back(add == kNegativeInfinity ? 0 : v);
            else values.push_back(v + add);
        }
    return values;
}

template <class Real>
Root RunOf<Real>::root() const {
    const Index last = static_cast<Index>(layout_->tables.size()) - 1;
    const Stretches stretches(*layout_, static_cast<std::int32_t>(last));
    const Index n = layout_->statistics, q = layout_->prefix_size;
    const auto values = root_values();
    const auto tally = [&](Index i, Index sum) {
        const Index total = sum + layout_->floors[i];
        return layout_->user_caps[i] == kUncapped ? total : std::min(total, layout_->user_caps[i]);
    };
    Root root;
    root.cells.resize(values.size());
    root.values.resize(values.size());
    root.tallies.resize(values.size() * n);
    std::vector<Index> row(n);
    Index cell = 0, found = 0;
    for (Index r = 0; !values.empty() && r < stretches.count; r++) {
        for (Index i = 0; i < q; i++) row[layout_->permutation[i]] = tally(i, stretches.prefix[r * q + i]);
        for (Index c = 0; c < stretches.length[r]; c++, cell++) {
            if (values[cell] == kNegativeInfinity) continue;
            if (q < n) row[layout_->permutation[q]] = tally(q, stretches.low[r] + c);
            root.cells[found] = cell;
            root.values[found] = values[cell];
            for (Index i = 0; i < n; i++) root.tallies[found * n + i] = row[i];
            found++;
        }
    }
    root.cells.resize(found);
    root.values.resize(found);
    root.tallies.resize(found * n);
    if (!std::is_sorted(layout_->permutation.begin(), layout_->permutation.end())) sort_root(root, n);
    return root;
}

// The sum of a step's factors for every state of its variable; the other states are as the assignment has them.
template <class Real>
void RunOf<Real>::local_scores(std::int32_t step, const std::int64_t *assignment, std::vector<double> &scores) const {
    const auto variable = skeleton_.steps[step].variable;
    scores.assign(skeleton_.steps[step].gone.count, 0);
    for (auto ref : skeleton_.score_refs[step]) {
        Index at = 0, stride = 0;
        for (auto v : skeleton_.score_scopes.blocks[ref.block].row(ref.row)) {
            at = at * skeleton_.cardinalities[v] + (v == variable ? 0 : assignment[v]);
            stride = stride * skeleton_.cardinalities[v] + (v == variable ? 1 : 0);
        }
        const double *entry = scores_[ref.block].row(ref.row) + at;
        double *score = scores.data();
        for (const double *end = score + scores.size(); score < end; entry += stride) *score++ += *entry;
    }
}

template class RunOf<double>;
template class RunOf<float>;

}  // namespace tallytree
