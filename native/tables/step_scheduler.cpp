#include "tables/step_scheduler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>

namespace tallytree {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Index kPartsEach = 4;                            // parts of a large step per thread: they are not all alike
constexpr auto kHope = std::chrono::microseconds(100);     // before a thread without work goes to sleep
constexpr auto kPatience = std::chrono::milliseconds(20);  // between two looks for signals

// The steps in tasks: a step with much work in it or below it, and the small subtrees of its segment that hang from it.
struct Tasks {
    std::vector<double> weight;        // per step, zero for those that are not to be computed
    std::vector<std::int32_t> owner;   // per step, the step whose task it belongs to
    std::vector<Index> pending;        // per step with a task: tasks that it waits for, and one for the segment before
    Ragged<std::int32_t> smaller;      // per step: those that its task computes before it
    std::vector<std::int32_t> leaves;  // tasks that wait for nothing, those far from the end first
    std::vector<Index> segment_of;     // per step
    std::vector<Index> unfinished;     // per segment: tasks
    Index count = 0;

    Tasks(const Layout &layout, std::span<const std::int32_t> steps, double grain);

    // Notes that a task is finished; true if tasks of the next segment have become leaves.
    bool finish(std::int32_t t);

  private:
    bool begins_side(Index segment) const;
    void wait_for_segments(std::span<const std::int32_t> steps);
    void gather(std::span<const std::int32_t> steps);

    const Layout &layout_;
};

Tasks::Tasks(const Layout &layout, std::span<const std::int32_t> steps, double grain)
    : weight(layout.steps.size(), 0),
      owner(layout.steps.size(), -1),
      pending(layout.steps.size(), 0),
      segment_of(layout.steps.size()),
      unfinished(layout.segment_begin.size(), 0),
      layout_(layout) {
    const Skeleton &skeleton = *layout.skeleton;
    std::vector<double> below(weight.size(), 0), above(weight.size(), 0);
    for (Index segment = 0; segment + 1 < std::ssize(layout.segment_begin); segment++)
        std::fill(segment_of.begin() + layout.segment_begin[segment],
                  segment_of.begin() + layout.segment_begin[segment + 1], segment);
    for (auto t : steps) {
        const auto &table = layout.tables[t];
        weight[t] = layout.steps[t].operations + static_cast<double>(table.size) + 500;
        below[t] = weight[t];
        for (auto input : {skeleton.steps[t].a, skeleton.steps[t].b})
            if (input >= 0) below[t] += below[input];
    }
    for (auto i = steps.size(); i-- > 0;) {
        const auto t = steps[i], consumer = skeleton.consumer[t];
        const bool last = consumer < 0 || weight[consumer] == 0;
        const bool apart = last || segment_of[consumer] != segment_of[t];
        owner[t] = apart || below[t] > grain ? t : owner[consumer];
        above[t] = weight[t] + (last ? 0 : above[consumer]);
        if (owner[t] == t && !last) pending[owner[consumer]]++;
    }
    wait_for_segments(steps);
    gather(steps);
    std::stable_sort(leaves.begin(), leaves.end(), [&](auto x, auto y) { return above[x] > above[y]; });
}

bool Tasks::finish(std::int32_t t) {
    const Index next = segment_of[t] + 1;
    if (--unfinished[next - 1] > 0 || unfinished[next] == 0 || begins_side(next)) return false;
    const std::size_t before = leaves.size();
    for (Index i = layout_.segment_begin[next]; i < layout_.segment_begin[next + 1]; i++)
        if (owner[i] == i && --pending[i] == 0) leaves.push_back(static_cast<std::int32_t>(i));
    return leaves.size() > before;
}

bool Tasks::begins_side(Index segment) const {
    return std::find(layout_.side_begin.begin(), layout_.side_begin.end(), segment) != layout_.side_begin.end();
}

void Tasks::wait_for_segments(std::span<const std::int32_t> steps) {
    for (auto t : steps)
        if (owner[t] == t) unfinished[segment_of[t]]++;
    for (auto t : steps) {
        const Index segment = segment_of[t];
        if (owner[t] == t && !begins_side(segment) && unfinished[segment - 1] > 0) pending[t]++;
    }
}

void Tasks::gather(std::span<const std::int32_t> steps) {
    std::vector<Index> size(weight.size() + 1, 0);
    for (auto t : steps) {
        if (owner[t] != t) size[owner[t] + 1]++;
        else count++;
        if (owner[t] == t && pending[t] == 0) leaves.push_back(t);
    }
    std::partial_sum(size.begin(), size.end(), size.begin());
    smaller.begin = size;
    smaller.data.resize(size.back());
    for (auto t : steps)
        if (owner[t] != t) smaller.data[size[owner[t]]++] = t;
}

class Team {
  public:
    Team(const Layout &layout, std::span<const std::int32_t> steps, Threads threads, const StepWork &work)
        : skeleton_(*layout.skeleton),
          tasks_(layout, steps, threads.grain),
          work_(work),
          grain_(threads.grain),
          jobs_(threads.count),
          next_look_(threads.count),
          left_(tasks_.count) {}

    void run(const Poll &poll) {
        std::vector<Index> members(jobs_.size());
        std::iota(members.begin(), members.end(), 0);
        share_out(
            members, static_cast<Index>(members.size()), [this](Worker &worker, Index) { take_part(worker); }, poll,
            [](const std::function<void()> &body) { body(); });
    }

  private:
    // A step that its owner computes together with those who have nothing else to do.
    struct Job {
        std::int32_t step = -1;
        Index next = 0, parts = 0, unfinished = 0;
    };

    void take_part(Worker &worker) {
        std::unique_lock guard(lock_);
        while (left_ > 0) {
            if (next_leaf_ < tasks_.leaves.size()) climb(worker, tasks_.leaves[next_leaf_++], guard);
            else if (!help(worker, guard)) wait(worker, guard);
        }
    }

    // One task after the other towards the root, as long as this was the last one that the next one waited for.
    void climb(Worker &worker, std::int32_t t, std::unique_lock<std::mutex> &guard) {
        while (t >= 0) {
            guard.unlock();
            for (auto small : tasks_.smaller[t]) work_(worker, small, {});
            compute(worker, t, guard);
            const bool more = tasks_.finish(t);
            if (--left_ == 0 || more) announce();
            const auto consumer = skeleton_.consumer[t];
            const bool last = consumer < 0 || tasks_.weight[consumer] == 0;
            t = last ? -1 : tasks_.owner[consumer];
            if (t >= 0 && --tasks_.pending[t] > 0) t = -1;
        }
    }

    // Leaves with the lock held.
    void compute(Worker &worker, std::int32_t t, std::unique_lock<std::mutex> &guard) {
        const auto most = static_cast<double>(kPartsEach * static_cast<Index>(jobs_.size()));
        const auto parts = static_cast<Index>(std::min(most, 2 * tasks_.weight[t] / grain_));
        if (parts < 2 || jobs_.size() == 1 || skeleton_.steps[t].verb == Verb::Unit) {
            work_(worker, t, {});
            guard.lock();
            return;
        }
        guard.lock();
        Job &job = jobs_[worker.number];
        job = {t, 0, parts, parts};
        announce();
        while (job.next < job.parts) compute_part(worker, job, guard);
        while (job.unfinished > 0) wait(worker, guard);
    }

    void compute_part(Worker &worker, Job &job, std::unique_lock<std::mutex> &guard) {
        const Part part{job.next++, job.parts};
        const auto step = job.step;
        guard.unlock();
        work_(worker, step, part);
        guard.lock();
        if (--job.unfinished == 0) announce();
    }

    bool help(Worker &worker, std::unique_lock<std::mutex> &guard) {
        for (auto &job : jobs_)
            if (job.next < job.parts) {
                compute_part(worker, job, guard);
                return true;
            }
        return false;
    }

    void announce() {
        news_++;
        changed_.notify_all();
    }

    // Until there is news, or now and then: first in the hope that it comes soon. Among busy processes one yield can
    // take milliseconds, and news can come again and again without any work for this thread: both go by the clock.
    void wait(Worker &worker, std::unique_lock<std::mutex> &guard) {
        const auto seen = news_.load();
        guard.unlock();
        for (const auto end = Clock::now() + kHope; news_ == seen && Clock::now() < end;) std::this_thread::yield();
        guard.lock();
        changed_.wait_for(guard, kPatience, [&] { return news_ != seen; });
        const auto now = Clock::now();
        if (now < next_look_[worker.number]) return;
        next_look_[worker.number] = now + kPatience;
        guard.unlock();
        worker.poll();
        guard.lock();
    }

    const Skeleton &skeleton_;
    Tasks tasks_;
    const StepWork &work_;
    double grain_;
    std::mutex lock_;  // of all that follows, and of the tasks' counts
    std::condition_variable changed_;
    std::atomic<std::uint32_t> news_{0};
    std::vector<Job> jobs_;                     // one per thread
    std::vector<Clock::time_point> next_look_;  // one per thread
    std::size_t next_leaf_ = 0;
    Index left_;  // tasks
};

}  // namespace

void work_together(const Layout &layout, std::span<const std::int32_t> steps, Threads threads, const StepWork &work,
                   const Poll &poll) {
    Team(layout, steps, threads, work).run(poll);
}

}  // namespace tallytree
