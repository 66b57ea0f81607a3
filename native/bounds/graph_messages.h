// Passes and bands over the program of any graph.
#pragma once

#include <ranges>
#include <utility>

#include "bounds/local_tables.h"
#include "bounds/messages.h"
#include "kernels/chain_pass.h"
#include "tables/run.h"

namespace tallytree::bounds {

class GraphMessages : public TiedMessages {
  public:
    // Keeps the messages of so many passes.
    GraphMessages(const ChainKernels &kernels, std::size_t passes) : kernels_(kernels), kept_(passes) {}
    GraphMessages(const GraphMessages &) = delete;
    // The tables are there until the next ones; the memory is used again.
    void begin(const LocalTables &tables);
    // The next program may stand where the last one was.
    void forget_program() { skeleton_ = nullptr; }

    Measures measures() const override;
    Pass pass(const Prices &prices, Meter &meter) override;
    double pass_work() const override { return program_work_ + counts_work_; }
    // What it took to load the model.
    double load_work() const;
    bool recall(const Prices &prices) override;
    void hold(const Prices &prices) override { held_ = prices; }
    double best(std::int64_t *labelling) const override;
    bool band(double budget, double most_work, Meter &meter) override;
    std::span<const Cell> tallies() const override { return tallies_; }
    double decode(Index number, std::int64_t *labelling) const override;
    Index cells() const override { return static_cast<Index>(cells_.size()); }
    void set_near(double near) override { merger_.near = near; }
    bool tied(Index number) const override { return cells_[root_ + number].tied; }
    // The memory that waits for the next model, or band.
    double kept() const;
    // Releases messages that are large; returns the bytes kept for the next model.
    double rest();

    // Stored for each state of each table.
    static double bytes(const Skeleton &skeleton, double passes);

  private:
    static constexpr Index kFewChoices = 8;
    struct Reached {
        Index key;
        double regret;
        bool tied;  // with another way to the same tally
    };
    // One way to make a state of a table, within the budget.
    struct Way {
        std::int32_t choice;  // the state of the eliminated variable
        std::int32_t input;   // which of the input's live states
        double regret;
        Index key;
    };
    // A state of a table that some labelling within the budget goes through.
    struct Live {
        Index state;
        double context;  // the least regret outside
        Index ways_begin = 0, ways_end = 0;
        Range cells{};
        std::int32_t input = 0, input_b = 0;  // of a join
    };
    // How a pass does a step.
    enum class Manner : std::uint8_t {
        Few,
        Fresh,
        Rows,
        JoinedRows,
        Listed,
        Loops,
        Add,
        AddRows,
        AddListed,
        AddLoops,
        AddLater  // row by row, in the step that takes the table; so it is never there as a whole
    };
    // A step of a pass, with all that the small ones read in one place. Strides are those of the eliminated variable.
    struct Move {
        Index a, b, out;  // where the tables begin in messages; of an elimination, b: its counts at the prices
        const double *scores = nullptr, *late = nullptr;
        const std::int32_t *counts = nullptr;
        std::int32_t t, from, other;  // the step, and its inputs
        std::int32_t variable, choices, states, apart = 0;
        std::int32_t input, score, fresh_score, shift;
        Manner manner;
        bool own_counts;  // each fresh state has its own
        bool deep;        // the message is brought back to about 0
    };
    // The same as `Operands`, relative to the first of a block of states.
    struct Place {
        std::int32_t a, b, score, shift;
    };
    // The position of one state of a table in the operands of its step.
    struct Operands {
        Index a = 0, b = 0, score = 0, shift = 0;
    };

    void begin_program();
    void begin_messages();
    void list_moves();
    std::vector<std::int32_t> order_of_moves() const;
    Move move_of(Index t) const;
    Manner manner_of(Index t) const;
    void weigh_slips();
    double work_of(const Move &move) const;
    void use(const Prices &prices);
    void price_counts();
    const double *priced(Index t) const { return priced_.data() + priced_begin_[t]; }
    void run(const Move &move);
    template <int choices>
    void eliminate_few(const Move &move);
    void eliminate_fresh(Index t);
    void eliminate(Index t);
    void add(const Move &move);
    void join(Index t);
    static bool is_choppy(std::span<const Loop> loops, Index states);
    static bool is_long(std::span<const Loop> loops);
    void eliminate_rows(Index t);
    void join_rows(Index t);
    bool joins_rows(Index t) const;
    void eliminate_joined_rows(Index t);
    void join_row(Index t, Index state, Index count, double *out);
    void eliminate_listed(Index t);
    void join_listed(Index t);
    std::span<const Loop> list_places(std::span<const Loop> loops);
    double normalise(Index t);
    Tally find_best();
    Operands operands(Index t, Index state) const;
    Operands best_operands(const Move &move) const;
    double joined_message(Index table, Index state) const;
    double weigh(const Move &move, const Operands &at);  // fills weighed_ and returns its maximum
    Index first_best(const Move &move, const Operands &at);
    Index key_of(Index t, Index place) const;
    bool is_settled(const Move &move, double budget);
    bool find_live(const Move &move, double budget);
    bool find_live_join(const Move &move);
    std::span<Live> live(Index t) { return {live_.data() + live_begin_[t], static_cast<std::size_t>(live_count_[t])}; }
    const Live &live(Index t, Index number) const { return live_[live_begin_[t] + number]; }
    std::int32_t reach(Index table, Index state, double context);
    void unlist_best(Index table);
    void forget_band();
    static Index size_of(Range cells) { return cells.last - cells.first; }
    // The cells of a live state, or of the best one where that is the only one.
    Range cells_of(Index table, Index number) const {
        return live_count_[table] == 0 ? best_cells_[table] : live(table, number).cells;
    }
    bool fill(Index from, Live &live, double room);
    bool join_cells(Range a, Range b, double room, Range &to);

    const ChainKernels &kernels_;
    const LocalTables *tables_ = nullptr;
    const Skeleton *skeleton_ = nullptr;
    Packing packing_{1};
    std::vector<Index> begin_;  // of each table's states in messages
    struct Kept {               // of a pass
        bool there = false;
        Prices prices{};
        Arena values;              // messages
        Index size = 0;            // how many numbers these are; 0: none of this program's
        Zeros<std::uint8_t> from;  // likewise, of `Few` choices: the first of the best
    };
    std::vector<Kept> kept_;  // the last few, in turns
    std::size_t current_ = 0;
    Prices held_{};             // of the pass that is to stay
    double *values_ = nullptr;  // of the current pass, and likewise
    std::uint8_t *from_ = nullptr;
    std::vector<Move> moves_;                    // all steps that do something, inputs first
    double program_work_ = 0, counts_work_ = 0;  // of a pass, and of pricing the counts of the model
    Sum taken_;                                  // what was subtracted from messages
    // What a pass rounds, in units of the last place: the sizes of values, added up over all steps. They are those of
    // local scores, of counts at prices, and of messages that have been brought back to about 0.
    double score_slips_ = 0;
    std::vector<double> count_slips_;  // of each statistic, at a price of 1
    std::vector<double> roundings_;    // to weigh them, by step
    std::vector<double> deep_slips_;   // how often a message that is brought back counts
    Prices prices_{};
    struct Counts {  // a row of counts, of one step or of several, and where it stands at the prices
        const std::int32_t *counts;
        Index size, apart, place;
    };
    std::vector<Counts> counts_;
    std::vector<double> priced_;       // counts at the prices
    std::vector<Index> priced_begin_;  // of each step's
    std::vector<Index> shared_;        // where counts that are shared stand at the prices
    std::vector<double> weighed_;
    std::vector<Place> places_;                   // of a block of states
    std::vector<double> rows_;                    // of a join, two at a time
    std::vector<std::int64_t> labelling_;         // the best one
    std::vector<Index> best_state_;               // of it, by table
    std::vector<Live> live_;                      // those of a table one after the other
    std::vector<Index> live_begin_, live_count_;  // of each table; none where only the best state is live
    std::vector<std::int32_t> reached_;           // the tables that have some
    std::vector<Range> best_cells_;               // of the others
    std::vector<Way> ways_;
    Zeros<std::int32_t> where_;  // among the live ones of a table, by place in messages, plus 1; 0: nowhere
    std::vector<Reached> cells_;
    Merger<Reached> merger_{cells_};
    Index root_ = 0;  // the first cell of the last table
    std::vector<Cell> tallies_;
};

}  // namespace tallytree::bounds
