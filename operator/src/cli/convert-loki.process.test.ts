// Converted configurations of Promtail and Alloy, from the lines of a pod to the bytes that a Loki server receives.

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'penstock-convert-loki-'))
afterAll(() => rmSync(folder, { recursive: true }))
const main = join(import.meta.dirname, '../main.ts')
const penstock = (...words: readonly string[]) =>
  promisify(execFile)(process.execPath, ['--conditions=source', main, ...words])

interface Stream {
  readonly stream: Readonly<Record<string, string>>
  readonly values: readonly (readonly [string, string, Readonly<Record<string, string>>?])[]
}
interface Push {
  readonly tenant: string | undefined
  readonly streams: readonly Stream[]
}

/** A server that takes pushes. */
async function loki() {
  const pushes: Push[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (request.url === '/loki/api/v1/push') {
        const { streams } = JSON.parse(Buffer.concat(chunks).toString()) as { streams: Stream[] }
        pushes.push({ tenant: request.headers['x-scope-orgid'] as string | undefined, streams })
      }
      response.statusCode = request.url === '/loki/api/v1/push' ? 204 : 200
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, pushes, [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())) }
}

const promtail = (url: string) => `clients:
  - url: ${url}/loki/api/v1/push
    external_labels: { cluster: prod }
scrape_configs:
  - job_name: pods
    pipeline_stages:
      - cri: {}
      - json: { expressions: { level: , text: msg, tenant: , user: user.id } }
      - labels: { level: }
      - structured_metadata: { user: }
      - tenant: { source: tenant }
      - drop: { source: level, value: debug }
      - output: { source: text }
      - labeldrop: [filename]
    kubernetes_sd_configs: [{ role: pod }]
    relabel_configs:
      - { source_labels: [__meta_kubernetes_namespace], target_label: namespace }
      - { source_labels: [__meta_kubernetes_pod_label_app], regex: "w(.*)", replacement: "W$1", target_label: app }
      - source_labels: [__meta_kubernetes_pod_uid, __meta_kubernetes_pod_container_name]
        separator: /
        replacement: /var/log/pods/*$1/*.log
        target_label: __path__
`

const alloy = (url: string) => `discovery.kubernetes "pods" { role = "pod" }
discovery.relabel "pods" {
  targets = discovery.kubernetes.pods.targets
  rule {
    source_labels = ["__meta_kubernetes_namespace"]
    target_label  = "namespace"
  }
  rule {
    source_labels = ["__meta_kubernetes_pod_label_app"]
    regex         = "w(.*)"
    replacement   = "W$1"
    target_label  = "app"
  }
  rule {
    source_labels = ["__meta_kubernetes_pod_uid", "__meta_kubernetes_pod_container_name"]
    separator     = "/"
    replacement   = "/var/log/pods/*$1/*.log"
    target_label  = "__path__"
  }
}
loki.source.file "pods" {
  targets    = discovery.relabel.pods.output
  forward_to = [loki.process.pods.receiver]
}
loki.process "pods" {
  forward_to = [loki.write.default.receiver]
  stage.cri {}
  stage.json {
    expressions = { level = "", text = "msg", tenant = "", user = "user.id" }
  }
  stage.labels { values = { level = "" } }
  stage.structured_metadata { values = { user = "" } }
  stage.tenant { source = "tenant" }
  stage.drop {
    source = "level"
    value  = "debug"
  }
  stage.output { source = "text" }
  stage.label_drop { values = ["filename"] }
}
loki.write "default" {
  endpoint { url = "${url}/loki/api/v1/push" }
  external_labels = { cluster = "prod" }
}
`

const lines = [
  '2026-01-02T03:04:05.6Z {"level":"warn","msg":"first","user":{"id":7}}',
  '2026-01-02T03:04:05.7Z {"level":"debug","msg":"second"}',
  '2026-01-02T03:04:05.8Z plain',
  '2026-01-02T03:04:05.9Z {"level":"warn","msg":"last","tenant":"ops"}',
]
const at = (tenths: number) => `${BigInt(Date.UTC(2026, 0, 2, 3, 4, 5) + tenths * 100)}000000`

test.each([
  ['promtail.yaml', promtail],
  ['config.alloy', alloy],
])('the Pipeline pushes the same lines as %s', async (name, config) => {
  await using destination = await loki()
  const file = join(folder, name)
  writeFileSync(file, config(destination.url))
  const { stdout, stderr } = await penstock('convert', '-f', file)
  expect(stderr).not.toContain('warning')
  const [pipeline, log] = [join(folder, `${name}.pipeline.yaml`), join(folder, 'pod.log')]
  writeFileSync(pipeline, stdout)
  writeFileSync(log, `${lines.join('\n')}\n`)

  await penstock('run', '-f', pipeline, '--input', log)

  const own = { namespace: expect.any(String), app: 'Web', cluster: 'prod', stream: 'stdout' }
  const found = destination.pushes.flatMap(({ tenant, streams }) =>
    streams.flatMap(({ stream, values }) =>
      values.map(([time, line, metadata]) => ({ tenant, stream, time, line, metadata: metadata ?? {} })),
    ),
  )
  expect(found.toSorted((one, other) => one.time.localeCompare(other.time))).toEqual([
    { tenant: undefined, stream: { ...own, level: 'warn' }, time: at(6), line: 'first', metadata: { user: '7' } },
    { tenant: undefined, stream: own, time: at(8), line: 'plain', metadata: {} },
    { tenant: 'ops', stream: { ...own, level: 'warn' }, time: at(9), line: 'last', metadata: {} },
  ])
})
