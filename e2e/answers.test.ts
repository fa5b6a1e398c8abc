// Common questions of new users: README leads to each answer within two links, and the commands of the answer work as printed.

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { root } from './command.ts'
import { anchorOf, Reader } from './documents.ts'

interface Answer {
  /** The question in the table of README. */
  readonly question: string
  /** One or two links, beginning at README, in the form of the pages. */
  readonly links: readonly string[]
  /** The heading of the page or section that the last link points to. */
  readonly heading: string
  /** Parts of the answer that the reader copies or follows. */
  readonly says: readonly string[]
  /** Commands on the page that need no cluster, with their output. */
  readonly tries?: Readonly<Record<string, RegExp>>
}

const printed = (name: string, ...more: readonly string[]) =>
  [`npx penstock run examples/${name} --input examples/${name}/input.log --print`, ...more].join(' ')

const answers: readonly Answer[] = [
  {
    question: 'drop debug logs',
    links: ['examples/drop-debug-logs/README.md', 'pipeline.yaml'],
    heading: '',
    says: ['type: filter', 'condition: \'!includes(["debug", "trace"], .level)\''],
  },
  {
    question: 'drop debug logs',
    links: ['examples/drop-debug-logs/README.md'],
    heading: 'Drop debug logs',
    says: ['pipeline.yaml'],
    tries: { [printed('drop-debug-logs')]: /(?=[\s\S]*filtered 2, delivered 3)[\s\S]*INFO[\s\S]*WARN/ },
  },
  {
    question: 'mask card numbers and tokens',
    links: ['examples/mask-secrets/README.md'],
    heading: 'Mask card numbers and tokens',
    says: ['`filters`', 'redactor: "sha2"'],
    tries: { [printed('mask-secrets')]: /"card":"\[REDACTED\]"[\s\S]*Authorization: \[REDACTED\]/ },
  },
  {
    question: 'mask card numbers and tokens',
    links: ['examples/mask-secrets/README.md', 'pipeline.yaml'],
    heading: '',
    says: ['redact(string!(.message), filters: [', 'Card numbers', 'bearer', 'drop_on_error: true'],
  },
  {
    question: 'route by team to two tenants of Loki',
    links: ['examples/route-by-team/README.md', 'sink.yaml'],
    heading: '',
    says: ['kind: ClusterSink', 'type: log_aggregator', 'tenant_id'],
  },
  {
    question: 'route by team to two tenants of Loki',
    links: ['examples/route-by-team/README.md'],
    heading: 'Route by team to two tenants',
    says: ['`team`'],
    tries: {
      'npx penstock run examples/route-by-team --print \\\n    --input shop/web=examples/route-by-team/web.log --input shop/payments=examples/route-by-team/payments.log':
        /(?=[\s\S]*tenant=team-money)(?=[\s\S]*tenant=team-storefront)/,
    },
  },
  {
    question: 'parse nginx logs',
    links: ['examples/parse-nginx/README.md'],
    heading: 'Parse nginx logs',
    says: ['`combined`', 'ingress_upstreaminfo'],
    tries: { [printed('parse-nginx')]: /status=200 user=alice[\s\S]*severity=error/ },
  },
  {
    question: 'join Java stack traces',
    links: ['examples/java-stack-traces/README.md'],
    heading: 'Java stack traces',
    says: ['multiline: { preset: java }'],
    tries: { [printed('java-stack-traces')]: /Payment failed for order 17\\njava\.lang.*Caused by: / },
  },
  {
    question: 'find out why logs are missing',
    links: ['operator/guide/troubleshooting.md'],
    heading: 'Troubleshooting',
    says: ['kubectl penstock why -n shop web-0', '`NoMatchingAgent`', '`NodesFailed`', '`RolledBack`'],
    tries: { 'penstock explain E103': /E103/ },
  },
  {
    question: 'limit one noisy pod',
    links: ['examples/limit-noisy-pod/README.md'],
    heading: 'Limit one noisy pod',
    says: ['limits each container separately', 'rate_limited_lines_total'],
    tries: { [printed('limit-noisy-pod')]: /GET \/cart 200/ },
  },
  {
    question: 'limit one noisy pod',
    links: ['examples/limit-noisy-pod/README.md', 'pipeline.yaml'],
    heading: '',
    says: ['limits:', 'perContainer:', 'linesPerSecond'],
  },
  {
    question: 'rotate a Secret',
    links: ['examples/secret-rotation/README.md'],
    heading: 'Secrets rotation',
    says: ['within about 90 seconds', 'kubectl create secret generic search-writer'],
    tries: { [printed('secret-rotation')]: /GET \/cart 200/ },
  },
  {
    question: 'upgrade and downgrade',
    links: ['operator/guide/operations.md#upgrades'],
    heading: 'Upgrades',
    says: ['helm upgrade penstock', 'applies the CRDs first', 'To go back', 'one minor version after the other'],
  },
  {
    question: 'collect only some namespaces',
    links: ['examples/only-some-namespaces/README.md'],
    heading: 'Only some namespaces',
    says: ['matchLabels: { logs: "yes" }'],
    tries: {
      'npx penstock run examples/only-some-namespaces --print --input shop/web=examples/only-some-namespaces/shop.log \\\n    --input kube-system/web=examples/only-some-namespaces/system.log':
        /GET \/cart 200\n\S+ web-\S+ GET \/products\/17 404\n[\s\S]*delivered 2 /,
    },
  },
  {
    question: 'collect Apache metrics',
    links: ['examples/apache-metrics/README.md'],
    heading: 'Metrics of Apache',
    says: ['ClusterPipeline', 'aggregator', '`mod_status`'],
    tries: {
      'npx penstock run examples/apache-metrics --input examples/apache-metrics/server-status.txt --print':
        /apache_up\{.*\} = 1/,
    },
  },
  {
    question: 'keep logs while a destination is down',
    links: ['operator/guide/durability.md'],
    heading: 'Durability',
    says: ['the position waits; later lines stay in their files', 'type: disk', 'max_size'],
  },
  {
    question: 'keep logs while a destination is down',
    links: ['examples/disk-buffer/README.md'],
    heading: 'Disk buffer',
    says: ['five files of 10 MiB'],
    tries: { [printed('disk-buffer')]: /AUDIT alice refunded order 17/ },
  },
  {
    question: 'find out how much CPU and memory agents need',
    links: ['operator/guide/operations.md#sizing'],
    heading: 'Sizing',
    says: [
      '| Load of a node | CPU | Memory of the agent |',
      '10,000 lines/s',
      '| node agents, aggregators | 100m, 128Mi | 512Mi |',
    ],
  },
  {
    question: 'deploy with Argo CD or Flux',
    links: ['operator/guide/gitops.md'],
    heading: 'GitOps',
    says: ['wait: true', 'resource.customizations.health.penstock.dev_Pipeline'],
  },
  {
    question: 'deploy with Argo CD or Flux',
    links: ['examples/argo-cd-and-flux/README.md'],
    heading: 'Argo CD and Flux',
    says: ['argo-cd.yaml', 'flux.yaml'],
    tries: {
      'npx penstock lint examples/argo-cd-and-flux/logs': /no problems/,
      'npx penstock test examples/argo-cd-and-flux/logs': /passed/,
    },
  },
  {
    question: 'move from another agent',
    links: ['operator/guide/vector.md'],
    heading: 'Moving from Vector',
    says: [
      'penstock convert -f vector.yaml',
      '| `kubernetes_logs` |',
      '| `throttle` |',
      'penstock lint -f pipeline.yaml',
    ],
    tries: { 'penstock convert -f vector.yaml > pipeline.yaml': /Reading it as a configuration of Vector/ },
  },
  {
    question: 'move from another agent',
    links: ['operator/guide/fluent-bit.md'],
    heading: 'Moving from Fluent Bit',
    says: [
      'penstock convert -f fluent-bit.conf',
      '### Options of `tail`',
      '## Outputs',
      'penstock lint -f pipeline.yaml',
    ],
    tries: { 'penstock convert -f fluent-bit.conf > pipeline.yaml': /Reading it as a configuration of Fluent Bit/ },
  },
]

/** Files of a reader who migrates from another agent. */
const theirs: Readonly<Record<string, string>> = {
  'vector.yaml': `sources: { pods: { type: kubernetes_logs } }
sinks: { out: { type: console, inputs: [pods], encoding: { codec: json } } }
`,
  'fluent-bit.conf': `[INPUT]
    Name tail
    Path /var/log/containers/*.log
[OUTPUT]
    Name stdout
    Match *
`,
}

/** The links in Markdown text, as written. */
const linksOf = (text: string) => [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, href = '']) => href)

/** The target of a link: a page, or a section up to the next heading of the same level. */
function follow(from: string, href: string): { readonly path: string; readonly text: string } {
  const [target = '', anchor] = href.split('#')
  const path = normalize(join(dirname(from), target))
  const page = existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : ''
  if (anchor === undefined) return { path, text: page }
  const sections = page.split(/^(?=## )/m)
  return { path, text: sections.find((each) => anchorOf(/^## (.+)$/m.exec(each)?.[1] ?? '') === anchor) ?? '' }
}

const [, table = ''] = /^## Answers\n(.*?)^## /ms.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? []
const rows = new Map(
  [...table.matchAll(/^\| ([^|]+) \| (.*\]\(.*\).*) \|$/gm)].map(([, asked = '', to = '']) => [asked, to]),
)

test('README and this test have the same questions', () => {
  expect([...rows.keys()].sort()).toEqual([...new Set(answers.map(({ question }) => question))].sort())
  expect(rows.size).toBeGreaterThanOrEqual(15)
})

let reader: Reader
beforeAll(async () => {
  reader = await Reader.arrive()
  for (const [path, text] of Object.entries(theirs)) await reader.write(path, text)
})
afterAll(() => reader[Symbol.asyncDispose]())

describe.each(answers)('$question: $links', ({ question, links, heading, says, tries = {} }) => {
  let page = { path: 'README.md', text: rows.get(question) ?? '' }

  test('is at most two links from README, and contains the instructions', () => {
    expect(links.length).toBeLessThanOrEqual(2)
    for (const link of links) {
      expect(linksOf(page.text), page.path).toContain(link)
      page = follow(page.path, link)
    }
    if (heading !== '') expect(page.text).toMatch(new RegExp(`^#+ ${RegExp.escape(heading)}$`, 'm'))
    for (const text of says) expect(page.text).toContain(text)
  })

  test.for(Object.entries(tries))('%s', async ([command, shows]) => {
    expect(page.text).toContain(command)
    const { code, printed } = await reader.paste(command)
    expect(code, printed).toBe(0)
    expect(printed).toMatch(shows)
  })
})
