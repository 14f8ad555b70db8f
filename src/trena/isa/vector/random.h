// Random numbers: rng, rand2, dropout, and the state of their generators (hw.md §2.3, §3.7).
//
// The device's bits are not published. Trena's generator is XORWOW (number/xorwow.h): the same
// kernel gives the same numbers on every host, but not those of the device.
#pragma once

#include "trena/isa/rules.h"

namespace trena {

// 32 random bits per element, of which an integer dst keeps the low ones.
struct Rng {
  Tensor dst;
  EngineRequest engine;
};
std::unique_ptr<Instruction> make_instruction(Rng args);

// Uniform float32 numbers from `low` up to `high`, rounded to dst's type. v4.
struct Rand2 {
  Tensor dst;
  Operand low;
  Operand high;
};
std::unique_ptr<Instruction> make_instruction(Rand2 args);

// Zero with probability `probability`, else data bit by bit: an element stays where its random
// number of [0, 1) is not below it (which side of the comparison the device takes is not stated).
struct Dropout {
  Tensor dst;
  Tensor data;
  Operand probability;
};
std::unique_ptr<Instruction> make_instruction(Dropout args);

// One 32-bit seed for all lanes of the vector engine.
struct SetRngSeed {
  Tensor seed;
};
std::unique_ptr<Instruction> make_instruction(SetRngSeed args);

// The states of the lanes that `state` covers: [P, 6] uint32 on GpSimd, [P, 24] on the vector
// engine, each generator as x, y, z, w, v, d (Trena's order). v3+.
struct RandSetState {
  Tensor state;
  EngineRequest engine;
};
std::unique_ptr<Instruction> make_instruction(RandSetState args);

struct RandGetState {
  Tensor state;
  EngineRequest engine;
};
std::unique_ptr<Instruction> make_instruction(RandGetState args);

}  // namespace trena
