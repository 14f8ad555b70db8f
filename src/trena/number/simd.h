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

// The vdpbf16ps path of the tile product. It gives the bytes of the float32 path, and whether it is
// faster depends on the CPU (about twice the speed on some, half on others), so by default both are
// timed once, for some microseconds.
enum class Bfloat16Dot { kFastest, kAlways, kNever };
void set_bfloat16_dot(
    Bfloat16Dot choice);  // kAlways has no effect where the CPU lacks the instruction
bool cpu_has_bfloat16_dot();
// Whether bfloat16 products take it now.
bool uses_bfloat16_dot();

}  // namespace trena
