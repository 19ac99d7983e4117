#!/bin/sh
# Gives the command a virtual display, and becomes the command: its signals and its exit code are the container's.
set -eu

if [ -z "${DISPLAY:-}" ] && [ -n "${XVFB_SCREEN:-}" ]; then
    ready=$(mktemp --dry-run)
    mkfifo "$ready"
    # -displayfd takes the first display that is free, also where other containers share the network (AWS Batch), and
    # says its number once it can be used. In a subshell that ends, so that not the command but process 1 reaps it.
    (Xvfb -displayfd 3 -screen 0 "$XVFB_SCREEN" -ac -nolisten tcp +extension GLX +render -noreset \
        3>"$ready" >/tmp/xvfb.log 2>&1 </dev/null &)
    if read -r display <"$ready"; then
        export DISPLAY=":$display"
    else
        echo "entrypoint: Xvfb did not start, so there is no display: $(tail -n 1 /tmp/xvfb.log)" >&2
    fi
    rm -f "$ready"
fi

exec "$@"
