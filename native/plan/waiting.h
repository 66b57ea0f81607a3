// Messages that wait for the variable at which they are used, in the order in which they came.
#pragma once

#include "common.h"

namespace tallytree {

class Waiting {
  public:
    // `tables`: about how many there will be.
    void begin(std::size_t positions, std::size_t tables) {
        first_.assign(positions, -1);
        last_.assign(positions, -1);
        next_.clear();
        next_.reserve(tables);
    }

    void hand(std::int32_t table, std::int32_t position) {
        if (static_cast<std::size_t>(table) >= next_.size()) next_.resize(static_cast<std::size_t>(table) + 1, -1);
        next_[table] = -1;
        (first_[position] < 0 ? first_[position] : next_[last_[position]]) = table;
        last_[position] = table;
    }

    void take(std::size_t position, std::vector<std::int32_t> &tables) const {
        tables.clear();
        for (auto t = first_[position]; t >= 0; t = next_[t]) tables.push_back(t);
    }

  private:
    std::vector<std::int32_t> first_, last_;  // by position
    std::vector<std::int32_t> next_;          // of each message
};

}  // namespace tallytree
