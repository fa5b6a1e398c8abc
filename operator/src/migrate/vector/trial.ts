// Runs Vector on recorded lines: sources of files and queues read the sample, and sources of pods read the events of the new source.

import { textLiteral } from '@penstock/agent/config'
import { PenstockError } from '@penstock/agent/errors'
import { isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import { nameLike } from '../draft.ts'
import { type Sample, sinkNamed, type Trial, type TrialRequest } from '../trial.ts'
import { podFields } from './adjusted.ts'
import { LogSchema } from './log-schema.ts'
import { readRoots } from './read.ts'

/** Settings that transforms use. All other settings are for sources, sinks or the process. */
const kept = ['enrichment_tables', 'schema', 'timezone', 'log_schema']

/** Sources whose events `penstock run --input` leaves unchanged. */
const ofItself = /^(?:internal_|host_metrics$)/

export async function vectorTrial({ files, included, sample, sink, folder }: TrialRequest): Promise<Trial> {
  const roots = files.flatMap((file) => readRoots(file, []))
  const tables = (kind: string) =>
    roots.flatMap(({ config, file }) =>
      Object.entries(isTable(config[kind]) ? config[kind] : {}).map(([id, value]) => ({
        id,
        file,
        options: isTable(value) ? value : {},
      })),
    )
  const chosen = sinkNamed(tables('sinks'), ({ id }) => id, sink)
  if (chosen === undefined) {
    throw new PenstockError(
      'PEN_USAGE',
      `The configuration has no sink that became \`${sink}\`. Pass the events of the old agent with \`--against OUTPUT\`.`,
    )
  }
  const transforms: Record<string, Table> = {}
  for (const { id, file, options } of tables('transforms')) {
    const { file: program, ...rest } = options
    const source = typeof program === 'string' ? included(program, file)[0]?.text : undefined
    transforms[id] = source === undefined ? options : { ...rest, source }
  }
  const schema = new LogSchema(roots.find(({ config }) => config['log_schema'] !== undefined)?.config['log_schema'])
  const sources: Record<string, Table> = {}
  const leftOut: string[] = []
  for (const { id, options } of tables('sources')) {
    const type = String(options['type'])
    if (ofItself.test(type)) leftOut.push(`source ${id} of type ${type}`)
    const stand = await standIn(id, options, sample, schema)
    if (stand.program === undefined) sources[id] = stand.source
    else {
      const reader = `penstock_sample_${id}`
      sources[reader] = stand.source
      transforms[id] = { type: 'remap', inputs: [reader], source: stand.program }
    }
  }
  const config = {
    data_dir: folder,
    ...Object.fromEntries(roots.flatMap((root) => Object.entries(root.config).filter(([name]) => kept.includes(name)))),
    sources,
    transforms,
    sinks: {
      [chosen.id]: { type: 'console', inputs: chosen.options['inputs'], encoding: { codec: 'json' } },
    },
  }
  const text = JSON.stringify(config, undefined, 2)
  return {
    files: [{ file: 'vector.json', text }],
    words: ['--quiet', '--config', `${folder}/vector.json`],
    leftOut,
  }
}

/** Sources that receive messages, which the Pipeline reads from its standard input. */
const queues: ReadonlySet<string> = new Set(['stdin', 'amqp', 'aws_sqs', 'cloud_queue'])

interface StandIn {
  readonly source: Table
  /** The transform after the source, which takes over its name. */
  readonly program?: string
}

async function standIn(id: string, options: Table, sample: Sample, schema: LogSchema): Promise<StandIn> {
  const { type } = options
  const reading = (file: string) => ({ include: [file], read_from: 'beginning', max_line_bytes: 16_777_216 })
  if (type === 'kubernetes_logs') {
    const time = 'if exists(.timestamp) { .timestamp = parse_timestamp!(.timestamp, "%+") }'
    return {
      source: { type: 'file', ...reading(await sample.podEvents(nameLike(id))) },
      program: [
        `. = object!(parse_json!(string!(${schema.message})))`,
        time,
        podFields(options),
        `.source_type = ${textLiteral(type)}`,
        ...schema.ofText().map(({ text }) => text),
      ].join('\n'),
    }
  }
  if (ofItself.test(String(type))) return { source: { type: 'file', ...reading('/var/empty/nothing') } }
  if (type === 'file') return { source: { ...options, ...reading(sample.lines), exclude: [] } }
  // As in the Pipeline, a component without a counterpart is a file.
  if (!queues.has(String(type))) return { source: { type: 'file', ...reading(sample.lines) } }
  // The binary also gets the lines on its standard input. Each line is one message.
  const decoding = options['decoding'] === undefined ? {} : { decoding: options['decoding'] }
  const source = { type: 'stdin', ...decoding }
  const name = schema.sourceType
  return type === 'stdin'
    ? { source }
    : { source, program: `if ${name} == "stdin" { ${name} = ${textLiteral(String(type))} }` }
}
