#include <nanobind/nanobind.h>

#include <cstdint>

#include "fixed_point.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Address = std::uintptr_t;

template <typename Float, typename Int>
double accumulate(Address gradient, double factor, Address total, double limit, std::size_t n,
                  unsigned threads) {
  const nb::gil_scoped_release release;
  return edt::accumulate(reinterpret_cast<const Float*>(gradient), factor, reinterpret_cast<Int*>(total),
                         limit, n, threads);
}

template <typename Int, typename Float>
void to_float(Address total, double scale, Address out, std::size_t n, unsigned threads) {
  const nb::gil_scoped_release release;
  edt::to_float(reinterpret_cast<const Int*>(total), scale, reinterpret_cast<Float*>(out), n, threads);
}

// Looking up a function by dtypes costs less than passing tensors through the type checks of overloads.
class Kernels {
 public:
  template <typename Float>
  void add(const char* name) {
    add<Float, std::int32_t>(name, "int32");
    add<Float, std::int64_t>(name, "int64");
  }

  nb::dict accumulators, converters;

 private:
  template <typename Float, typename Int>
  void add(const char* floats, const char* ints) {
    accumulators[nb::make_tuple(floats, ints)] =
        nb::cpp_function(&accumulate<Float, Int>, nb::name("accumulate"), "gradient"_a, "factor"_a, "total"_a,
                         "limit"_a, "n"_a, "threads"_a);
    converters[nb::make_tuple(ints, floats)] = nb::cpp_function(
        &to_float<Int, Float>, nb::name("to_float"), "total"_a, "scale"_a, "out"_a, "n"_a, "threads"_a);
  }
};

}  // namespace

NB_MODULE(_native, module) {
  module.doc() =
      "Compiled kernels by the names of their dtypes. They take addresses and check nothing: "
      "edt_hvd/reduction/fixed_point/arithmetic.py does, and is their specification.";
  Kernels kernels;
  kernels.add<edt::Float16>("float16");
  kernels.add<edt::BFloat16>("bfloat16");
  kernels.add<float>("float32");
  kernels.add<double>("float64");
  module.attr("accumulate") = kernels.accumulators;
  module.attr("to_float") = kernels.converters;
}
