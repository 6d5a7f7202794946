#!/usr/bin/env bash
# Check the system libraries that Qt needs on Linux, before Qt fails with a long message.
# Install the missing ones if no password is needed, else name them in one line.
set -u
[ "$(uname)" = Linux ] || exit 0

libraries="libEGL.so.1:libegl1 libGL.so.1:libgl1 libglib-2.0.so.0:libglib2.0-0
 libfontconfig.so.1:libfontconfig1 libxkbcommon.so.0:libxkbcommon0 libdbus-1.so.3:libdbus-1-3"
if [ -n "${DISPLAY:-}" ]; then
  libraries="$libraries libxcb-cursor.so.0:libxcb-cursor0 libxcb-icccm.so.4:libxcb-icccm4
 libxcb-keysyms.so.1:libxcb-keysyms1 libxcb-shape.so.0:libxcb-shape0
 libxkbcommon-x11.so.0:libxkbcommon-x11-0"
fi

missing() {
  for pair in $libraries; do
    python3 -c "import ctypes, sys; ctypes.CDLL(sys.argv[1])" "${pair%%:*}" 2>/dev/null ||
      printf '%s ' "${pair##*:}"
  done
}

packages=$(missing)
[ -z "$packages" ] && exit 0

if command -v apt-get >/dev/null; then
  run=""
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then run="sudo -n"; else run=none; fi
  fi
  if [ "$run" != none ]; then
    echo "Installing system libraries that Qt needs: $packages"
    # shellcheck disable=SC2086 # a list of words is meant
    { $run apt-get update -qq && DEBIAN_FRONTEND=noninteractive $run apt-get install -y -qq \
      --no-install-recommends $packages fonts-dejavu-core; } >/dev/null 2>&1
    packages=$(missing)
    [ -z "$packages" ] && exit 0
  fi
  echo "Qt needs system libraries that are missing. Install them with:" >&2
  echo "  sudo apt-get install $packages" >&2
else
  echo "Qt needs system libraries that are missing; Debian's packages of them are: $packages" >&2
fi
exit 1
