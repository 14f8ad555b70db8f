#!/bin/sh
# Installs the libraries Trena builds against, where they are missing (Debian, Ubuntu; root or sudo).
# On other systems CMake looks for them and fetches what it does not find.
set -eu
packages="g++ make git python3-venv python3-dev libhwy-dev libtbb-dev libtbbmalloc2 libfmt-dev libtomlplusplus-dev libprotozero-dev libgtest-dev"
command -v dpkg-query >/dev/null 2>&1 || exit 0
missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo"
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
