#include "table.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>

namespace {

constexpr int name_width = 48;

struct Column {
    const char* counter;
    const char* heading;
    int decimals;
};

const Column columns[] = {{"gflops", "GFLOP/s", 1},          {"fraction_of_peak", "of peak", 2},
                          {"gigabytes_a_second", "GB/s", 1}, {"fraction_of_bandwidth", "of bandwidth", 2},
                          {"vs_eigen", "vs eigen", 2},       {"vs_openblas", "vs openblas", 2},
                          {"vs_onednn", "vs onednn", 2},     {"vs_torch", "vs torch", 2}};
constexpr const char* error_heading = "error";
constexpr const char* peer_error_heading = "best peer's";

void print_cell(std::ostream& out, const std::string& text, std::string_view heading) {
    out << std::setw(int(heading.size()) + 2) << text;
}

/// Without the spaces at its end, at once.
void print_line(std::ostream& out, const std::string& line) {
    out << line.substr(0, line.find_last_not_of(' ') + 1) << std::endl;
}

/// "0.87"; empty where there is no such counter.
std::string number(const benchmark::UserCounters& counters, const Column& column) {
    const auto found = counters.find(column.counter);
    std::ostringstream text;
    if (found != counters.end())
        text << std::fixed << std::setprecision(column.decimals) << found->second.value;
    return text.str();
}

/// "3.1e-07"; empty where the error is not known.
std::string scientific(std::optional<double> error) {
    std::ostringstream text;
    if (error)
        text << std::scientific << std::setprecision(1) << *error;
    return text.str();
}

std::optional<double> own_error(const benchmark::UserCounters& counters) {
    const auto found = counters.find("error");
    return found == counters.end() ? std::nullopt : std::optional<double>(found->second.value);
}

std::optional<double> smallest_error_of_peers(const benchmark::UserCounters& counters) {
    std::optional<double> smallest;
    for (const auto& [name, counter] : counters)
        if (name.starts_with("error_") && (!smallest || counter.value < *smallest))
            smallest = counter.value;
    return smallest;
}

/// Without how Google Benchmark took the time.
std::string case_of(const std::string& benchmark_name) {
    const auto suffix = benchmark_name.find("/manual_time");
    return suffix == std::string::npos ? benchmark_name
                                       : benchmark_name.substr(0, suffix) + benchmark_name.substr(suffix + 12);
}

} // namespace

void Table::PrintHeader(const Run&) {
    std::ostringstream out;
    out << std::left << std::setw(name_width) << "case" << std::right;
    for (const Column& column : columns)
        print_cell(out, column.heading, column.heading);
    print_cell(out, error_heading, "1.0e-00");
    print_cell(out, peer_error_heading, peer_error_heading);
    print_line(GetOutputStream(), out.str());
}

void Table::PrintRunData(const Run& run) {
    if (run.counters.empty())
        return ConsoleReporter::PrintRunData(run);
    std::ostringstream out;
    out << std::left << std::setw(name_width) << case_of(run.benchmark_name()) << std::right;
    for (const Column& column : columns)
        print_cell(out, number(run.counters, column), column.heading);
    print_cell(out, scientific(own_error(run.counters)), "1.0e-00");
    print_cell(out, scientific(smallest_error_of_peers(run.counters)), peer_error_heading);
    print_line(GetOutputStream(), out.str());
}
