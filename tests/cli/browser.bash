# Sets `browser` to Chromium's command. Exits with 77 (skipped) where there is none.
# shellcheck disable=SC2034 # those that source this use it
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  { echo "no Chromium"; exit 77; }
