// The numbers that Python and C++ have names for: defined here once, and exported.
#include "bind/checks.h"
#include "bulk/objectives.h"
#include "charts/derivation.h"
#include "plan/order.h"
#include "plan/table_price.h"

namespace tallytree {

void bind_enums(nb::module_ &m) {
    m.attr("UNCAPPED") = kUncapped;
    m.attr("NO_LIMIT") = kNoLimit;
    m.attr("SEARCH_SHARE") = kSearchShare;

    nb::enum_<AlgebraKind>(m, "Algebra", nb::is_arithmetic())
        .value("MAX_PLUS", AlgebraKind::MaxPlus)
        .value("LOG_SUM_EXP", AlgebraKind::LogSumExp)
        .value("COUNTING", AlgebraKind::Counting);

    nb::enum_<Objective>(m, "Objective", nb::is_arithmetic())
        .value("LIKELIHOOD", Objective::Likelihood)
        .value("SOFTMAX_MARGIN", Objective::SoftmaxMargin)
        .value("RISK", Objective::Risk)
        .value("EVIDENCE", Objective::Evidence);

    nb::enum_<Mode>(m, "TallyMode", nb::is_arithmetic())
        .value("AUTO", Mode::Automatic)
        .value("ROWS", Mode::Rows)
        .value("CELLS", Mode::Cells);

    nb::enum_<OrderMethod>(m, "OrderMethod", nb::is_arithmetic())
        .value("MIN_FILL", OrderMethod::MinFill)
        .value("MIN_DEGREE", OrderMethod::MinDegree)
        .value("MIN_WEIGHT", OrderMethod::MinWeight)
        .value("NATURAL", OrderMethod::Natural)
        .value("SWEEP", OrderMethod::Sweep)
        .value("MIN_TALLY", OrderMethod::MinTally)
        .value("MIN_OPEN", OrderMethod::MinOpen);

    nb::enum_<Purpose>(m, "Purpose", nb::is_arithmetic())
        .value("TABLES", Purpose::Tables)
        .value("PASSES", Purpose::Passes)
        .value("DRAFT", Purpose::Draft)
        .value("OUTLINE", Purpose::Outline)
        .value("LINKED", Purpose::Linked);

    nb::enum_<Verb>(m, "Verb", nb::is_arithmetic())
        .value("UNIT", Verb::Unit)
        .value("JOIN", Verb::Join)
        .value("ELIMINATE", Verb::Eliminate)
        .value("WORD", Verb::Word)
        .value("COMBINE", Verb::Combine)
        .value("UNARY", Verb::Unary);

    nb::enum_<ChartStep::Kind>(m, "DerivationStep", nb::is_arithmetic())
        .value("WORD", ChartStep::Word)
        .value("UNARY", ChartStep::Unary)
        .value("SPLIT", ChartStep::Split);
}

}  // namespace tallytree
