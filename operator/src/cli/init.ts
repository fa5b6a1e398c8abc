// `penstock init [FILE]`: writes a first Pipeline with comments, which passes `lint` and `test` and runs locally.

import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileReason, PenstockError } from '@penstock/agent/errors'
import type { Flags } from '@penstock/agent/program'
import { namePattern, nameWords } from '../api/pipeline.ts'
import { schemaText } from '../api/reference.ts'
import { helpOf, parseFlags } from './arguments.ts'
import { npx } from './npx.ts'

const schemaFile = 'penstock.schema.json'

export const options = {
  schema: {
    type: 'boolean',
    help: 'Also write penstock.schema.json, which editors use to complete and check the file.',
  },
  name: { type: 'string', default: 'first', value: 'NAME', help: 'Name of the Pipeline (first).' },
  namespace: {
    type: 'string',
    short: 'n',
    default: 'default',
    value: 'NS',
    help: 'Namespace of the Pipeline (default).',
  },
} as const satisfies Flags

export const usage = `Usage: penstock init [FILE] [FLAGS]

Writes a first Pipeline with comments to FILE (pipeline.yaml). It never overwrites a file.

${helpOf(options)}
`

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const [file = 'pipeline.yaml', ...more] = words
  if (more.length > 0) throw new PenstockError('PEN_USAGE', 'Name one file or none: penstock init [FILE].')
  if (!new RegExp(namePattern).test(values.name))
    throw new PenstockError('PEN_USAGE', `\`--name\` must be ${nameWords}; found \`${values.name}\`.`)
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(values.namespace)) {
    const expected = 'at most 63 lower-case letters, digits and `-`, with a letter or digit first and last'
    throw new PenstockError('PEN_USAGE', `\`--namespace\` must be ${expected}; found \`${values.namespace}\`.`)
  }
  const header = values.schema ? `# yaml-language-server: $schema=${schemaFile}\n` : ''
  create(file, `${header}${firstPipeline(values.name, values.namespace)}`)
  // The schema belongs to this version of the command, so it replaces an older one.
  if (values.schema) create(join(dirname(file), schemaFile), schemaText(), 'w')
  const next = [
    [`${npx}penstock run ${file}`, 'runs it here, with the logs of sample pods'],
    [`${npx}penstock test ${file}`, 'runs the tests in it'],
    [`${npx}penstock lint ${file}`, 'checks it as the operator does'],
    [`kubectl apply -f ${file}`, 'runs it in a cluster with Penstock'],
  ]
  const width = Math.max(...next.map(([command = '']) => command.length))
  const lines = next.map(([command = '', purpose]) => `  ${command.padEnd(width)}  ${purpose}`)
  console.log([`${file} is written. Next:`, ...lines].join('\n'))
  return 0
}

/** @param flag `wx`: an existing file is not overwritten */
function create(file: string, text: string, flag: 'w' | 'wx' = 'wx'): void {
  try {
    writeFileSync(file, text, { flag })
  } catch (error) {
    const isFolderMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const reason = isFolderMissing ? `there is no folder "${dirname(file)}"` : fileReason(error)
    throw new PenstockError('PEN_CANNOT_CREATE', `"${file}" cannot be created: ${reason}.`, { cause: error })
  }
}

function firstPipeline(name: string, namespace: string): string {
  return `# A Pipeline reads the logs of the pods of its namespace, changes their events, and delivers them.
# \`penstock explain Pipeline.spec\` lists all fields, \`penstock explain log_aggregator\` the options of a sink.
apiVersion: penstock.dev/v1alpha1
kind: Pipeline
metadata:
  name: ${name}
  namespace: ${namespace}
spec:
  sources:
    - name: pods
      type: orchestrator_logs
      # Only pods with these labels:
      # selector: { pods: { matchLabels: { app: web } } }
      # Lines of a stack trace as one event:
      # multiline: { preset: java }
  transforms:
    - name: parse
      type: remap
      config:
        source: |
          # Fields of lines in JSON become fields of the event; other lines keep their message.
          parsed, err = parse_json(.message)
          if err == null {
            . = merge(., object(parsed) ?? {})
            if exists(.msg) { .message = del(.msg) }
          }
          .level = downcase(string(.level) ?? "info")
    - name: keep
      type: filter
      config: { condition: '.level != "debug"' }
  sinks:
    - name: store
      # Without a connection to it, \`penstock run\` prints the events.
      type: log_aggregator
      config:
        endpoint: http://loki.monitoring.svc:3100
        labels: { pod: "{{ orchestrator.pod_name }}", level: "{{ level }}" }
        encoding: { codec: json }
  # Run by \`penstock test\`, and by the operator before it accepts the Pipeline.
  tests:
    - name: debug lines are left out
      insertAt: parse
      input: { log: { message: '{"level":"DEBUG"}' } }
      expect: [{ at: keep, count: 0 }]
`
}
