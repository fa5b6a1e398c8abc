// Runs the commands of the documents that need neither a cluster nor a release, exactly as printed; other tests run the rest. A comment in the
// page explains why a block is not run, and an additional block of this kind requires a change of the number below.

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { root } from './command.ts'
import { onArchive } from './documents/on-archive.ts'
import { onCluster } from './documents/on-cluster.ts'
import { onRelease } from './documents/on-release.ts'
import { isOf, Reader, type ShellBlock, type Step, shellBlocks, textOf } from './documents.ts'
import { missingForHelm } from './helm.ts'

const blocks = await shellBlocks()
const guide = (page: string) => `operator/guide/${page}.md`

const pipeline = (selector: string, sink: string) => `apiVersion: penstock.dev/v1alpha1
kind: Pipeline
metadata: { name: checkout, namespace: shop }
spec:
  sources:
    - { name: app, type: orchestrator_logs, selector: { pods: { matchLabels: { ${selector} } } } }
  transforms:
    - { name: parse, type: remap, config: { source: '.team = "payments"' } }
  sinks:
    - ${sink}
`
const nowhere = '{ name: out, type: blackhole, config: {} }'

const fluentBit = `[INPUT]
    Name tail
    Path /var/log/app.log
    Tag app
[PARSER]
    Name js
    Format json
[FILTER]
    Name parser
    Match app
    Key_Name log
    Parser js
[OUTPUT]
    Name stdout
    Match app
    Format json_lines
`

interface LocalStep extends Step {
  /** Replacements that the reader makes in the block. */
  readonly words?: (reader: Reader) => Promise<Readonly<Record<string, string>>>
}

/** Blocks that need no cluster. */
const local: readonly LocalStep[] = [
  { page: guide('getting-started'), block: 'npm ci && npm start' },
  { page: 'README.md', block: 'npm ci && npm start' },
  { page: 'CONTRIBUTING.md', block: 'npm start' },
  {
    page: 'README.md',
    block: 'penstock-agent --config agent.yaml',
    files: {
      'agent.yaml': `sources:
  in: { type: stdin }
sinks:
  out: { type: console, inputs: [in], encoding: { codec: json } }
`,
    },
  },
  {
    page: guide('alloy'),
    block: 'penstock convert',
    files: {
      'config.alloy': `loki.source.kubernetes "pods" {
  targets    = discovery.kubernetes.pods.targets
  forward_to = [loki.write.default.receiver]
}
discovery.kubernetes "pods" { role = "pod" }
loki.write "default" { endpoint { url = "http://loki.monitoring.svc:3100/loki/api/v1/push" } }
`,
    },
  },
  {
    page: guide('promtail'),
    block: 'penstock convert',
    files: {
      'promtail.yaml': `clients: [{ url: "http://loki.monitoring.svc:3100/loki/api/v1/push" }]
scrape_configs:
  - job_name: pods
    kubernetes_sd_configs: [{ role: pod }]
    pipeline_stages: [{ cri: {} }]
`,
    },
  },
  {
    page: guide('otel'),
    block: 'penstock convert',
    files: {
      'collector.yaml': `receivers:
  filelog: { include: [/var/log/pods/*/*/*.log], operators: [{ type: container }] }
exporters:
  debug: { verbosity: detailed }
service:
  pipelines:
    logs: { receivers: [filelog], exporters: [debug] }
`,
    },
  },
  {
    page: guide('fluentd'),
    block: 'penstock convert',
    files: {
      'fluent.conf': `<source>
  @type tail
  path /var/log/containers/*.log
  tag kubernetes.*
  <parse>
    @type cri
  </parse>
</source>
<match **>
  @type stdout
</match>
`,
    },
  },
  {
    page: guide('filebeat'),
    block: 'penstock convert',
    files: {
      'filebeat.yml': `filebeat.inputs:
  - { type: container, paths: [/var/log/containers/*.log] }
output.console: { pretty: false }
`,
    },
  },
  {
    page: guide('cli'),
    block: '--against old-output.ndjson',
    files: {
      'fluent-bit.conf': fluentBit,
      'lines.log': '{"level":"info","n":1}\n',
      'old-output.ndjson': '{"date":1.5,"level":"info","n":1}\n',
    },
  },
  {
    page: guide('cli'),
    block: '--binary /usr/bin/vector',
    files: {
      'vector.yaml': `sources: { app: { type: file, include: [/var/log/app.log] } }
transforms: { parse: { type: remap, inputs: [app], source: '. = parse_json!(.message)' } }
sinks: { out: { type: console, inputs: [parse], encoding: { codec: json } } }
`,
      'lines.log': '{"level":"info","n":1}\n',
    },
    // The agent reads the configuration of Vector, too.
    words: async (who) => {
      await who.program('vector', 'exec penstock-agent "$@"')
      return { '/usr/bin/vector': 'node_modules/.bin/vector' }
    },
  },
  {
    page: guide('cli'),
    block: 'helm template shop ./shop',
    files: {
      'shop/Chart.yaml': 'apiVersion: v2\nname: shop\nversion: 1.0.0\n',
      'shop/templates/pipeline.yaml': pipeline('app: web', nowhere),
      'deploy/pipeline.yaml': `${pipeline('app: web', nowhere)}  tests:
    - name: adds the team
      insertAt: parse
      input: { raw: ready }
      expect: [{ at: parse, assert: '.team == "payments"' }]
`,
    },
  },
]

/** A reason may name files of the repository, such as a test that covers the commands in another way. All of them must exist. */
const existingFiles = (reason: string): boolean =>
  [...reason.matchAll(/\S+\.(?:ts|md)\b/g)].every(([path]) => existsSync(join(root, path)))

let reader: Reader

test('all blocks of documents are run, or the page explains why not', () => {
  const steps = [...local, ...onCluster, ...onArchive, ...onRelease]
  const stepsOf = (block: ShellBlock) => steps.filter((step) => isOf(block, step))
  const of = (part: readonly ShellBlock[]) => part.map(({ page, text }) => `${page}: ${text.split('\n')[0]}`)
  expect(of(blocks.filter((block) => block.notRun === undefined && stepsOf(block).length === 0))).toEqual([])
  expect(of(blocks.filter((block) => block.notRun !== undefined && stepsOf(block).length > 0))).toEqual([])
  expect(of(blocks.filter(({ notRun }) => notRun !== undefined && !existingFiles(notRun)))).toEqual([])
  for (const step of steps)
    expect(
      blocks.filter((block) => isOf(block, step)),
      `${step.page}: ${step.block}`,
    ).toHaveLength(1)
  // An additional block needs a reason and a change of this number.
  expect(of(blocks.filter((block) => block.notRun !== undefined))).toHaveLength(10)
})

/** Commands of this repository in blocks that are not run, each with the file that declares its flags. */
const declaringFiles: Readonly<Record<string, string>> = {
  '.ci/release': '.ci/release',
  'npm run bench': 'e2e/bench/bench.ts',
  'npm run scale': 'e2e/operator/scale.ts',
}

function helpOf(file: string): string {
  const [program, ...words] = file.endsWith('.ts') ? [process.execPath, '--conditions=source'] : ['bash']
  return execFileSync(program as string, [...words, join(root, file), '--help'], { encoding: 'utf8' })
}

/** The commands of a block, without comments, with continued lines as one. */
const commandsOf = ({ text }: ShellBlock) =>
  text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .flatMap((line) => line.replace(/ # .*$/, '').split(' && '))

test('blocks that are not run name existing flags, variables, scripts and files', () => {
  const helps = Object.fromEntries(Object.entries(declaringFiles).map(([called, file]) => [called, helpOf(file)]))
  const scripts = Object.keys(JSON.parse(textOf('package.json')).scripts)
  const pages = new Set<string>()
  for (const block of blocks.filter(({ notRun }) => notRun !== undefined)) {
    for (const command of commandsOf(block)) {
      const where = `${block.page}: ${command}`
      for (const [, script] of command.matchAll(/\bnpm run ([\w:-]+)/g)) expect(scripts, where).toContain(script)
      const files = command.split(/\s+/).filter((word) => /^(?:e2e|agent|operator|\.ci)\//.test(word))
      for (const file of files) expect(existsSync(join(root, file)), where).toBe(true)
      for (const [variable] of command.matchAll(/\bPENSTOCK_\w+(?==)/g))
        expect(textOf(files[0] ?? ''), where).toContain(`'${variable}'`)
      const called = Object.keys(helps).find((each) => command.trim().startsWith(each))
      const flags = called === undefined ? [] : (command.match(/ --[a-z][\w-]*/g) ?? [])
      for (const flag of flags) expect(helps[called ?? ''], where).toMatch(new RegExp(`${flag.trim()}\\b`))
      if (files.length + flags.length > 0) pages.add(block.page)
    }
  }
  expect([...pages].sort()).toEqual([
    '.ci/RELEASING.md',
    'CONTRIBUTING.md',
    'e2e/bench/README.md',
    'operator/FIGURES.md',
  ])
})

/** Runs the block as if a reader had pasted it. */
async function pasted({ page, block, files = {}, words }: LocalStep): Promise<void> {
  for (const [path, text] of Object.entries(files)) await reader.write(path, text)
  const shown = blocks.find((one) => isOf(one, { page, block }))?.text ?? ''
  const written = Object.entries((await words?.(reader)) ?? {})
  const text = written.reduce((all, [word, instead]) => all.replaceAll(word, instead), shown)
  const { code, printed } = await reader.paste(text)
  expect(code, `${text}\n${printed}`).toBe(0)
  expect(printed).not.toMatch(/\n {4}at /)
}

describe('without a cluster', () => {
  beforeAll(async () => {
    reader = await Reader.arrive()
  })
  afterAll(() => reader[Symbol.asyncDispose]())

  for (const step of local)
    test.skipIf(step.block.startsWith('helm ') && missingForHelm() !== undefined)(`${step.page}: ${step.block}`, () =>
      pasted(step),
    )
})
