#include "communication/cases.hpp"

namespace communication {

std::string Case::name() const {
    return std::string(to_string(call)) + (call == Call::barrier ? "" : "/float/" + std::to_string(bytes)) +
           (in_buffers ? "/buffer" : "");
}

double Case::bytes_read(int ranks) const {
    const double others = double(bytes) * (ranks - 1) / ranks;
    switch (call) {
    case Call::all_reduce:
        return 2 * others; // its slice of each vector, and the sums of the others
    case Call::broadcast:
        return double(bytes);
    default:
        return others;
    }
}

std::vector<Case> all_cases(int ranks) {
    std::vector<Case> cases;
    for (const Call call :
         {Call::all_reduce, Call::all_gather, Call::reduce_scatter, Call::broadcast, Call::all_to_all})
        for (const Index bytes :
             {64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}) {
            const Index grain = Index(sizeof(float)) * ranks;
            const Index whole = (bytes + grain - 1) / grain * grain;
            cases.push_back({call, whole, false});
            if (bytes >= (16 << 10))
                cases.push_back({call, whole, true});
        }
    cases.push_back({Call::barrier, 0, false});
    return cases;
}

} // namespace communication
