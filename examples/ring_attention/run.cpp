#include <ring_attention/run.hpp>

#include <ring_attention/picture.hpp>

#include <support/console.hpp>
#include <support/memory_report.hpp>
#include <support/text_table.hpp>
#include <support/units.hpp>

#include <reigen/attention/audit.hpp>
#include <reigen/attention/reference.hpp>
#include <reigen/attention/ring.hpp>
#include <reigen/core/random.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

namespace ring_attention {
namespace {

using namespace reigen;

template <class T>
using Matrix = Sharded<T, split_rows(cp)>;

enum class Tensor : std::uint8_t { q, k, v, dout };

/// The number at a place of a token matrix: a function of the seed and the place, so that every division has the same.
double number(const Options& options, Tensor tensor, Index place) {
    return double(float(RandomStream(options.seed, int(tensor)).normal(place)));
}

/// Queries, keys and values of the whole problem, for the reference.
ReferenceTensor whole(const Options& options, Tensor tensor, Index heads) {
    ReferenceTensor result(options.batch, options.tokens, heads, options.head_dim);
    for (std::size_t i = 0; i < result.values.size(); ++i)
        result.values[i] = number(options, tensor, Index(i));
    return result;
}

/// What this rank has of one of them.
template <class T>
Matrix<T> part(const Options& options, const Mesh& mesh, const Sequences& sequences, Tensor tensor, Index heads) {
    const Index columns = heads * options.head_dim;
    return Matrix<T>::from_global(mesh, sequences.rows(mesh, cp), columns, [&](Index row, Index column) {
        return T(number(options, tensor, row * columns + column));
    });
}

/// Everything that goes in and comes out on this rank.
template <class T>
struct Parts {
    Sequences sequences;
    Matrix<T> q, k, v, dout;
    Attended<T, split_rows(cp)> forward;
    Matrix<T> dq, dk, dv;

    Parts(const Options& options, const Mesh& mesh)
        : sequences{options.batch, options.tokens, options.sequence_layout(), options.stripe.value_or(1)},
          q(part<T>(options, mesh, sequences, Tensor::q, options.heads)),
          k(part<T>(options, mesh, sequences, Tensor::k, options.kv_heads)),
          v(part<T>(options, mesh, sequences, Tensor::v, options.kv_heads)),
          dout(part<T>(options, mesh, sequences, Tensor::dout, options.heads)) {}

    AuditReport audit(const Options& options) const {
        const auto of = [&](const auto& x) { return heads(x, sequences, options.head_dim); };
        return audit_attention(of(q), of(k), of(v), forward.out, forward.lse, {options.band()},
                               {.rows = options.audit, .seed = options.seed});
    }

    void compute(const Options& options) {
        const auto of = [&](auto& x) { return heads(x, sequences, options.head_dim); };
        const AttentionOptions attention = {options.band()};
        forward = reigen::ring_attention(of(q), of(k), of(v), attention);
        if (!options.backward)
            return;
        dq = Matrix<T>(q.spec());
        dk = Matrix<T>(k.spec());
        dv = Matrix<T>(v.spec());
        ring_attention_backward(of(q), of(k), of(v), forward.out, forward.lse, dout, of(dq), of(dk), of(dv), attention);
    }
};

std::vector<Index> gathered(const Communicator& world, Index mine) {
    std::vector<Index> all(std::size_t(world.size()));
    world.all_gather(std::vector<Index>{mine}, all);
    return all;
}

/// The blocks that leave this rank, in bytes: B S_j Hkv (d + dv) w each.
Index bytes_of_blocks(const Options& options, const Sequences& sequences, const HopPlan& plan, int rank, Index size) {
    const int ranks = int(plan.at.size());
    Index bytes = 0;
    for (const Turn turn : both_turns)
        for (int step = 0; step < plan.route.steps(turn); ++step) {
            const int block = plan.route.block_at(turn, rank, step);
            if (plan.route.steps(turn, block) > step)
                bytes += options.batch * sequences.positions(ranks, block).size() * options.kv_heads * 2 *
                         options.head_dim * size;
        }
    return bytes;
}

void show_traffic(const Communicator& world, Traffic sent, Index keys_and_values, std::ostream& out) {
    const auto messages = gathered(world, sent.messages);
    const auto bytes = gathered(world, sent.bytes);
    const auto blocks = gathered(world, keys_and_values);
    const auto moved = [](Index count) { return concat(examples::count_text(count), " B"); };
    out << "What each rank sends\n\n";
    examples::TextTable table({"rank", "messages", "keys and values", "gradients"});
    for (std::size_t rank = 0; rank < bytes.size(); ++rank)
        table.add({concat(rank), concat(messages[rank]), moved(blocks[rank]), moved(bytes[rank] - blocks[rank])});
    out << table << '\n';
}

/// Largest difference on any rank, over the largest number of the reference.
template <class T>
double relative_error(const Matrix<T>& got, const ReferenceTensor& want) {
    double worst[2] = {0, std::numeric_limits<double>::min()};
    for (Index i = 0; i < got.local().rows(); ++i)
        for (Index j = 0; j < got.local().cols(); ++j) {
            const Index row = got.row_runs()[i];
            const double exact = want(row / want.tokens, row % want.tokens, j / want.dim, j % want.dim);
            const double value = double(got.local()(i, j));
            const double error = value == exact ? 0 : std::abs(value - exact);
            worst[0] = std::max(worst[0], std::isnan(error) ? std::numeric_limits<double>::infinity() : error);
            worst[1] = std::max(worst[1], std::isinf(exact) ? 0 : std::abs(exact));
        }
    got.mesh().world().all_reduce(worst, Reduction::max);
    return worst[0] / worst[1];
}

struct Difference {
    std::string name;
    double error;
};

template <class T>
std::vector<Difference> differences(const Options& options, const Parts<T>& parts) {
    const ReferenceProblem problem = {
        whole(options, Tensor::q, options.heads), whole(options, Tensor::k, options.kv_heads),
        whole(options, Tensor::v, options.kv_heads), options.band(), 1 / std::sqrt(double(options.head_dim))};
    const ReferenceOutput output = reference_attention(problem);
    std::vector<Difference> result = {{"out", relative_error(parts.forward.out, output.out)},
                                      {"lse", relative_error(parts.forward.lse, output.lse)}};
    if (!options.backward)
        return result;
    const ReferenceGradients gradients =
        reference_attention_backward(problem, whole(options, Tensor::dout, options.heads));
    result.push_back({"dq", relative_error(parts.dq, gradients.dq)});
    result.push_back({"dk", relative_error(parts.dk, gradients.dk)});
    result.push_back({"dv", relative_error(parts.dv, gradients.dv)});
    return result;
}

/// Shows what recomputing some rows found; whether that is within `tolerance`.
bool show_audit(const AuditReport& audit, double tolerance, std::ostream& out) {
    const bool close = audit.within(tolerance);
    out << "Audit: " << to_string(audit) << (close ? ", " : ", NOT ") << "below "
        << examples::scientific_text(tolerance) << ".\n";
    return close;
}

/// Shows the differences; whether all are within `tolerance`.
bool show_differences(const std::vector<Difference>& differences, double tolerance, std::ostream& out) {
    out << "Largest error against dense attention in double, over the largest number\n\n";
    examples::TextTable table({"result", "error"});
    bool close = true;
    for (const auto& [name, error] : differences) {
        table.add({name, examples::scientific_text(error)});
        close = close && error <= tolerance;
    }
    out << table << '\n' << (close ? "All" : "NOT all") << " below " << examples::scientific_text(tolerance) << ".\n";
    return close;
}

template <class T>
int run_in(const Options& options, const Communicator& world) {
    const Mesh mesh(world, {{Axes::cp, world.size()}});
    std::ostream& out = examples::console(world);
    Parts<T> parts(options, mesh);
    const HopPlan plan = plan_hops(parts.sequences, options.band(), world.size());
    show_positions(parts.sequences, world.size(), out);
    show_hops(plan, out);
    if (options.tokens <= 32)
        show_pairs(parts.sequences, options.band(), plan, out);

    memory_account()->reset_peaks();
    const Traffic before = world.traffic();
    parts.compute(options);
    const Traffic sent = world.traffic() - before;
    const Index passes = options.backward ? 2 : 1;
    show_traffic(world, sent, passes * bytes_of_blocks(options, parts.sequences, plan, world.rank(), Index(sizeof(T))),
                 out);
    const examples::MemoryReport memory = examples::memory_report(world);
    out << "What each rank holds (keys and values: of other ranks, or on their way)\n\n" << memory << '\n';
    const double tolerance = options.dtype == "float" ? 1e-4 : 1e-12;
    const bool audited = options.audit == 0 || show_audit(parts.audit(options), tolerance, out);
    const bool compared = options.no_reference || show_differences(differences(options, parts), tolerance, out);
    return audited && compared ? 0 : 1;
}

} // namespace

int run(const Options& options, const Communicator& world) {
    return options.dtype == "float" ? run_in<float>(options, world) : run_in<double>(options, world);
}

} // namespace ring_attention
