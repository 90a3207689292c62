#pragma once

#include <cstddef>
#include <cstdint>

namespace edt {

// total[i] += round_half_even(gradient[i] * scale) for i in [0, n).
//
// Returns true on overflow: gradient[i] * scale is not finite or not below 2^62 in size, or the addition leaves
// int64. The content of total is unspecified then. `scale` is a power of two, so the product is exact.
// The specification in Python: edt_hvd/fixed_point.py.
bool accumulate(const float* gradient, double scale, std::int64_t* total, std::size_t n);

}  // namespace edt
