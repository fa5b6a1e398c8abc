# OpenSearch: bulk API, data streams, GET /, _cat. The "integ-test" zip is the
# server with its stock modules and no security plugin.
# 3.x needs JDK 21+; 2.19.6 runs on JDK 11/17, and is used if there is no newer JDK.
KIND=opensearch VER=${OPENSEARCH_VERSION:-}
[ -n "$VER" ] || { (java_home 21) >/dev/null 2>&1 && VER=3.6.0 || VER=2.19.6; }
COORD=org.opensearch.distribution.integ-test-zip:opensearch
case $VER in 3.*) MINJAVA=21 ;; *) MINJAVA=11 ;; esac
EXTRA_YML=${OPENSEARCH_EXTRA_YML:-}
. "$HERE/d/_search.inc"
svc_env() { echo "PENSTOCK_TEST_OPENSEARCH_URL=$URL"; }
svc_check() {
  get "$URL/" | expect '"distribution" : "opensearch"'
  get "$URL/_cat/health" | expect test
  json /_index_template/t -X PUT -d '{"index_patterns":["logs-*"],"data_stream":{}}' | expect acknowledged
  # data stream created by the first create; gzip body; an index op must be rejected
  printf '%s\n' '{"create":{"_index":"logs-app-default"}}' '{"@timestamp":"2026-01-01T00:00:00Z","message":"hello"}' \
    '{"index":{"_index":"logs-app-default"}}' '{"@timestamp":"2026-01-01T00:00:01Z","message":"refused"}' |
    gzip | bulk -H 'Content-Encoding: gzip' | expect '"errors":true.*"status":201.*only write ops with an op_type of create'
  get "$URL/_data_stream" | expect logs-app-default
  get "$URL/logs-app-default/_search?q=message:hello" | expect '"value":1'
}
