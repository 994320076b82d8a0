# The suite's verdict on the drivers, as a user asks for it, for test.sh to source.

# conform_part DRIVER WHAT FRACTION LOG ARGUMENT... A case gets minutes: a busy machine compiles it slowly.
conform_part() {
  local driver=$1 what=$2 fraction=$3 log=$4
  shift 4
  on_driver "$driver" check "conformance: $what" build/mulciber conform --timeout 600 --fraction "$fraction" "$@" \
    --output "$logs/conformance-$log.jsonl"
}

run_conformance() {
  if [[ $size == proof ]]; then
    conform_part lvp "a 48th of the short list on lavapipe" 0,48 lavapipe --mustpass
    conform_part swiftshader "a 192nd of the short list on SwiftShader" 1,192 swiftshader --mustpass
    leave_out "conformance: an eighth of the short list on lavapipe, a 16th on SwiftShader, a thirtieth of all cases under validation"
    return
  fi
  conform_part lvp "an eighth of the short list on lavapipe" 0,8 lavapipe --mustpass
  conform_part swiftshader "a 16th of the short list on SwiftShader" 1,16 swiftshader --mustpass
  conform_part lvp "a thirtieth of all cases under validation" 1,30 validation --validate --repeat 2
}
