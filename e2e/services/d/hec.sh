# An HTTP event collector: the receiver of the OpenTelemetry Collector, in a program that exposes the decoded events.
# 0.96.0 is the newest version whose parts are all available as modules.
URL=http://127.0.0.1:$PORT
READ=http://127.0.0.1:$((PORT + 1))
BIN=$DIST/hec
svc_install() {
  [ -x "$BIN" ] && return
  need go golang
  (cd "$HERE/go-hec" && GOFLAGS=-mod=readonly go build -trimpath -ldflags '-s -w' -o "$BIN" .)
}
svc_start() { spawn "$BIN" "127.0.0.1:$PORT" "127.0.0.1:$((PORT + 1))"; }
svc_ready() { get "$URL/services/collector/health" | expect healthy && get "$READ"; }
svc_env() { echo "PENSTOCK_TEST_HEC_URL=$URL PENSTOCK_TEST_HEC_DECODED_URL=$READ"; }
svc_check() {
  echo '{"event":"check","time":1704164645.678,"host":"h","fields":{"n":1}}' | gzip |
    get "$URL/services/collector/event" -H 'Authorization: Splunk t' -H 'Content-Encoding: gzip' --data-binary @- | expect Success
  get "$READ" | expect check
}
