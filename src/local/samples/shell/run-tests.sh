#!/bin/sh
# Runs the tests of count-words.sh and prints TAP.
cd "$(dirname "$0")" || exit 2
failed=0
number=0
check() {
  number=$((number + 1))
  actual=$(printf "$2" | sh count-words.sh)
  if [ "$actual" = "$3" ]; then
    echo "ok $number - $1"
  else
    failed=$((failed + 1))
    echo "not ok $number - $1"
    echo "  # expected $3, got $actual"
  fi
}
echo "1..3"
check "counts one word" "switch" 1
check "counts words between spaces" "a yard of switches" 4
check "@@FAILING@@" "two\twords" 2
[ "$failed" -eq 0 ]
