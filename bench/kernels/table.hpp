#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>

/// Prints each row on a line whose columns stay where they are, whichever counters the row has.
class Table : public benchmark::ConsoleReporter {
  public:
    Table() : ConsoleReporter(OO_None) {}

  protected:
    void PrintHeader(const Run& run) override;
    void PrintRunData(const Run& run) override;
};
