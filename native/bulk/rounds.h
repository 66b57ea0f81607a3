// Shares a memory limit among the threads of a batch, in rounds.
//
// In a round, each thread has an equal share of the memory: for the item at hand, for what it keeps for the next one,
// and for its answers. An item that needs more is put off to the next round, which has half as many threads, each with
// twice the share. Where one thread alone has too little, the batch is refused. No thread waits for another.
#pragma once

#include <algorithm>
#include <vector>

#include "bulk/thread_pool.h"
#include "plan/give_back.h"
#include "plan/placement.h"

namespace tallytree {

// A thread has its own lists and memory, which do not pay off for little work.
inline Index threads_within(double limit, Index threads) {
    constexpr double kBytesPerThread = 16 << 20;
    return std::clamp<Index>(static_cast<Index>(limit / kBytesPerThread), 1, std::max<Index>(threads, 1));
}

// Calls `work(desk, worker, item)` until all items are done; it throws OutOfRoom where an item needs more than
// `desk.room()`. `make_desk(share)` makes what a thread has during a round, which
//   - keeps `kept()` bytes for the next item, given back by `clear()`,
//   - and has `answered` bytes of answers.
template <class MakeDesk, class WorkAt>
void do_in_rounds(std::vector<Index> items, double limit, Index threads, MakeDesk make_desk, WorkAt work,
                  const Poll &poll, const Inside &inside) {
    const double whole = limit;
    for (threads = threads_within(limit, threads); !items.empty(); threads = (threads + 1) / 2) {
        threads = std::min(threads, static_cast<Index>(items.size()));
        std::vector<decltype(make_desk(limit))> desks;
        for (Index i = 0; i < threads; i++) desks.push_back(make_desk(limit / static_cast<double>(threads)));
        std::vector<char> put_off(1 + *std::max_element(items.begin(), items.end()), false);
        const Work attempt = [&](Worker &worker, Index item) {
            auto &desk = desks[worker.number];
            for (bool clean = desk.kept() == 0; !put_off[item]; clean = true) {
                try {
                    return work(desk, worker, item);
                } catch (const OutOfRoom &needed) {
                    desk.clear();
                    if (clean && threads == 1) throw_budget(-1, whole - desk.room() + needed.bytes);
                    put_off[item] = clean;
                }
            }
        };
        share_out(items, threads, attempt, poll, inside);
        std::erase_if(items, [&](Index item) { return !put_off[item]; });
        for (const auto &desk : desks) limit -= desk.answered;
        if (!items.empty()) desks.clear(), give_memory_back();
    }
}

}  // namespace tallytree
