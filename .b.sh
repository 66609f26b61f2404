cargo bench --bench bulk --features half -- "$@" 2>/dev/null
