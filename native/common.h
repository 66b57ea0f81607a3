// Small types that every native file shares.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tallytree {

using Index = std::int64_t;
template <class Real>
inline constexpr Real kNothing = -std::numeric_limits<Real>::infinity();
inline constexpr double kNegativeInfinity = kNothing<double>;
inline constexpr Index kUncapped = std::numeric_limits<Index>::max();

// Rows of tallies are padded to 64 bytes whatever the instruction set, so that a plan's bytes and a run's results do
// not depend on the machine.
template <class Real>
inline constexpr Index kLanesOf = 64 / sizeof(Real);
inline constexpr Index kLanes = kLanesOf<double>;
inline Index round_up(Index n, Index lanes = kLanes) { return (n + lanes - 1) & -lanes; }  // a power of two

// An array of zeros. Pages of it cost nothing before they are written.
template <class T>
class Zeros {
  public:
    void assign(std::size_t size) {
        if (size <= size_) {
            std::fill_n(data_.get(), size, T{});
            return;
        }
        data_.reset(static_cast<T *>(std::calloc(size, sizeof(T))));
        size_ = data_ ? size : 0;
        if (!data_) throw std::bad_alloc();
    }
    T *data() const { return data_.get(); }
    T &operator[](Index i) const { return data_[static_cast<std::size_t>(i)]; }
    double bytes() const { return static_cast<double>(size_ * sizeof(T)); }

  private:
    struct Freed {
        void operator()(void *memory) const { std::free(memory); }
    };
    std::unique_ptr<T[], Freed> data_;
    std::size_t size_ = 0;
};

struct Range {
    Index first = 0, last = 0;
    bool empty() const { return first >= last; }
};

inline constexpr Index kNoLimit = Index{1} << 62;  // an open end of a window of tallies, with either sign

// A plan that does not fit its memory limit: the step (in charts, the span) where it grew too large, and how many bytes
// it needs at least. -1 and infinity where it is no single step: no limit would do, or not all tables are kept. 0 bytes
// where it takes more operations than are allowed.
struct BudgetExceeded : std::runtime_error {
    explicit BudgetExceeded(const char *what, std::int32_t step_ = -1,
                            double bytes_ = std::numeric_limits<double>::infinity())
        : std::runtime_error(what), step(step_), bytes(bytes_) {}
    std::int32_t step;
    double bytes;
};

// Work that needs more memory than its share of a limit, and can be done again in a larger one.
struct OutOfRoom : std::exception {
    explicit OutOfRoom(double bytes_ = 0) : bytes(bytes_) {}
    const char *what() const noexcept override { return "the share of the memory limit is too small"; }
    double bytes;  // that it needs at least
};

// Called now and then with the work done since; throws to interrupt the run.
using Poll = std::function<void()>;

class Meter {
  public:
    explicit Meter(const Poll &poll) : poll_(poll) {}
    void spend(double operations) {
        left_ -= operations;
        if (left_ < 0) {
            left_ = between_polls;
            poll_();
        }
    }

    static constexpr double kOperations = 3e6;         // under 50 ms, also where each one is an exponential
    static inline double between_polls = kOperations;  // set by tests alone, while nothing runs

  private:
    const Poll &poll_;
    double left_ = between_polls;
};

// Lists that begin at a cache line, so that the vectors of a row each lie in one.
template <class T>
struct LineAllocator {
    using value_type = T;
    static constexpr std::align_val_t kLine{64};
    LineAllocator() = default;
    template <class Other>
    LineAllocator(const LineAllocator<Other> &) {}
    T *allocate(std::size_t count) { return static_cast<T *>(::operator new(count * sizeof(T), kLine)); }
    void deallocate(T *list, std::size_t) { ::operator delete(list, kLine); }
    bool operator==(const LineAllocator &) const { return true; }
};
using LinedUp = std::vector<double, LineAllocator<double>>;

// A list of lists stored flat: row i is data[begin[i] .. begin[i + 1]).
template <class T>
struct Ragged {
    std::vector<Index> begin{0};
    std::vector<T> data;

    Index size() const { return static_cast<Index>(begin.size()) - 1; }
    std::span<const T> operator[](Index i) const { return {data.data() + begin[i], data.data() + begin[i + 1]}; }
    void push_row(std::span<const T> row) {
        for (const T &entry : row) data.push_back(entry);  // rows are short
        begin.push_back(static_cast<Index>(data.size()));
    }
    void close_row() { begin.push_back(static_cast<Index>(data.size())); }
};

// Bytes that lists take, as far as they are filled.
template <class T>
Index bytes_of(const std::vector<T> &list) {
    return static_cast<Index>(list.size() * sizeof(T));
}
template <class T>
Index bytes_of(const Ragged<T> &rows) {
    return bytes_of(rows.begin) + bytes_of(rows.data);
}

// The scopes of one block: `count` rows of `arity` variables.
struct ScopeBlock {
    const std::int32_t *data = nullptr;
    Index count = 0;
    Index arity = 0;
    std::span<const std::int32_t> row(Index k) const { return {data + k * arity, static_cast<std::size_t>(arity)}; }
};

// Whether a block looks at each variable by itself, in order; or, on a chain, at each with the next.
inline bool is_chain_block(const ScopeBlock &block, Index variables, Index arity) {
    if (block.arity != arity || block.count != variables - arity + 1) return false;
    for (Index k = 0; k < block.count; k++)
        for (Index i = 0; i < arity; i++)
            if (block.row(k)[i] != k + i) return false;
    return true;
}

// The tables of one block: one per scope, or one shared by all (count == 1).
template <class T>
struct TableBlock {
    const T *data = nullptr;
    Index count = 0;
    Index size = 0;  // entries of one table
    const T *row(Index k) const { return data + (count == 1 ? 0 : k * size); }
};

}  // namespace tallytree
