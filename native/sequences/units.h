// The units of BLEU and ROUGE, and the measures of their tallies.
#pragma once

#include "sequences/search.h"

namespace tallytree::sequences {

// What counts in a sentence; `ends` says where in the references.
std::vector<Unit> units_of(const Problem &problem, GramCounter::Ends &ends);
Measure measure_of(const Problem &problem, Index length);
Index tallies_of(const Problem &problem);

}  // namespace tallytree::sequences
