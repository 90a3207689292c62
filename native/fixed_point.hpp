#pragma once

#include <cstddef>
#include <cstdint>

namespace edt {

// Half-precision numbers, as their bits; a compiler does not vectorize loads of a struct.
enum class Float16 : std::uint16_t {};
enum class BFloat16 : std::uint16_t {};

// total[i] += round_half_even(gradient[i] * factor) where |gradient[i] * factor| < limit, in two's
// complement, for i in [0, n); the other elements, NaN among them, are left out. 1 <= limit <= 2^51, and
// limit <= 2^30 for 32-bit totals. Returns the largest |gradient[i]|; infinity when an element is not finite,
// 0 when n is 0.
//
// Float is Float16, BFloat16, float or double; Int is std::int32_t or std::int64_t. At most `threads` threads
// work on it, each on a part of its own. The specification in Python: edt_hvd/reduction/fixed_point/arithmetic.py.
template <typename Float, typename Int>
double accumulate(const Float* gradient, double factor, Int* total, double limit, std::size_t n,
                  unsigned threads);

// out[i] = total[i] * scale, rounded to nearest even on the way to double and, by way of float, to Float.
template <typename Int, typename Float>
void to_float(const Int* total, double scale, Float* out, std::size_t n, unsigned threads);

}  // namespace edt
