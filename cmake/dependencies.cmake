# Every library comes from the system first and from its own release archive second.
# Why each is here: docs/dependencies.md.
include(FetchContent)

function(trena_fetch name repository tag)
  message(STATUS "trena: ${name} not found on this system, fetching ${tag}")
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON)
  FetchContent_MakeAvailable(${name})
endfunction()

add_library(trena_dependencies INTERFACE)

find_package(fmt 8 QUIET)
if(NOT fmt_FOUND)
  trena_fetch(fmt https://github.com/fmtlib/fmt 10.2.1)
endif()

find_package(TBB QUIET)
if(NOT TBB_FOUND)
  set(TBB_TEST OFF CACHE BOOL "" FORCE)
  trena_fetch(TBB https://github.com/oneapi-src/oneTBB v2021.13.0)
endif()

# Debian's Highway ships a pkg-config file; newer releases also ship a CMake package.
find_package(hwy 1.0.3 QUIET)
if(NOT hwy_FOUND)
  find_path(HWY_INCLUDE_DIR hwy/highway.h)
  find_library(HWY_LIBRARY hwy)
  if(HWY_INCLUDE_DIR AND HWY_LIBRARY)
    add_library(hwy::hwy UNKNOWN IMPORTED)
    set_target_properties(hwy::hwy PROPERTIES IMPORTED_LOCATION "${HWY_LIBRARY}"
                          INTERFACE_INCLUDE_DIRECTORIES "${HWY_INCLUDE_DIR}"
                          INTERFACE_COMPILE_DEFINITIONS HWY_SHARED_DEFINE)
  else()
    set(HWY_ENABLE_TESTS OFF CACHE BOOL "" FORCE)
    set(HWY_ENABLE_EXAMPLES OFF CACHE BOOL "" FORCE)
    trena_fetch(highway https://github.com/google/highway 1.2.0)
    add_library(hwy::hwy ALIAS hwy)
  endif()
endif()

find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h)
if(NOT TOMLPLUSPLUS_INCLUDE_DIR)
  trena_fetch(tomlplusplus https://github.com/marzer/tomlplusplus v3.4.0)
  set(TOMLPLUSPLUS_INCLUDE_DIR ${tomlplusplus_SOURCE_DIR}/include)
endif()

find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp)
if(NOT PROTOZERO_INCLUDE_DIR)
  trena_fetch(protozero https://github.com/mapbox/protozero v1.7.1)
  set(PROTOZERO_INCLUDE_DIR ${protozero_SOURCE_DIR}/include)
endif()

target_include_directories(trena_dependencies SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE_DIR}
                           ${PROTOZERO_INCLUDE_DIR})
target_link_libraries(trena_dependencies INTERFACE fmt::fmt TBB::tbb TBB::tbbmalloc hwy::hwy)

function(trena_find_googletest)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    trena_fetch(googletest https://github.com/google/googletest v1.14.0)
    add_library(GTest::gtest_main ALIAS gtest_main)
  endif()
endfunction()
