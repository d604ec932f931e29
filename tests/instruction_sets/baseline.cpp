#define PART part_for_the_baseline
#include "part.inl"
