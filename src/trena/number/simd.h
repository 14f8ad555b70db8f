// Which SIMD code runs, for `trena doctor` and for the tests that every target gives the same
// bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trena {

// Highway targets that are compiled in and that this CPU can run, best first: "AVX3", "AVX2",
// "SSE4", …
std::vector<std::string> simd_targets();
// The one in use.
std::string simd_target();

// Uses that target from now on; "" goes back to the best. Not to be called while kernels run.
// Throws `simd-target` when the name is not among simd_targets().
void force_simd_target(std::string_view name);

// The vdpbf16ps path of the tile product: there on this CPU, and not switched off.
bool has_bfloat16_dot();
void enable_bfloat16_dot(bool on);

}  // namespace trena
