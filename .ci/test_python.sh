#!/usr/bin/env bash
# Run the tests on any Python in its own environment, such as .venv-3.12-newest, with the newest or
# the lowest libraries that pyproject.toml allows:
#   bash .ci/test_python.sh PYTHON newest|lowest [PYTEST-ARGUMENT...]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
libraries=$2
shift 2
environment=.venv-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-$libraries
bin=$environment/bin

install() {
  "$python" -m venv "$environment"
  "$bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

if ! [ "$environment/.installed" -nt pyproject.toml ]; then
  case $libraries in
    newest) install -e ".[test]" ;;
    lowest) # uv finds them; pip has no option for that
      install "uv>=0.9" || { echo "SKIPPED: uv, which finds them, cannot be installed"; exit 0; }
      "$bin/python" -m uv pip install --quiet --python "$bin/python" \
        --resolution lowest-direct -e ".[test]"
      ;;
    *)
      echo "LIBRARIES is newest or lowest, not $libraries" >&2
      exit 2
      ;;
  esac
  touch "$environment/.installed"
fi
QT_QPA_PLATFORM=offscreen "$bin/python" -m pytest "$@"
