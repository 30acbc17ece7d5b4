#!/bin/sh
# Run the bundle's tests, then its benches, on a machine with a GPU, from the repository root, and print a short table.
#   sh bench/gpu.sh [tests|bench|sanitize] [NAME...]     results in $OUT (build/gpu when unset)
set -u
what=${1:-tests}
[ $# -gt 0 ] && shift
bundle=build/bundle
out=${OUT:-build/gpu}
mkdir -p "$out"

run_one() # kind, program, command before it
{
    name=$(basename "$2")
    begin=$(date +%s)
    timeout "${LIMIT:-120}" $3 "$2" >"$out/$name.log" 2>&1
    code=$?
    passed=$(grep -c '\[       OK' "$out/$name.log")
    skipped=$(grep -c '^skipped' "$out/$name.log")
    printf '%-28s exit %-4s %3s ok %3s skipped %4s s\n' "$name" "$code" "$passed" "$skipped" "$(($(date +%s) - begin))"
    [ "$code" = 0 ] || grep -E 'ERROR|LINE|FAILED|Error|error' "$out/$name.log" | head -n 8
    return 0
}

case $what in
tests | sanitize)
    before=""
    [ "$what" = sanitize ] && before="compute-sanitizer --tool ${TOOL:-memcheck} --report-api-errors no --error-exitcode 9"
    [ $# -gt 0 ] || set -- $(cd $bundle/tests && ls -1 | grep '^test_')
    for name in "$@"; do run_one test "$bundle/tests/$name" "$before"; done
    ;;
bench)
    [ $# -gt 0 ] || set -- $(cd $bundle/bench && ls -1 | grep '^bench_')
    for name in "$@"; do
        echo "--- $name"
        timeout "${LIMIT:-240}" "$bundle/bench/$name" 2>&1 | tee "$out/$name.log"
    done
    ;;
esac
