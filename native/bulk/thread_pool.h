// Distributes work among threads.
#pragma once

#include "common.h"

namespace tallytree {

// One thread's part in a job. `poll` throws when the work is to end early.
struct Worker {
    Index number;
    Poll poll;
};

using Work = std::function<void(Worker &worker, Index item)>;
using Inside = std::function<void(const std::function<void()> &body)>;

// Calls `work` once for each of `items`, in that order as far as threads allow. The calling thread is one of them and
// checks for interrupts with `poll`; `inside` runs the body of every other one. The first exception ends all of them
// and is thrown here.
void share_out(std::span<const Index> items, Index threads, const Work &work, const Poll &poll, const Inside &inside);

// The number of groups for items whose results are added up: each group has its own sum, of this many bytes, and sums
// are added in the order of the groups, so that the number of threads changes nothing.
Index group_count(Index items, double bytes_each);

}  // namespace tallytree
