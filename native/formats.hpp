#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "fixed_point.hpp"

// The number formats: a float's size as an integer, and conversions that a compiler can vectorize for any
// processor, with integer operations and additions in place of instructions that only some of them have.
namespace edt {

// Bits is signed because every vector unit compares signed integers; without the sign bit a float's bits
// order as its size does, infinity above the finite ones and NaN above infinity.
template <typename Number>
struct Format;

template <>
struct Format<Float16> {
  using Bits = std::int16_t;
  static constexpr Bits kInfinity = 0x7c00;
};

template <>
struct Format<BFloat16> {
  using Bits = std::int16_t;
  static constexpr Bits kInfinity = 0x7f80;
};

template <>
struct Format<float> {
  using Bits = std::int32_t;
  static constexpr Bits kInfinity = 0x7f800000;
};

template <>
struct Format<double> {
  using Bits = std::int64_t;
  static constexpr Bits kInfinity = 0x7ff0000000000000;
};

template <typename Float>
using Bits = typename Format<Float>::Bits;

template <typename Float>
inline Bits<Float> size_bits(Float value) {
  constexpr auto mask = static_cast<Bits<Float>>(~(std::uint64_t{1} << (8 * sizeof(Float) - 1)));
  return static_cast<Bits<Float>>(std::bit_cast<Bits<Float>>(value) & mask);
}

// condition ? value : 0, without the branch that a compiler may make of that and then cannot vectorize.
template <typename Integer>
inline Integer value_if(bool condition, Integer value) {
  return static_cast<Integer>(value & -static_cast<Integer>(condition));
}

// Of finite numbers.
inline double widen(double value) { return value; }
inline double widen(float value) { return value; }
inline double widen(BFloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }

inline double widen(Float16 value) {
  constexpr std::uint32_t rebias = (127 - 15) << 23;
  constexpr std::uint32_t one = 1 << 23;  // in the exponent
  const std::uint32_t shifted = (static_cast<std::uint32_t>(value) & 0x7fff) << 13;
  const std::uint32_t sign = (static_cast<std::uint32_t>(value) & 0x8000) << 16;
  // A subnormal has no implicit one: it is read as if it had, and 2^-14 subtracted.
  const bool subnormal = shifted < one;
  const float excess = std::bit_cast<float>(value_if(subnormal, std::bit_cast<std::uint32_t>(0x1p-14f)));
  const float size = std::bit_cast<float>(shifted + rebias + value_if(subnormal, one)) - excess;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
}

inline double to_double(std::int32_t value) { return value; }

// Rounds once, in the last addition. Vector conversions from 64-bit integers came only with AVX-512.
inline double to_double(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  const double low = std::bit_cast<double>((bits & 0xffffffff) | std::bit_cast<std::uint64_t>(0x1p52));
  const double high = std::bit_cast<double>((bits >> 32) ^ std::bit_cast<std::uint64_t>(0x1p84 + 0x1p63));
  return (high - (0x1p84 + 0x1p63 + 0x1p52)) + low;
}

// Numbers and infinities are rounded to nearest even; a product of an integer and a power of two is no NaN.
template <typename Float>
inline Float narrow(double value);

template <>
inline double narrow<double>(double value) {
  return value;
}

template <>
inline float narrow<float>(double value) {
  return static_cast<float>(value);
}

template <>
inline BFloat16 narrow<BFloat16>(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<BFloat16>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <>
inline Float16 narrow<Float16>(double value) {
  const auto single = static_cast<float>(value);
  const auto sign = (std::bit_cast<std::uint32_t>(single) >> 16) & 0x8000;
  const float size = std::abs(single);
  // One in the last place of 0.5f is the smallest half: the addition rounds a subnormal to a multiple of it.
  const bool subnormal = std::bit_cast<std::uint32_t>(size) < std::bit_cast<std::uint32_t>(0x1p-14f);
  const std::uint32_t half = std::bit_cast<std::uint32_t>(0.5f);
  const float shifted = size + std::bit_cast<float>(value_if(subnormal, half));
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(shifted);
  const std::uint32_t rebiased = bits - ((127 - 15) << 23);
  const std::uint32_t rounded = (rebiased + 0xfff + ((rebiased >> 13) & 1)) >> 13;
  const std::uint32_t normal = rounded < 0x7c00 ? rounded : 0x7c00;
  return static_cast<Float16>((subnormal ? bits - half : normal) | sign);
}

}  // namespace edt
