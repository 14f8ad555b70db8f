// toml++ compiled once: everybody else sees declarations only (TOML_HEADER_ONLY=0 in
// CMakeLists.txt).
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
