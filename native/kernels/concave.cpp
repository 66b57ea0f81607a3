// In real numbers a[i] + b[k - i] is concave in i where both rows are, so that the best i for k + 1 is the one for k or
// the next: whichever row has the larger difference moves on. Rounding is monotone, so the rounded sum of the best pair
// is the largest rounded sum, provided that every comparison is made as if nothing were rounded.
#include "kernels/concave.h"

#include <algorithm>
#include <cmath>

namespace tallytree {
namespace {

constexpr Index kWorth = 150;       // pairs of cells that the kernels try while one cell is merged
constexpr double kLargest = 1e300;  // sums beyond could overflow

// What rounding took from x + y when it gave `sum` (exact, by Knuth).
double lost(double x, double y, double sum) {
    const double part = sum - x;
    return (x - (sum - part)) + (y - part);
}

// Whether x + y >= z + w in real numbers: different rounded sums decide, equal ones leave it to what they lost.
bool at_least(double x, double y, double z, double w) {
    const double left = x + y, right = z + w;
    if (left != right) [[likely]]
        return left > right;
    return lost(x, y, left) >= lost(z, w, right);
}

struct Row {
    const double *cells;
    Index first, count;
};

Row without_ends(const double *cells, Index n) {
    Index first = 0;
    while (first < n && cells[first] == kNegativeInfinity) first++;
    while (n > first && cells[n - 1] == kNegativeInfinity) n--;
    return {cells + first, first, n - first};
}

bool is_concave(Row row) {
    for (Index i = 0; i < row.count; i++)
        if (!(std::abs(row.cells[i]) < kLargest)) return false;
    for (Index i = 1; i + 1 < row.count; i++)
        if (!at_least(row.cells[i], row.cells[i], row.cells[i - 1], row.cells[i + 1])) return false;
    return true;
}

void merge(Row a, Row b, double *out) {
    const double *x = a.cells, *y = b.cells;
    const double *last_x = x + a.count - 1, *last_y = y + b.count - 1;
    *out++ = *x + *y;
    while (x < last_x && y < last_y) {
        const bool first = at_least(x[1], y[0], x[0], y[1]);
        x += first;
        y += !first;
        *out++ = *x + *y;
    }
    while (x < last_x) *out++ = *++x + *y;
    while (y < last_y) *out++ = *x + *++y;
}

}  // namespace

bool join_concave(const Convolution &pair, double *out, Index n, std::vector<double> &merged) {
    if (pair.na * pair.nb < kWorth * (pair.na + pair.nb)) return false;
    const Row a = without_ends(pair.a, pair.na), b = without_ends(pair.b, pair.nb);
    if (a.count == 0 || b.count == 0 || !is_concave(a) || !is_concave(b)) return false;
    merged.resize(a.count + b.count - 1);
    merge(a, b, merged.data());
    std::fill(out, out + round_up(n), kNegativeInfinity);
    const Index offset = pair.offset + a.first + b.first;
    const Index from = std::max<Index>(-offset, 0), to = std::min<Index>(a.count + b.count - 1, n - offset);
    if (from < to) std::copy(merged.begin() + from, merged.begin() + to, out + offset + from);
    return true;
}

}  // namespace tallytree
