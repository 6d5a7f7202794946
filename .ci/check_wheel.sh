#!/usr/bin/env bash
# Build the wheel and install it into an empty environment. In another folder, step the sample
# model, write its dump and a picture of the window: the wheel must contain icons and samples.
set -euo pipefail
python=$(realpath -s "$1")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

"$python" -m build --wheel --outdir "$place/dist" . >"$place/build.log" 2>&1 ||
  { cat "$place/build.log"; exit 1; }
python3 -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$place"/dist/*.whl
cd "$place"
QT_QPA_PLATFORM=offscreen "$place/venv/bin/kuiper-studio" --sample --demo "$place/out"
QT_QPA_PLATFORM=offscreen "$place/venv/bin/python" -m kuiper_studio --sample --demo "$place/out2"
test -s "$place/out/window.png"
test -s "$place/out/dump/manifest.json"
echo "the wheel works: $(cd dist && ls)"
