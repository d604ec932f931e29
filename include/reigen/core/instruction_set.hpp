#pragma once

// Refuses flags that would break the library's promises about numbers, and names the instruction set this file
// is compiled for.
//
// All of reigen sits in one inline namespace named after it, so that one program may hold files built for
// different instruction sets: their functions then have different names and the linker cannot exchange them.

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "reigen: compile without -ffast-math and -ffinite-math-only: masks need infinities, sums need their order"
#endif

// OpenMP changes what the kernels are compiled to, so it is part of the name.
#ifdef _OPENMP
#define REIGEN_THREADING(set) set##_openmp
#else
#define REIGEN_THREADING(set) set
#endif

// Whether products of bfloat16 are taken by AMX, whose tiles multiply it 16 times as fast as packets multiply float.
#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AVX512F__) && defined(__AVX512BF16__) &&               \
    defined(__linux__)
#define REIGEN_AMX
#endif

// Whether bfloat16 is multiplied in pairs. Intel's processors since Sapphire Rapids, told from its older ones by
// AVX512-FP16 and from AMD's by SSE4a, can without AMX, but slower than float: on an Emerald Rapids 87 GFLOP/s against
// 178.
#if defined(REIGEN_AMX) ||                                                                                             \
    (defined(__AVX512F__) && defined(__AVX512BF16__) && (defined(__SSE4A__) || !defined(__AVX512FP16__)))
#define REIGEN_BFLOAT16_PAIRS
#endif

#if defined(REIGEN_AMX)
#define REIGEN_INSTRUCTION_SET REIGEN_THREADING(avx512_amx)
#elif defined(REIGEN_BFLOAT16_PAIRS)
#define REIGEN_INSTRUCTION_SET REIGEN_THREADING(avx512_bf16)
#elif defined(__AVX512F__)
#define REIGEN_INSTRUCTION_SET REIGEN_THREADING(avx512)
#elif defined(__AVX2__) && defined(__FMA__)
#define REIGEN_INSTRUCTION_SET REIGEN_THREADING(avx2_fma)
#elif defined(__AVX__)
#define REIGEN_INSTRUCTION_SET REIGEN_THREADING(avx)
#elif defined(__SSE4_1__)
#define REIGEN_INSTRUCTION_SET REIGEN_THREADING(sse4)
#elif defined(__SSE2__)
#define REIGEN_INSTRUCTION_SET REIGEN_THREADING(sse2)
#elif defined(__ARM_FEATURE_SVE)
#define REIGEN_INSTRUCTION_SET REIGEN_THREADING(sve)
#elif defined(__ARM_NEON)
#define REIGEN_INSTRUCTION_SET REIGEN_THREADING(neon)
#else
#define REIGEN_INSTRUCTION_SET REIGEN_THREADING(generic)
#endif

#define REIGEN_STRING_OF(text) #text
#define REIGEN_STRING(macro) REIGEN_STRING_OF(macro)

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// The instruction set the including file is compiled for, and whether kernels use OpenMP's threads, as in every symbol's
/// name.
inline constexpr const char* instruction_set = REIGEN_STRING(REIGEN_INSTRUCTION_SET);

} // namespace reigen::inline REIGEN_INSTRUCTION_SET

#undef REIGEN_STRING
#undef REIGEN_STRING_OF
