#include "plan/open_order.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace tallytree {
namespace {

class OpenOrder {
  public:
    explicit OpenOrder(const PlanShape &shape)
        : shape_(shape),
          counted_(shape.caps.size()),
          place_(shape.caps.size(), 0),
          met_(shape.caps.size(), false),
          seen_(shape.cardinalities.size(), false) {
        const auto blocks = shape.shifts.blocks();
        for (std::size_t i = 0; i < blocks.size(); i++) {
            auto &variables = counted_[shape.statistic_of[i]];
            variables.insert(variables.end(), blocks[i].data, blocks[i].data + blocks[i].count * blocks[i].arity);
        }
        for (auto &variables : counted_) {
            std::ranges::sort(variables);
            variables.erase(std::ranges::unique(variables).begin(), variables.end());
        }
    }

    std::vector<std::int32_t> run() {
        for (std::int32_t v = 0; v < std::ssize(seen_); v++) {
            if (!seen_[v]) take(v);
            finish();
        }
        return std::move(order_);
    }

  private:
    void take(std::int32_t v) {
        seen_[v] = true;
        order_.push_back(v);
        for (const FactorRef ref : shape_.shifts[v]) {
            const auto k = shape_.statistic_of[ref.block];
            if (met_[k]) continue;
            met_[k] = true;
            open_.emplace(std::ssize(counted_[k]), opened_++, k);
        }
    }

    // Takes what is left of all open statistics, and of those that are opened by this.
    void finish() {
        while (!open_.empty()) {
            const auto k = std::get<2>(open_.top());
            const auto &variables = counted_[k];
            auto &place = place_[k];
            while (place < variables.size() && seen_[variables[place]]) place++;
            if (place == variables.size()) {
                open_.pop();
            } else {
                take(variables[place]);
            }
        }
    }

    using Open = std::tuple<Index, Index, std::int32_t>;  // how many variables, when it was opened, which one

    const PlanShape &shape_;
    std::vector<std::vector<std::int32_t>> counted_;  // by statistic: its variables
    std::vector<std::size_t> place_;                  // among them, up to which all are taken
    std::vector<bool> met_, seen_;                    // statistics, variables
    std::vector<std::int32_t> order_;
    std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
    Index opened_ = 0;
};

}  // namespace

std::vector<std::int32_t> min_open_order(const PlanShape &shape) { return OpenOrder(shape).run(); }

}  // namespace tallytree
