#include "tables/joining.h"

#include <cstring>

#include "tables/upward.h"

namespace tallytree {
namespace {

// Rows of equal length side by side, one table.
void add_table(Layout &layout, Index states, Index rows, Index columns) {
    TableLayout table;
    table.stretches_begin = static_cast<Index>(layout.low.size());
    table.stretches = rows;
    table.states = states;
    table.cells = rows * columns;
    table.stride = rows * round_up(columns);
    table.size = table.stride * states;
    table.base = layout.arena;
    layout.arena += round_up(table.size);
    for (Index r = 0; r < rows; r++) {
        layout.low.push_back(0);
        layout.length.push_back(columns);
        layout.natural.push_back(columns);
        layout.start.push_back(r * round_up(columns));
    }
    layout.tables.push_back(table);
}

std::shared_ptr<Layout> box_layout(Index states, Index a_rows, Index a_columns, Index b_rows, Index b_columns) {
    auto skeleton = std::make_shared<Skeleton>();
    skeleton->steps.resize(3, Step{Verb::Unit});
    Step &step = skeleton->steps[2];
    step.verb = Verb::Join;
    step.a = 0;
    step.b = 1;
    step.kept_states = states;
    const Loop loop{states, 1, 1, 0, 0};
    skeleton->kept.close_row();
    skeleton->kept.close_row();
    skeleton->kept.push_row(std::span(&loop, 1));

    auto layout = std::make_shared<Layout>();
    layout->skeleton = skeleton;
    layout->rows = true;
    layout->statistics = 2;
    layout->prefix_size = 1;
    add_table(*layout, states, a_rows, a_columns);
    add_table(*layout, states, b_rows, b_columns);
    add_table(*layout, states, a_rows + b_rows - 1, a_columns + b_columns - 1);
    layout->steps.resize(3);
    layout->steps[2].groups = a_rows + b_rows - 1;
    layout->pair_begin.push_back(0);
    for (Index r = 0; r < a_rows + b_rows - 1; r++) {
        for (Index i = std::max<Index>(0, r - b_rows + 1); i < a_rows && i <= r; i++) {
            layout->pair_a.push_back(static_cast<std::int32_t>(i));
            layout->pair_b.push_back(static_cast<std::int32_t>(r - i));
        }
        layout->pair_begin.push_back(static_cast<Index>(layout->pair_a.size()));
    }
    layout->segment_begin = {0, 3};
    return layout;
}

void copy_rows(const TableLayout &table, Index columns, double *arena, const double *from, double *to) {
    for (Index s = 0; s < table.states; s++)
        for (Index r = 0; r < table.stretches; r++) {
            double *inside = arena + table.base + s * table.stride + r * round_up(columns);
            const std::size_t bytes = static_cast<std::size_t>(columns) * sizeof(double);
            if (from) std::memcpy(inside, from + (s * table.stretches + r) * columns, bytes);
            else std::memcpy(to + (s * table.stretches + r) * columns, inside, bytes);
        }
}

}  // namespace

void join_boxes(Index states, const double *a, Index a_rows, Index a_columns, const double *b, Index b_rows,
                Index b_columns, double *out, Index repeats, const MaxPlusKernels *kernels, const Poll &poll) {
    auto layout = box_layout(states, a_rows, a_columns, b_rows, b_columns);
    Run run(layout, {}, AlgebraKind::MaxPlus, 0, kernels);
    copy_rows(layout->tables[0], a_columns, run.memory(), a, nullptr);
    copy_rows(layout->tables[1], b_columns, run.memory(), b, nullptr);
    MaxPlus algebra;
    Upward up(run, poll);
    for (Index i = 0; i < repeats; i++) up.step(algebra, 2);
    copy_rows(layout->tables[2], a_columns + b_columns - 1, run.memory(), nullptr, out);
}

}  // namespace tallytree
