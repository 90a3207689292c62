#include "fixed_point.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <thread>
#include <type_traits>
#include <vector>

#include "formats.hpp"

namespace edt {
namespace {

// Below 2^51, adding kMagic leaves the rounded integer in the low bits of the sum's mantissa: the processor
// rounds half to even, and the conversion is an integer subtraction that every vector unit has.
constexpr double kMagic = 0x1.8p52;

// Small enough that a block that was looked through is still in the first-level cache when it is added.
constexpr std::size_t kBlock = 1024;

// Fewer elements than this take less time than a thread takes to start.
constexpr std::size_t kPerThread = std::size_t{1} << 18;

// The largest size whose product is below the limit. Rounding is monotone, so comparing sizes with it is
// comparing products with the limit, at the width of Float instead of double. Infinity and NaN are above it.
template <typename Float>
Bits<Float> largest_below(double limit, double factor) {
  Bits<Float> below = 0;
  Bits<Float> above = Format<Float>::kInfinity;
  while (above - below > 1) {
    const auto middle = static_cast<Bits<Float>>(below + (above - below) / 2);
    (widen(std::bit_cast<Float>(middle)) * factor < limit ? below : above) = middle;
  }
  return below;
}

// `total` plus the rounded product, which must be below 2^51.
template <typename Int>
inline Int plus_rounded(Int total, double product) {
  using Unsigned = std::make_unsigned_t<Int>;  // its addition wraps
  const auto addend = std::bit_cast<std::uint64_t>(product + kMagic) - std::bit_cast<std::uint64_t>(kMagic);
  return static_cast<Int>(static_cast<Unsigned>(total) + static_cast<Unsigned>(addend));
}

template <typename Float>
EDT_CLONES Bits<Float> largest_size(const Float* values, std::size_t n) {
  Bits<Float> largest = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, size_bits(values[i]));
  return largest;
}

// Adds what is not larger than `allowed`, and returns the largest size of all.
template <typename Float, typename Int>
EDT_CLONES Bits<Float> add_allowed(const Float* __restrict gradient, double factor, Int* __restrict total,
                                   Bits<Float> allowed, std::size_t n) {
  Bits<Float> largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Bits<Float> size = size_bits(gradient[i]);
    const Bits<Float> kept = value_if(size <= allowed, std::bit_cast<Bits<Float>>(gradient[i]));
    largest = std::max(largest, size);
    total[i] = plus_rounded(total[i], widen(std::bit_cast<Float>(kept)) * factor);
  }
  return largest;
}

// Adds a block, all of which must be allowed, and returns the largest size in the block after it.
template <typename Float, typename Int>
EDT_CLONES Bits<Float> add_block(const Float* __restrict gradient, double factor, Int* __restrict total) {
  Bits<Float> largest = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    largest = std::max(largest, size_bits(gradient[kBlock + i]));
    total[i] = plus_rounded(total[i], widen(gradient[i]) * factor);
  }
  return largest;
}

// Adds what is not larger than `allowed`, and returns the largest size of all. While all are, the arithmetic
// of leaving some out is saved: it, not memory, is what the time goes into as long as the data is in a cache.
template <typename Float, typename Int>
Bits<Float> add(const Float* gradient, double factor, Int* total, Bits<Float> allowed, std::size_t n) {
  Bits<Float> largest = largest_size(gradient, std::min(n, kBlock));
  std::size_t start = 0;
  for (; n - start >= 2 * kBlock && largest <= allowed; start += kBlock) {
    largest = std::max(largest, add_block(gradient + start, factor, total + start));
  }
  return std::max(largest, add_allowed(gradient + start, factor, total + start, allowed, n - start));
}

template <typename Int, typename Float>
EDT_CLONES void convert(const Int* __restrict total, double scale, Float* __restrict out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = narrow<Float>(to_double(total[i]) * scale);
}

std::size_t parts_of(std::size_t n, unsigned threads) {
  return std::clamp<std::size_t>(n / kPerThread, 1, std::max(threads, 1u));
}

// Calls work(part, begin, end) for each part, the first in this thread, and returns when all are done.
// Threads are started anew each time: a pool would not survive a fork.
template <typename Work>
void for_each_part(std::size_t n, std::size_t parts, Work work) {
  const auto begin = [=](std::size_t part) { return n / parts * part + std::min(part, n % parts); };
  std::vector<std::jthread> others;
  for (std::size_t part = 1; part < parts; ++part)
    others.emplace_back(work, part, begin(part), begin(part + 1));
  work(std::size_t{0}, std::size_t{0}, begin(1));
}

}  // namespace

template <typename Float, typename Int>
double accumulate(const Float* gradient, double factor, Int* total, double limit, std::size_t n,
                  unsigned threads) {
  const Bits<Float> allowed = largest_below<Float>(limit, factor);
  std::vector<Bits<Float>> largest(parts_of(n, threads));
  for_each_part(n, largest.size(), [&](std::size_t part, std::size_t begin, std::size_t end) {
    largest[part] = add(gradient + begin, factor, total + begin, allowed, end - begin);
  });
  const Bits<Float> bits = *std::max_element(largest.begin(), largest.end());
  if (bits >= Format<Float>::kInfinity) return std::numeric_limits<double>::infinity();
  return widen(std::bit_cast<Float>(bits));
}

template <typename Int, typename Float>
void to_float(const Int* total, double scale, Float* out, std::size_t n, unsigned threads) {
  for_each_part(n, parts_of(n, threads), [&](std::size_t, std::size_t begin, std::size_t end) {
    convert(total + begin, scale, out + begin, end - begin);
  });
}

#define EDT_INSTANTIATE(Float, Int)                                                      \
  template double accumulate(const Float*, double, Int*, double, std::size_t, unsigned); \
  template void to_float(const Int*, double, Float*, std::size_t, unsigned);

EDT_INSTANTIATE(Float16, std::int32_t)
EDT_INSTANTIATE(Float16, std::int64_t)
EDT_INSTANTIATE(BFloat16, std::int32_t)
EDT_INSTANTIATE(BFloat16, std::int64_t)
EDT_INSTANTIATE(float, std::int32_t)
EDT_INSTANTIATE(float, std::int64_t)
EDT_INSTANTIATE(double, std::int32_t)
EDT_INSTANTIATE(double, std::int64_t)

}  // namespace edt
