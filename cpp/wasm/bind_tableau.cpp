#include "ocdl/tableau/library.hpp"
#include "wasm/exported.hpp"

using namespace ocdl;

OCDL_EXPORTED(named_tableau) const Tableau* named_tableau(const char* name) {
  return new Tableau(named(name));
}

/// Stages x stages coefficients in rows, then the weights; a trap where they are no method.
OCDL_EXPORTED(make_tableau) const Tableau* make_tableau(Index stages, const double* A, const double* b) {
  return new Tableau(MatrixView<const double>(A, stages, stages), VectorView<const double>(b, stages));
}

OCDL_EXPORTED(free_tableau) void free_tableau(const Tableau* tableau) { delete tableau; }

OCDL_EXPORTED(tableau_names) const char* tableau_names() {
  static const std::string all = [] {
    std::string joined;
    for (const std::string& name : names()) joined += (joined.empty() ? "" : " ") + name;
    return joined;
  }();
  return all.c_str();
}

OCDL_EXPORTED(tableau_stages) Index tableau_stages(const Tableau* tableau) { return tableau->stages(); }
OCDL_EXPORTED(tableau_order) int tableau_order(const Tableau* tableau) { return tableau->order(); }
OCDL_EXPORTED(tableau_is_explicit) int tableau_is_explicit(const Tableau* tableau) {
  return tableau->is_explicit();
}
OCDL_EXPORTED(tableau_A) const double* tableau_A(const Tableau* tableau) { return tableau->A().data(); }
OCDL_EXPORTED(tableau_b) const double* tableau_b(const Tableau* tableau) { return tableau->b().data(); }
OCDL_EXPORTED(tableau_c) const double* tableau_c(const Tableau* tableau) { return tableau->c().data(); }
/// The coefficients of the symplectic partner; a trap where a weight is 0.
OCDL_EXPORTED(adjoint_tableau) const Tableau* adjoint_tableau(const Tableau* tableau) {
  return new Tableau(tableau->adjoint());
}
