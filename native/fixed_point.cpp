#include "fixed_point.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace edt {
namespace {

// Small enough that a block read by the range check is still in the first-level cache when it is added.
constexpr std::size_t kBlock = 1024;

constexpr double kLimit = 0x1p62;

// Below kFast, adding kMagic leaves the rounded integer in the low bits of the sum's mantissa: the processor
// rounds half to even, and the conversion is an integer subtraction that every vector unit has.
constexpr double kFast = 0x1p51;
constexpr double kMagic = 0x1.8p52;

EDT_CLONES bool all_below_fast(const float* gradient, double scale, std::size_t n) {
  std::int64_t bad = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(gradient[i]) * scale;
    bad |= std::abs(x) < kFast ? 0 : 1;  // a NaN is below nothing
  }
  return bad == 0;
}

EDT_CLONES bool add_fast(const float* gradient, double scale, std::int64_t* total, std::size_t n) {
  std::int64_t signs = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double shifted = static_cast<double>(gradient[i]) * scale + kMagic;
    const std::uint64_t addend = std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(kMagic);
    const std::uint64_t before = static_cast<std::uint64_t>(total[i]);
    const std::uint64_t after = before + addend;  // unsigned: wrapping is defined
    signs |= static_cast<std::int64_t>((before ^ after) & (addend ^ after));
    total[i] = static_cast<std::int64_t>(after);
  }
  return signs < 0;
}

bool add_large(const float* gradient, double scale, std::int64_t* total, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(gradient[i]) * scale;
    if (!(std::abs(x) < kLimit)) return true;
    const auto addend = static_cast<std::int64_t>(std::nearbyint(x));
    const bool overflowed = addend > 0 ? total[i] > INT64_MAX - addend : total[i] < INT64_MIN - addend;
    if (overflowed) return true;
    total[i] += addend;
  }
  return false;
}

}  // namespace

bool accumulate(const float* gradient, double scale, std::int64_t* total, std::size_t n) {
  for (std::size_t start = 0; start < n; start += kBlock) {
    const std::size_t count = std::min(kBlock, n - start);
    const bool fast = all_below_fast(gradient + start, scale, count);
    const bool overflowed = (fast ? add_fast : add_large)(gradient + start, scale, total + start, count);
    if (overflowed) return true;
  }
  return false;
}

}  // namespace edt
