// Limits the total memory of problems that are solved at the same time.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "plan/placement.h"

namespace tallytree {

// Admits runs while their tables, and the memory kept from earlier runs, fit within the limit; a single run
// is always admitted if nothing was kept.
class Gate {
  public:
    void enter(double bytes, double limit, const Poll &poll) {
        std::unique_lock guard(lock_);
        while (inside_ > 0 && inside_ + kept_ + bytes > limit) {
            left_.wait_for(guard, std::chrono::milliseconds(20));
            guard.unlock();
            poll();
            guard.lock();
        }
        if (kept_ > 0 && inside_ + kept_ + bytes > limit) throw_budget(-1, inside_ + kept_ + bytes);
        inside_ += bytes;
    }
    void keep(double bytes) {
        const std::lock_guard guard(lock_);
        kept_ += bytes;
    }
    void leave(double bytes) {
        const std::lock_guard guard(lock_);
        inside_ -= bytes;
        left_.notify_all();
    }

  private:
    std::mutex lock_;
    std::condition_variable left_;
    double inside_ = 0, kept_ = 0;
};

class Pass {  // through the gate
  public:
    Pass(Gate &gate, double bytes, double limit, const Poll &poll) : gate_(gate), bytes_(bytes) {
        gate_.enter(bytes, limit, poll);
    }
    ~Pass() { gate_.leave(bytes_); }
    Pass(const Pass &) = delete;
    Pass &operator=(const Pass &) = delete;

  private:
    Gate &gate_;
    double bytes_;
};

inline double bytes_of(const Layout &layout) {
    return 8 * static_cast<double>(layout.arena + layout.scratch) + static_cast<double>(layout.plan_bytes);
}

// A thread has its own lists and memory, which do not pay off for little work.
inline Index threads_within(double limit, Index threads) {
    constexpr double kBytesPerThread = 16 << 20;
    return std::clamp<Index>(static_cast<Index>(limit / kBytesPerThread), 1, std::max<Index>(threads, 1));
}

}  // namespace tallytree
