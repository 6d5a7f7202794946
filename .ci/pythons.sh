#!/usr/bin/env bash
# Run the tests on every CPython from 3.11 to 3.14 of this machine, found on PATH or under pyenv:
# - on $PYTHON all of them, as `make test` does, in .venv, so with PyTorch if it is installed there;
# - on 3.11, or else 3.12, all of them with the lowest libraries; newer Pythons have no builds of
#   these;
# - on the others, with the newest libraries, a part: all tests on all Pythons would exceed the time
#   of CI. On even releases sessions in the window and the command line, on odd ones the engine; on
#   all of them the engine's process and the samples.
# The run on $PYTHON takes as long as all others together. They go on beside it, one after another,
# because one run leaves half of two processors unused. Their output follows when each has ended.
# Ends with a table that also names the missing Pythons; exit status 1 if a run failed.
set -uo pipefail
cd "$(dirname "$0")/.."
results=$(mktemp -d) # of each run its output and its line of the table
gui=tests/kuiper_studio
on_all="tests/samples $gui/engine_service"
on_even="$on_all $gui/cli $gui/session $gui/test_*.py"
on_odd="$on_all tests/engine"
others=""
trap 'rm -rf "$results"; [ -z "$others" ] || kill -- "-$others" 2>/dev/null' EXIT

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
  local place=$1 environment=$2 libraries=$3 python numpy torch verdict=""
  shift 3
  echo
  echo "== make $*"
  if ! make --no-print-directory "$@" 2>&1 | tee "$results/$place.output"; then
    verdict="FAILED: "
    touch "$results/failed"
  fi
  read -r python numpy torch < <("$environment/bin/python" -c "$whose" 2>/dev/null)
  note "$place" "${python:-?}" "$libraries" "${numpy:-?}" "${torch:-?}" \
    "$verdict$(grep -E '^SKIPPED:|(passed|failed|error).* in [0-9.]+s' "$results/$place.output" |
      tail -n 1 | tr -d =)"
}

# Run the tests on the other Pythons, one after another.
run_others() {
  local release python part lowest=""
  for release in 3.11 3.12 3.13 3.14; do
    if [ "$release" = "$main" ]; then
      python=${PYTHON:-python3}
    elif python=$(find_python "$release"); then
      part=$on_odd
      if [ $((${release#3.} % 2)) = 0 ]; then part=$on_even; fi
      run "$release-newest" ".venv-$release-newest" newest test-python PYTHON="$python" \
        ARGUMENTS="$part"
    else
      note "$release" "$release" - - - \
        "SKIPPED: this machine has no such Python, or one without venv"
      continue
    fi
    case $release$lowest in
      3.11 | 3.12)
        lowest=done
        run "$release-lowest" ".venv-$release-lowest" lowest test-python PYTHON="$python" \
          LIBRARIES=lowest
        ;;
    esac
  done
  [ -n "$lowest" ] || note lowest - lowest - - "SKIPPED: neither Python 3.11 nor 3.12 is here"
}

main=$("${PYTHON:-python3}" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
set -m # a process group of their own, which can be ended as a whole
run_others >"$results/others" 2>&1 &
others=$!
set +m
run main .venv newest test
wait "$others" || touch "$results/failed" # it ended early
others=""
cat "$results/others"

note heading Python libraries NumPy PyTorch tests
echo
cat "$results"/{heading,main,3.*,lowest}.line 2>/dev/null
[ ! -e "$results/failed" ]
