// Included before every Highway header of this folder: which targets are compiled.
//
// SSSE3 and AVX3_DL add build time and no speed here. The scalable vectors (SVE, RVV) cannot be
// held in arrays; NEON runs on those Arm machines. What remains on x86-64: the baseline, SSE4, AVX2
// and AVX3 (AVX-512).
#pragma once

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
