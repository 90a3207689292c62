#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "fixed_point.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename Scalar>
using Vector = nb::ndarray<Scalar, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

bool accumulate(const Vector<const float>& gradient, double scale, const Vector<std::int64_t>& total) {
  if (gradient.size() != total.size()) throw std::invalid_argument("gradient and total differ in length");
  const nb::gil_scoped_release release;
  return edt::accumulate(gradient.data(), scale, total.data(), gradient.size());
}

}  // namespace

NB_MODULE(_native, module) {
  module.doc() = "Compiled kernels; edt_hvd/fixed_point.py is their specification.";
  // Without noconvert() a converted copy of total would be written, and lost.
  module.def("accumulate", &accumulate, "gradient"_a.noconvert(), "scale"_a, "total"_a.noconvert());
}
