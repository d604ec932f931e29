#pragma once

#include <string>

/// What an exception of this type says, or "" where there is none.
template <class Exception, class Call>
std::string words_of(Call call) {
    try {
        call();
    } catch (const Exception& error) {
        return error.what();
    }
    return "";
}
