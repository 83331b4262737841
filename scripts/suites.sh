# How ./check and scripts/check-long build presets, run their tests and sum them up; to be sourced.
# SPDX-License-Identifier: Apache-2.0

jobs=2
passed=0
failed=0
skipped=0

# build PRESET [CMAKE_OPTION...]: configures and builds; a failure counts as one, and its suite is left out.
build() {
  local preset=$1 target=all log
  shift
  [[ $preset == release ]] || target=tested  # the programs of the other presets' labels
  log=$(mktemp)
  echo "== $preset: build"
  if cmake --preset "$preset" "$@" >"$log" 2>&1; then
    rm -f "$log"
    cmake --build --preset "$preset" -j"$jobs" --target "$target" && return 0
  else
    cat "$log"
    rm -f "$log"
  fi
  echo "== $preset: the build failed"
  failed=$((failed + 1))
  return 1
}

# attribute NAME FILE: a number from the head of ctest's JUnit file.
attribute() {
  sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -1
}

# suite PRESET BUILD_DIR [CTEST_OPTION...]: runs ctest and adds its counts.
suite() {
  local preset=$1 dir=$2 report
  shift 2
  report="$PWD/$dir/Testing/junit.xml"
  mkdir -p "$(dirname "$report")"
  rm -f "$report"
  echo "== $preset: tests"
  ctest --preset "$preset" -j"$jobs" --no-tests=error --output-junit "$report" "$@" || true
  if [[ ! -s "$report" ]]; then
    echo "== $preset: ctest did not come to its end"
    failed=$((failed + 1))
    return
  fi
  local tests bad left
  tests=$(attribute tests "$report")
  bad=$(attribute failures "$report")
  left=$(($(attribute skipped "$report") + $(attribute disabled "$report")))
  passed=$((passed + tests - bad - left))
  failed=$((failed + bad))
  skipped=$((skipped + left))
  grep -hoE '^[0-9]+ cases passed, [0-9]+ failed' "$dir/Testing/Temporary/LastTest.log" |
    sed 's/^/stock programs: /' || true
}

# The closing line and the exit status.
conclude() {
  ((skipped == 0)) || echo "$skipped skipped"
  echo "$passed passed, $failed failed"
  ((failed == 0 && passed > 0))
}
