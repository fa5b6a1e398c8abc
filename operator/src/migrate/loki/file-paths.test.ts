// Paths of files: rules that read or set `__path__`, targets in files of targets, and files of nodes.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertAlloy } from '../alloy/convert.ts'
import type { NamedText } from '../draft.ts'
import { convertPromtail } from '../promtail/convert.ts'

const clients = 'clients: [{ url: "http://loki:3100/loki/api/v1/push" }]\n'
const promtail = (job: string, more: readonly NamedText[] = []) =>
  converted(convertPromtail, [
    { file: 'promtail.yaml', text: `${clients}scrape_configs:\n- job_name: j\n${job.replace(/^(?=.)/gm, '  ')}\n` },
    ...more,
  ])
const write = 'loki.write "w" {\n  endpoint {\n    url = "http://loki:3100/loki/api/v1/push"\n  }\n}\n'
const alloy = (text: string, more: readonly NamedText[] = []) =>
  converted(convertAlloy, [{ file: 'config.alloy', text: text + write }, ...more])

type Made = ReturnType<typeof promtail>
const missing = ({ gaps }: Made) => gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)
const includes = ({ resource }: Made) =>
  resource.spec.sources.map(({ config }: { config: { include?: string[] } }) => config.include)
/** The transform that reads a source. */
const readerOf = ({ resource }: Made, index: number): string => {
  const source = resource.spec.sources[index].name
  return resource.spec.transforms.find(({ inputs }: { inputs: string[] }) => inputs.includes(source)).name
}

async function expectLabels(made: Made, file: string, labels: object | undefined, index = 0): Promise<void> {
  expect(missing(made)).toEqual([])
  const expected = labels === undefined ? undefined : { labels: { ...labels, filename: file } }
  withTest(made.document, made.resource, { message: 'x', file }, expected, readerOf(made, index))
  expect(await lint(String(made.document))).toEqual([])
}

test('Promtail: rules read the pattern of the files', async () => {
  const made = promtail(`static_configs: [{ labels: { __path__: "/srv/shop/*.log" } }]
relabel_configs:
- { source_labels: [__path__], regex: '/srv/([^/]+)/.*', target_label: app }
- { source_labels: [__path__], target_label: pattern }`)
  await expectLabels(made, '/srv/shop/a.log', { app: 'shop', pattern: '/srv/shop/*.log' })
})

test('Promtail: rules set the path', async () => {
  const made = promtail(`static_configs: [{ labels: { service: shop, log: error } }]
relabel_configs:
- { source_labels: [service, log], separator: /, replacement: '/srv/$1.log', target_label: __path__ }`)
  expect(includes(made)).toEqual([['/srv/shop/error.log']])
  await expectLabels(made, '/srv/shop/error.log', { service: 'shop', log: 'error' })
})

const relabelled = `local.file_match "f" {
  path_targets = [{__path__ = "/srv/*/a.log"}]
}
discovery.relabel "f" {
  targets = local.file_match.f.targets
  rule {
    source_labels = ["__path__"]
    regex         = "/srv/([^/]+)/a\\\\.log"
    target_label  = "app"
  }
}
loki.source.file "f" {
  targets    = discovery.relabel.f.output
  forward_to = [loki.write.w.receiver]
}
`
test('Alloy: behind a component that finds files, rules read the path of each file', async () => {
  await expectLabels(alloy(relabelled), '/srv/shop/a.log', { app: 'shop' })
  await expectLabels(alloy(relabelled), '/srv/blog/a.log', { app: 'blog' })
})

test('Alloy: before it, rules read the pattern', async () => {
  const text = `discovery.relabel "f" {
  targets = [{__path__ = "/srv/*/a.log"}]
  rule {
    source_labels = ["__path__"]
    target_label  = "pattern"
  }
}
local.file_match "f" {
  path_targets = discovery.relabel.f.output
}
loki.source.file "f" {
  targets    = local.file_match.f.targets
  forward_to = [loki.write.w.receiver]
}
`
  await expectLabels(alloy(text), '/srv/shop/a.log', { pattern: '/srv/*/a.log' })
})

const nodes = [
  {
    name: 'Promtail',
    made: () =>
      promtail(`kubernetes_sd_configs: [{ role: node }]
relabel_configs:
- { source_labels: [__meta_kubernetes_node_name], target_label: __host__ }
- { source_labels: [__meta_kubernetes_node_name], target_label: node }
- { target_label: __path__, replacement: /var/log/syslog }`),
  },
  {
    name: 'Alloy',
    made: () =>
      alloy(`discovery.kubernetes "n" {
  role = "node"
}
discovery.relabel "n" {
  targets = discovery.kubernetes.n.targets
  rule {
    source_labels = ["__meta_kubernetes_node_name"]
    regex         = sys.env("HOSTNAME")
    action        = "keep"
  }
  rule {
    source_labels = ["__meta_kubernetes_node_name"]
    target_label  = "node"
  }
  rule {
    target_label = "__path__"
    replacement  = "/var/log/syslog"
  }
}
loki.source.file "n" {
  targets    = discovery.relabel.n.output
  forward_to = [loki.write.w.receiver]
}
`),
  },
]
test.each(nodes)('$name: files of the own node, with its name', async ({ made }) => {
  process.env['AGENT_SELF_NODE_NAME'] = 'n1'
  expect(includes(made())).toEqual([['/var/log/syslog']])
  await expectLabels(made(), '/var/log/syslog', { node: 'n1', instance: 'n1' })
})

test('a label of the node that the source does not have is a gap', () => {
  const made = promtail(`kubernetes_sd_configs: [{ role: node }]
relabel_configs:
- { source_labels: [__meta_kubernetes_node_label_zone], target_label: zone }
- { target_label: __path__, replacement: /var/log/syslog }`)
  expect(missing(made)).toEqual(['relabel rule on __meta_kubernetes_node_label_zone'])
})

const targets = {
  file: 'etc/apps.json',
  text: '[{"targets": ["a"], "labels": {"__path__": "/srv/shop.log", "env": "prod"}}, {"labels": {"__path__": "/srv/blog.log", "env": "dev"}}]',
}
const listed = [
  {
    name: 'Promtail',
    convert: (more: readonly NamedText[]) =>
      promtail(
        `file_sd_configs: [{ files: ["/etc/promtail/apps*.json"], refresh_interval: 1m }]\nrelabel_configs: [{ source_labels: [env], regex: prod, action: keep }]`,
        more,
      ),
    absent: 'file_sd_configs: /etc/promtail/apps*.json',
  },
  {
    name: 'Alloy',
    convert: (more: readonly NamedText[]) =>
      alloy(
        `discovery.file "f" {
  files = ["/etc/promtail/apps*.json"]
}
discovery.relabel "f" {
  targets = discovery.file.f.targets
  rule {
    source_labels = ["env"]
    regex         = "prod"
    action        = "keep"
  }
}
loki.source.file "f" {
  targets    = discovery.relabel.f.output
  forward_to = [loki.write.w.receiver]
}
`,
        more,
      ),
    absent: 'discovery.file: /etc/promtail/apps*.json',
  },
]
test.each(listed)('$name: each group of a file of targets becomes a source', async ({ convert, absent }) => {
  expect(includes(convert([targets]))).toEqual([['/srv/shop.log'], ['/srv/blog.log']])
  await expectLabels(convert([targets]), '/srv/shop.log', { env: 'prod' })
  await expectLabels(convert([targets]), '/srv/blog.log', undefined, 1)
  expect(missing(convert([]))).toContain(absent)
})

test('rules set the pattern of files that are not read', () => {
  const rule = (replacement: string, label = 'job') =>
    `{ source_labels: [${label}], target_label: __path_exclude__, replacement: ${replacement} }`
  const files = (replacement: string, label?: string) =>
    promtail(`static_configs: [{ labels: { job: a, __path__: /srv/*.log } }]
relabel_configs:
- { source_labels: [__host__], modulus: 3, action: hashmod, target_label: shard }
- ${rule(replacement, label)}`)
  const made = files('/srv/$1.log')
  expect(missing(made)).toEqual([])
  expect(made.resource.spec.sources[0].config).toEqual({ include: ['/srv/*.log'], exclude: ['/srv/a.log'] })
  expect(missing(files('/srv/$1.log', 'shard'))).toEqual(['relabel rule on __path_exclude__'])
  const pods = (replacement: string) =>
    promtail(`pipeline_stages: [{ cri: {} }]
kubernetes_sd_configs: [{ role: pod }]
relabel_configs:
- { source_labels: [__meta_kubernetes_pod_uid], target_label: __path__, replacement: /var/log/pods/*$1/*/*.log }
- ${rule(replacement)}`)
  const all = pods('/var/log/pods/*/proxy/*.log')
  expect(missing(all)).toEqual([])
  expect(all.resource.spec.sources[0].config).toEqual({ exclude_paths_glob_patterns: ['/var/log/pods/*/proxy/*.log'] })
  expect(missing(pods('/var/log/pods/*/$1/*.log'))).toEqual(['relabel rule on __path_exclude__'])
})

test('a character set that the source does not know is a gap', async () => {
  const files = (name: string) =>
    promtail(`encoding: ${name}\nstatic_configs: [{ labels: { job: a, __path__: /srv/a.log } }]`)
  expect(missing(files('UTF-16LE'))).toEqual([])
  const made = files('UTF-32')
  expect(missing(made)).toEqual(['encoding'])
  expect(await lint(String(made.document))).toEqual([])
})
