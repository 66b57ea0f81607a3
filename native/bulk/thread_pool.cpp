#include "bulk/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace tallytree {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::milliseconds(20);

struct Stopped {};  // thrown by a poll: another thread has failed

class ThreadPool {
  public:
    ThreadPool(std::span<const Index> items, const Work &work, const Poll &poll)
        : items_(items), work_(work), poll_(poll) {}

    void run(Index threads, const Inside &inside) {
        std::vector<std::thread> others;
        try {
            for (Index number = 1; number < threads; number++) {
                others.emplace_back([this, number, &inside] {
                    inside([&] { take_part({number, [this] { look_at_flag(); }}); });
                    const std::lock_guard guard(lock_);
                    finished_++;
                    changed_.notify_one();
                });
            }
        } catch (const std::system_error &) {  // no more threads to be had: those that there are do the work
        }
        take_part({0, [this] {
                       look_at_flag();
                       poll_();
                   }});
        wait_for(static_cast<Index>(others.size()));
        for (auto &thread : others) thread.join();
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    void take_part(Worker worker) {
        auto next_look = Clock::now() + kPatience;
        try {
            for (std::size_t i; (i = next_++) < items_.size();) {
                work_(worker, items_[i]);
                if (const auto now = Clock::now(); now >= next_look) {
                    worker.poll();
                    next_look = now + kPatience;
                }
            }
        } catch (const Stopped &) {
        } catch (...) {
            fail();
        }
    }

    void look_at_flag() const {
        if (stopped_) throw Stopped{};
    }

    void fail() {
        const std::lock_guard guard(lock_);
        if (!failure_) failure_ = std::current_exception();
        stopped_ = true;
    }

    // Signals come to the calling thread, also while it has nothing left to do itself.
    void wait_for(Index others) {
        std::unique_lock guard(lock_);
        while (!changed_.wait_for(guard, kPatience, [&] { return finished_ == others; })) {
            guard.unlock();
            try {
                if (!stopped_) poll_();
            } catch (...) {
                fail();
            }
            guard.lock();
        }
    }

    std::span<const Index> items_;
    const Work &work_;
    const Poll &poll_;
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> stopped_{false};
    std::mutex lock_;
    std::condition_variable changed_;
    Index finished_ = 0;
    std::exception_ptr failure_;
};

}  // namespace

void share_out(std::span<const Index> items, Index threads, const Work &work, const Poll &poll, const Inside &inside) {
    ThreadPool(items, work, poll).run(std::min(threads, static_cast<Index>(items.size())), inside);
}

Index group_count(Index items, double bytes_each) {
    constexpr Index kFewest = 8, kMost = 256;
    constexpr double kBytes = 64 << 20;
    const auto fit = static_cast<Index>(std::min(kBytes / std::max(bytes_each, 1.0), static_cast<double>(kMost)));
    return std::min(items, std::max(fit, kFewest));
}

}  // namespace tallytree
