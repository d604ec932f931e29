#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace examples {

/// Rows of text under a heading, columns padded to their widest cell: the first to the left, the others to the right.
class TextTable {
  public:
    explicit TextTable(std::vector<std::string> heading);

    /// A row may be shorter than the heading, not longer.
    void add(std::vector<std::string> row);

    friend std::ostream& operator<<(std::ostream& out, const TextTable& table);

  private:
    std::vector<std::vector<std::string>> rows_;
    std::vector<std::size_t> widths_;
};

} // namespace examples
