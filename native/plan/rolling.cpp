#include "plan/rolling.h"

#include "plan/needed.h"
#include "plan/placement.h"

namespace tallytree {
namespace {

constexpr Index kFar = Index{16} << 20;  // bytes of all tables from which on it is worth a try
constexpr Index kNear = Index{2} << 20;  // bytes that are small enough
constexpr Index kTimes = 8;              // smaller than all tables, at least
constexpr double kShare = 0.1;           // of the operations, at most, to be computed again for a labelling

// The operations of computing again what leads to one cell in the middle of each checkpoint. The last segment is there.
double operations_again(const Layout &layout) {
    std::vector<TableCell> wanted;
    for (std::size_t t = 0; t < layout.tables.size(); t++)
        if (layout.tables[t].checkpoint)
            wanted.push_back({static_cast<std::int32_t>(t), layout.length[layout.tables[t].stretches_begin] / 2});
    std::vector<Range> needed(layout.tables.size());
    double operations = 0;
    auto from = wanted.begin();
    for (std::size_t segment = 0; segment + 2 < layout.segment_begin.size(); segment++) {
        const Index last = layout.segment_begin[segment + 1];
        const auto begin = from;
        while (from != wanted.end() && from->table < last) from++;
        find_needed_cells(layout, static_cast<Index>(segment), {begin, from}, needed);
    }
    for (std::size_t t = 0; t < layout.tables.size(); t++) {
        const auto &table = layout.tables[t];
        if (!table.checkpoint && !needed[t].empty())
            operations += layout.steps[t].operations * static_cast<double>(needed[t].last - needed[t].first) /
                          static_cast<double>(layout.length[table.stretches_begin]);
    }
    return operations;
}

}  // namespace

std::shared_ptr<const Layout> rolled(const std::shared_ptr<const Layout> &layout) {
    const Index whole = layout->bytes(layout->arena);
    if (whole < kFar || 8 * layout->plan_bytes > whole || !knows_needed_cells(*layout)) return layout;
    auto rolling = std::make_shared<Layout>(*layout);
    const auto most = static_cast<Index>(layout->tables.size());
    for (Index segments = 2, before = layout->arena; segments < most; segments *= 2) {
        cut_tables(*rolling, segments);
        if (rolling->arena >= before) {
            cut_tables(*rolling, segments / 2);
            break;
        }
        before = rolling->arena;
        if (rolling->bytes(rolling->arena) <= kNear) break;
    }
    const bool pays =
        kTimes * rolling->arena <= layout->arena && operations_again(*rolling) <= kShare * layout->operations;
    if (pays) return rolling;
    return layout;
}

}  // namespace tallytree
