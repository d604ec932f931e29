#define PART part_for_avx2
#include "part.inl"
