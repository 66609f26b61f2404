# Sourced by the other scripts. `needs COMMAND HINT` ends the script if the command does not succeed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

needs() {
    local command=$1 hint=$2
    if ! bash -c "$command" >/dev/null 2>&1; then
        echo "missing: \`$command\` does not work here. $hint" >&2
        exit 1
    fi
}
