// Memory that a thread reuses for one problem after another: a layout, an arena, and tables that are made
// by the thread itself.
#pragma once

#include "plan/give_back.h"
#include "plan/table_price.h"
#include "tables/run.h"

namespace tallytree {

struct alignas(64) Workspace {  // each in its own cache lines
    std::shared_ptr<Layout> layout = std::make_shared<Layout>();
    Arena arena, shares;  // of tables, and of their derivatives

    LayoutRequest request;                   // of problems whose tables are made here
    StepRanges ranges;                       // of what these count
    std::vector<double> unary, links;        // scores of states, and of neighbouring states
    std::vector<std::int64_t> given, moved;  // what statistics count in them
    std::vector<TableBlock<double>> scores;
    std::vector<double> of_unary, of_links;   // derivatives by the scores of states
    std::vector<std::int32_t> cardinalities;  // numbers of labels, where states are others

    // Throws BudgetExceeded where the plan does not fit the limit of the request, and OutOfRoom where its lists, with
    // the memory kept for tables, take more than `room` bytes. Without statistics, the layout of a skeleton is always
    // the same.
    const Layout &lay_out(const std::shared_ptr<const Skeleton> &skeleton, const LayoutRequest &what, const Poll &poll,
                          double room) {
        if (!skeleton->statistics && layout->skeleton == skeleton) return *layout;
        rebuild_layout(*layout, skeleton, what, poll, room - tables_kept());
        give_back_after(static_cast<double>(layout->plan_bytes), room);
        return *layout;
    }

    // Keeps memory for the next problem, up to a part of this thread's share.
    void trim(double share) {
        constexpr double kPart = 4;
        for (Arena *kept : {&arena, &shares})
            if (kPart * static_cast<double>(kept->bytes()) > share) *kept = Arena();
        Arena::trim(share);
        if (kPart * static_cast<double>(layout->plan_bytes) <= share) return;
        layout = std::make_shared<Layout>();
        give_memory_back();
    }
    // Keeps nothing.
    void clear() {
        for (Arena *kept : {&arena, &shares}) *kept = Arena();
        Arena::trim(0);
        layout = std::make_shared<Layout>();
        give_memory_back();
    }
    // The memory kept for tables, and for everything.
    double tables_kept() const { return static_cast<double>(arena.bytes() + shares.bytes()); }
    double kept() const { return tables_kept() + static_cast<double>(layout->plan_bytes); }

    // Calls `use(run)` with the messages of what was laid out.
    template <class Use>
    void run(std::span<const TableBlock<double>> tables, const MaxPlusKernels *kernels, const Poll &poll, Use use,
             AlgebraKind algebra = AlgebraKind::MaxPlus) {
        Run run(layout, {tables.begin(), tables.end()}, algebra, 0, kernels, std::move(arena));
        run.upward(poll);
        use(run);
        arena = run.release();
    }
};

}  // namespace tallytree
