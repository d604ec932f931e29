#include <support/text_table.hpp>

#include <reigen/core/error.hpp>

#include <algorithm>
#include <ostream>

namespace examples {

TextTable::TextTable(std::vector<std::string> heading) : widths_(heading.size(), 0) {
    add(std::move(heading));
}

void TextTable::add(std::vector<std::string> row) {
    reigen::require(row.size() <= widths_.size(), "TextTable: a row of ", row.size(), " cells under ", widths_.size(),
                    " columns");
    for (std::size_t column = 0; column < row.size(); ++column)
        widths_[column] = std::max(widths_[column], row[column].size());
    rows_.push_back(std::move(row));
}

std::ostream& operator<<(std::ostream& out, const TextTable& table) {
    for (const auto& row : table.rows_) {
        for (std::size_t column = 0; column < row.size(); ++column) {
            const bool last = column + 1 == row.size();
            const std::string padding(table.widths_[column] - row[column].size(), ' ');
            if (column == 0)
                out << "  " << row[column] << (last ? "" : padding);
            else
                out << "  " << padding << row[column];
        }
        out << '\n';
    }
    return out;
}

} // namespace examples
