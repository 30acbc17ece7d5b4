#!/bin/sh
# Run the bundle's tests, then its benches, on a machine with a GPU, from the repository root, and print a short table.
#   sh bench/gpu.sh [tests|bench|sanitize] [NAME...]
# Logs go to $OUT (build/gpu); $JOBS tests run at a time (1), $LIMIT seconds each (120); $ARGS goes to the benches.
set -u
what=${1:-tests}
[ $# -gt 0 ] && shift
bundle=build/bundle
out=${OUT:-build/gpu}
mkdir -p "$out"

run_one() # program, command before it
{
    name=$(basename "$1")
    begin=$(date +%s)
    timeout "${LIMIT:-120}" $2 "$1" >"$out/$name.log" 2>&1
    code=$?
    passed=$(grep -c '\[       OK' "$out/$name.log")
    skipped=$(grep -c '^skipped' "$out/$name.log")
    line=$(printf '%-28s exit %-4s %3s ok %3s skipped %4s s' "$name" "$code" "$passed" "$skipped" "$(($(date +%s) - begin))")
    [ "$code" = 0 ] || line="$line
$(grep -E 'ERROR|LINE|FAILED|Error|error' "$out/$name.log" | head -n 8)"
    echo "$line"
}

run_all() # names; what keeps time or the whole device runs alone, after the rest
{
    printf '%s\n' "$@" | grep -v -E "$alone" | xargs -P "${JOBS:-1}" -I{} sh "$0" one $bundle/tests/{} "$before"
    printf '%s\n' "$@" | grep -E "$alone" | xargs -I{} sh "$0" one $bundle/tests/{} "$before"
}

before=""
alone='live|lost|bad_use|arm|pacing|partition|executor|scheduler|device|dispatch|pool|transfer'
case $what in
one) run_one "$@" ;;
tests | sanitize)
    [ "$what" = sanitize ] && before="compute-sanitizer --tool ${TOOL:-memcheck} --report-api-errors no --error-exitcode 9"
    [ $# -gt 0 ] || set -- $(cd $bundle/tests && ls -1 | grep '^test_')
    run_all "$@"
    ;;
bench)
    [ $# -gt 0 ] || set -- $(cd $bundle/bench && ls -1 | grep '^bench_')
    for name in "$@"; do
        echo "--- $name"
        timeout "${LIMIT:-240}" "$bundle/bench/$name" ${ARGS:-} 2>&1 | tee "$out/$name.log"
    done
    ;;
esac
