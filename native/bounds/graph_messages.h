// Passes and bands over the program of any graph.
#pragma once

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

    Measures measures() const override;
    Pass pass(const Prices &prices, Meter &meter) override;
    bool recall(const Prices &prices) override;
    void hold(const Prices &prices) override { held_ = prices; }
    double best(std::int64_t *labelling) const override;
    bool band(double budget, double most_work, Meter &meter) override;
    std::span<const Cell> tallies() const override { return tallies_; }
    void decode(Index number, std::int64_t *labelling) const override;
    Index cells() const override { return static_cast<Index>(cells_.size()); }
    void set_near(double near) override { merger_.near = near; }
    bool tied(Index number) const override { return cells_[root_ + number].tied; }
    // The memory that waits for the next model, or band.
    double kept() const;

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
        Index cells_begin = 0, cells_end = 0;
        std::int32_t input_b = -1;  // of a join
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
    void use(const Prices &prices);
    void price_counts();
    const double *priced(Index t) const { return priced_.data() + priced_begin_[t]; }
    void eliminate(Index t);
    // Whether a pass notes which choices are the best: where nothing is kept, and there are few.
    static bool notes(const Step &step) { return step.kept_states == 1 && step.gone.count <= kFewChoices; }
    void eliminate_noting(Index t);
    void eliminate_fresh(Index t);
    void join(Index t);
    static bool is_choppy(std::span<const Loop> loops, Index states);
    static bool is_long(std::span<const Loop> loops);
    void eliminate_rows(Index t);
    void join_rows(Index t);
    void eliminate_listed(Index t);
    void join_listed(Index t);
    std::span<const Loop> list_places(std::span<const Loop> loops);
    void normalise(Index t);
    Tally find_best();
    Operands operands(Index t, Index state) const;
    double weigh(Index t, const Operands &at);  // fills weighed_ and returns its maximum
    Index first_best(Index t, const Operands &at);
    Index key_of(Index t, Index place) const;
    void find_live(Index t, double budget);
    void find_live_join(Index t);
    std::span<Live> live(Index t) { return {live_.data() + live_begin_[t], static_cast<std::size_t>(live_count_[t])}; }
    const Live &live(Index t, Index number) const { return live_[live_begin_[t] + number]; }
    std::int32_t reach(Index table, Index state, double context);
    void fill(Index t, Live &live, double room);
    void fill_join(Index t, Live &live, double room);

    const ChainKernels &kernels_;
    const LocalTables *tables_ = nullptr;
    const Skeleton *skeleton_ = nullptr;
    Packing packing_{1};
    std::vector<Index> begin_;  // of each table's states in messages
    struct Kept {               // of a pass
        bool there = false;
        Prices prices{};
        Arena values;              // messages
        Zeros<std::int32_t> from;  // likewise, where `notes`: the first of the best choices
    };
    std::vector<Kept> kept_;  // the last few, in turns
    std::size_t current_ = 0;
    Prices held_{};             // of the pass that is to stay
    double *values_ = nullptr;  // of the current pass, and likewise
    std::int32_t *from_ = nullptr;
    std::vector<double> largest_;  // size of a message's value
    std::vector<std::int32_t> depth_;
    Sum taken_;  // what was subtracted from messages
    double slips_ = 0;
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
    std::vector<std::int64_t> labelling_;         // the best one
    std::vector<Index> best_state_;               // of it, by table
    std::vector<Index> best_place_;               // of it among the counts of each step
    std::vector<Live> live_;                      // those of a table one after the other
    std::vector<Index> live_begin_, live_count_;  // of each table
    std::vector<Way> ways_;
    Zeros<std::int32_t> where_;  // among the live ones of a table, by place in messages, plus 1; 0: nowhere
    std::vector<Reached> cells_;
    Merger<Reached> merger_{cells_};
    Index root_ = 0;  // the first cell of the last table
    std::vector<Cell> tallies_;
};

}  // namespace tallytree::bounds
