// What a search knows of a model or of a sentence besides its passes.
#pragma once

#include "bounds/tally.h"

namespace tallytree::bounds {

struct Evaluated {
    double score = 0;  // as if in twice the precision
    Tally tally{};
};

class Subject {
  public:
    virtual ~Subject() = default;

    virtual Index statistics() const = 0;
    // Whether a band can tell all tallies apart.
    virtual bool keyed() const { return true; }
    // No tally lies outside.
    virtual const Box &range() const = 0;
    // The sum of the largest sizes of all scores: no score is larger in size.
    virtual double magnitude() const = 0;
    // How many sums of scores and messages a pass makes.
    virtual double operations() const = 0;
    // What takes how long, in units of work: a cell of a band, usually, and to evaluate a labelling. A unit is about a
    // nanosecond for models, and an operation of a pass for sentences.
    virtual double cell() const { return 16; }
    virtual double labelling_work() const { return 4 * static_cast<double>(choices()); }
    // How many numbers a labelling has.
    virtual Index length() const = 0;
    // How many parts a labelling is made of, each with a score of its own, and how many steps that takes.
    virtual Index variables() const = 0;
    virtual Index choices() const = 0;
    // A budget whose band is small beside a pass, as a multiple of the usual size of a score; `span`: how many tallies
    // a statistic has.
    virtual double small_budget(double span) const = 0;
    virtual Evaluated evaluate(const std::int64_t *labelling) const = 0;
};

}  // namespace tallytree::bounds
