// Configurations with mistakes: missing, duplicate and swapped lines, and misplaced characters. All give an output that passes lint, and gaps
// with line numbers. The mistakes are the same in every run.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { mutated } from '../../testing/mistakes.ts'
import { convertAlloy } from '../alloy/convert.ts'
import { convertPromtail } from '../promtail/convert.ts'

const promtail = `clients:
  - url: http://u:p@loki:3100/loki/api/v1/push
    tenant_id: shop
    external_labels: { cluster: prod, region: "$\{REGION}" }
positions: { filename: /p.yaml }
scrape_configs:
  - job_name: pods
    pipeline_stages:
      - cri: {}
      - multiline: { firstline: '^\\d{4}' }
      - match:
          selector: '{app="web"} |= "level" !~ "health(z|check)"'
          stages:
            - json: { expressions: { level: , ts: time } }
            - timestamp: { source: ts, format: RFC3339 }
      - replace: { expression: 'password=(\\S+)', replace: '***' }
      - template: { source: level, template: '{{ if eq .Value "warn" }}W{{ else }}{{ ToUpper .Value }}{{ end }}' }
      - labels: { level: }
    kubernetes_sd_configs:
      - role: pod
        selectors: [{ role: pod, label: "app=web", field: "status.phase=Running" }]
    relabel_configs:
      - { source_labels: [__meta_kubernetes_namespace], action: drop, regex: kube-system|monitoring }
      - { source_labels: [__meta_kubernetes_pod_label_app], regex: "(.+)", replacement: "x-$1", target_label: app }
      - { action: labelmap, regex: __meta_kubernetes_pod_label_(.+) }
  - job_name: files
    static_configs:
      - labels: { job: varlogs, __path__: "/var/log/{a,b}.log" }
`
const alloy = `discovery.kubernetes "pods" {
  role = "pod"
  selectors {
    role  = "pod"
    field = "spec.nodeName=" + coalesce(sys.env("HOSTNAME"), constants.hostname)
  }
}
discovery.relabel "pods" {
  targets = discovery.kubernetes.pods.targets
  rule {
    source_labels = ["__meta_kubernetes_namespace"]
    target_label  = "namespace"
  }
}
loki.source.kubernetes "pods" {
  targets    = discovery.relabel.pods.output
  forward_to = [loki.process.pods.receiver]
}
local.file_match "sys" {
  path_targets = [{"__path__" = "/var/log/[a-z]*", "job" = string.format("%s-%d", "sys", 1)}]
}
loki.source.file "sys" {
  targets    = local.file_match.sys.targets
  forward_to = [loki.relabel.more.receiver]
}
loki.relabel "more" {
  forward_to = [loki.process.pods.receiver]
  rule {
    target_label = "env"
    replacement  = "prod"
  }
}
loki.process "pods" {
  forward_to = [loki.write.default.receiver]
  stage.json {
    expressions = { level = "", msg = "message" }
  }
  stage.match {
    selector = \`{app="web"} |~ "x\\d+"\`
    stage.static_labels { values = { web = "yes" } }
  }
}
loki.write "default" {
  endpoint {
    url = "http://loki:3100/loki/api/v1/push"
    basic_auth {
      username = sys.env("USER")
    }
  }
}
`

const seeds = Array.from({ length: 120 }, (_, index) => index + 1)
test.each([
  ['f.yaml', promtail, convertPromtail],
  ['f.alloy', alloy, convertAlloy],
] as const)('mistakes in %s give an output that passes lint', async (file, text, convert) => {
  expect(new Set(seeds.map((seed) => mutated(text, seed))).size).toBeGreaterThan(100)
  for (const seed of seeds) {
    const { document, gaps } = converted(convert, [{ file, text: mutated(text, seed) }])
    for (const { line, reason, nearest } of gaps) {
      expect([line > 0, reason === '', nearest === ''], `seed ${seed}`).toEqual([true, false, false])
    }
    expect(await lint(String(document)), `seed ${seed}`).toEqual([])
  }
})
