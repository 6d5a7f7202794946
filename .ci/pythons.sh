#!/usr/bin/env bash
# Run the tests on every CPython from 3.11 to 3.14 of this machine, found on PATH or under pyenv:
# - on $PYTHON all of them, as `make test` does, in .venv, so with PyTorch if it is installed there;
# - on 3.11, or else 3.12, all of them with the lowest libraries; newer Pythons have no builds of
#   these;
# - on the others, with the newest libraries, a part: all tests on all Pythons would exceed the time
#   of CI. On even releases sessions in the window and the command line, on odd ones the engine; on
#   all of them the engine's process and the samples.
# Two runs go on at a time, the two longest first, because one leaves half of two processors unused.
# The output of the first is seen at once, that of the others follows when all have ended.
# Ends with a table that also names the missing Pythons; exit status 1 if a run failed.
set -uo pipefail
cd "$(dirname "$0")/.."
results=$(mktemp -d) # of each run its output and its line of the table
gui=tests/kuiper_studio
on_all="tests/samples $gui/engine_service"
on_even="$on_all $gui/cli $gui/session $gui/test_*.py"
on_odd="$on_all tests/engine"
trap 'end_runs; rm -rf "$results"' EXIT

is_right='import ensurepip, platform, sys, sysconfig, venv
right = platform.python_implementation() == "CPython" and sys.version_info.releaselevel == "final"
release = "%d.%d" % sys.version_info[:2]
sys.exit(not right or release != sys.argv[1] or bool(sysconfig.get_config_var("Py_GIL_DISABLED")))'
whose='from importlib.metadata import distributions
import platform
have = {each.name: each.version for each in distributions()}
print(platform.python_version(), have.get("numpy", "-"), have.get("torch", "-"))'

# Print the command of the Python of a release. The one that pyenv has on PATH may refuse to run.
find_python() {
  local root candidate
  root=${PYENV_ROOT:-$(pyenv root 2>/dev/null)}
  for candidate in "python$1" $(printf '%s\n' "${root:-$HOME/.pyenv}/versions/$1."*/bin/python |
    sort -rV); do
    if "$candidate" -c "$is_right" "$1" 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

# note PLACE PYTHON LIBRARIES NUMPY PYTORCH RESULT: write a line of the table.
note() { printf '%-7s %-9s %-7s %-12s %s\n' "${@:2}" >"$results/$1.line"; }

# run PLACE ENVIRONMENT LIBRARIES MAKE-ARGUMENT...: run the tests, and write their line.
run() {
  local place=$1 environment=$2 libraries=$3 python numpy torch verdict="FAILED: "
  shift 3
  note "$place" "?" "$libraries" - - "FAILED: it did not end"
  touch "$results/$place.failed" # until it has passed
  echo
  echo "== make $*"
  if make --no-print-directory "$@" 2>&1 | tee "$results/$place.output"; then
    verdict=""
    rm "$results/$place.failed"
  fi
  read -r python numpy torch < <("$environment/bin/python" -c "$whose" 2>/dev/null)
  note "$place" "${python:-?}" "$libraries" "${numpy:-?}" "${torch:-?}" \
    "$verdict$(grep -E '^SKIPPED:|(passed|failed|error).* in [0-9.]+s' "$results/$place.output" |
      tail -n 1 | tr -d =)"
}

# queue PLACE ...: run beside at most one other run; the output is kept.
queue() {
  while [ "$(jobs -pr | wc -l)" -ge 2 ]; do wait -n; done
  run "$@" >"$results/$1.log" 2>&1 </dev/null &
}

# End the runs that go on, with all their processes.
end_runs() {
  local group
  for group in $(jobs -pr); do kill -- "-$group" 2>/dev/null; done
}

main=$("${PYTHON:-python3}" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
declare -A pythons=(["$main"]=${PYTHON:-python3})
for release in 3.11 3.12 3.13 3.14; do
  if [ "$release" = "$main" ]; then
    continue
  elif found=$(find_python "$release"); then
    pythons[$release]=$found
  else
    note "$release" "$release" - - - \
      "SKIPPED: this machine has no such Python, or one without venv"
  fi
done

set -m # each run is a process group of its own, which can be ended as a whole
run main .venv newest test </dev/null &
old=3.11
[ -n "${pythons[$old]:-}" ] || old=3.12
if [ -n "${pythons[$old]:-}" ]; then
  queue lowest ".venv-$old-lowest" lowest test-python PYTHON="${pythons[$old]}" LIBRARIES=lowest
else
  note lowest - lowest - - "SKIPPED: neither Python 3.11 nor 3.12 is here"
fi
for release in 3.11 3.12 3.13 3.14; do
  if [ "$release" = "$main" ] || [ -z "${pythons[$release]:-}" ]; then continue; fi
  part=$on_odd
  if [ $((${release#3.} % 2)) = 0 ]; then part=$on_even; fi
  queue "$release" ".venv-$release-newest" newest test-python PYTHON="${pythons[$release]}" \
    ARGUMENTS="$part"
done
wait
cat "$results"/*.log 2>/dev/null

note heading Python libraries NumPy PyTorch tests
echo
cat "$results"/{heading,main,lowest,3.*}.line 2>/dev/null
! compgen -G "$results/*.failed" >/dev/null
