// `penstock convert --prove SAMPLE`: runs the converted Pipeline on recorded lines, and compares its events with the old agent's events
// for the same lines, from its binary or a recording. The comparison goes to standard error, because the Pipeline is on standard output.

import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { orchestratorLogs } from '@penstock/agent/config'
import { fileReason, PenstockError } from '@penstock/agent/errors'
import { counted, type Flags } from '@penstock/agent/program'
import { isTable } from '@penstock/agent/schema'
import { stringify } from 'yaml'
import { type OldAgent, oldAgents } from '../migrate/agents.ts'
import { type Comparison, compareEvents, type Difference, type EventFields } from '../migrate/compare.ts'
import type { Included, NamedText } from '../migrate/draft.ts'
import { recordedEvents } from '../migrate/recorded.ts'
import type { Sample } from '../migrate/trial.ts'
import { durationMs } from './arguments.ts'
import { runOldAgent } from './old-agent.ts'
import { sampleContainers, writeGivenLog } from './sample-cluster/pods.ts'

const agentsWithTrial = oldAgents
  .filter(({ trial }) => trial !== undefined)
  .map(({ title }) => title)
  .join(', ')

export const proofOptions = {
  prove: {
    type: 'string',
    value: 'SAMPLE',
    help: 'File with recorded lines. The Pipeline runs on them, as with `penstock run --input`, and its events are compared with OUTPUT.',
  },
  against: {
    type: 'string',
    value: 'OUTPUT',
    help: "File with the old agent's events for these lines: one JSON object per line, or a list of objects.",
  },
  binary: {
    type: 'string',
    value: 'PATH',
    help: `Program of the old agent (${agentsWithTrial}), which produces the events in place of OUTPUT.`,
  },
  for: { type: 'string', value: 'TIME', help: 'Maximum duration of the comparison (1m).' },
  sink: { type: 'string', value: 'NAME', help: 'Sink whose events to compare, if there are several.' },
  ignore: {
    type: 'string',
    multiple: true,
    value: 'PATH',
    help: 'Field that may differ, such as .timestamp. May be repeated.',
  },
} as const satisfies Flags

interface ProofOptions {
  /** Lines, in a file. */
  readonly sample: string
  readonly old: Recorded | Binary
  readonly sink: string | undefined
  readonly ignored: readonly string[]
}

/** The old agent's events as text, and the file name for messages. */
interface Recorded {
  readonly file: string
  readonly text: string
}

/** The old agent itself. */
interface Binary {
  readonly binary: string
  readonly limitMs: number
}

/** The old configuration. */
interface Origin {
  readonly agent: OldAgent
  readonly files: readonly NamedText[]
  readonly included: Included
}

interface Entry {
  readonly name: string
  readonly type: string
}

/** A Pipeline. */
interface Converted {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly sources?: readonly Entry[]; readonly sinks?: readonly Entry[] }
}

interface ProofFlags {
  readonly prove?: string | undefined
  readonly against?: string | undefined
  readonly binary?: string | undefined
  readonly for?: string | undefined
  readonly sink?: string | undefined
  readonly ignore: readonly string[]
}

/** The request in the flags; undefined if there is none. */
export function proofIn(flags: ProofFlags): ProofOptions | undefined {
  const { prove: sample, against, binary, sink, ignore } = flags
  if (sample === undefined) {
    const alone = (['against', 'binary', 'for', 'sink', 'ignore'] as const).find(
      (name) => flags[name] !== undefined && flags[name].length > 0,
    )
    if (alone === undefined) return undefined
    throw new PenstockError('PEN_USAGE', `\`--${alone}\` needs \`--prove SAMPLE\`.`)
  }
  const shared = { sample, sink, ignored: ignore }
  if (binary !== undefined) {
    if (against !== undefined) {
      throw new PenstockError(
        'PEN_USAGE',
        'Use either `--against OUTPUT` or `--binary PATH`: both provide the old events.',
      )
    }
    return { ...shared, old: { binary, limitMs: durationMs(flags.for ?? '1m') } }
  }
  if (flags.for !== undefined) throw new PenstockError('PEN_USAGE', '`--for` needs `--binary PATH`.')
  if (against === undefined) {
    const message = "`--prove` needs the old agent's events for the same lines: `--against OUTPUT`, or `--binary PATH`."
    throw new PenstockError('PEN_USAGE', message)
  }
  try {
    return { ...shared, old: { file: against, text: readFileSync(against, 'utf8') } }
  } catch (error) {
    throw new PenstockError('PEN_USAGE', `"${against}" cannot be read: ${fileReason(error)}.`, { cause: error })
  }
}

/**
 * Prints the comparison; returns the exit code, which is 1 if there are differences.
 * @param pipelines the Pipelines that the configuration becomes, which may have copies of the same sink
 */
export async function prove(pipelines: readonly Converted[], options: ProofOptions, origin: Origin): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-prove-'))
  try {
    const sink = sinkOf(pipelines, options.sink)
    const writing = pipelines.filter(({ spec }) => spec.sinks?.some(({ name }) => name === sink) === true)
    const [first] = pipelines as readonly [Converted]
    const sources = pipelines.flatMap(({ spec }) => spec.sources ?? [])
    const converted = { ...first, spec: { ...first.spec, sources } }
    const recorded =
      'text' in options.old
        ? options.old
        : await eventsOfBinary(options.old, converted, { ...options, sink }, origin, folder)
    const old = eventsIn(recorded.text, recorded.file)
    const made: EventFields[] = []
    for (const each of writing) {
      const printed = withNodePaths(await runOn(withOneSink(each, sink), options.sample, folder))
      made.push(...eventsIn(printed, `the output of the Pipeline ${each.metadata.name}`))
    }
    const comparison = compareEvents(old, made, options.ignored)
    console.error(comparisonText(comparison, old, made))
    const { differences, onlyOld, onlyMade } = comparison
    return differences.length + onlyOld.length + onlyMade.length === 0 ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The old agent's output for the sample. */
async function eventsOfBinary(
  { binary, limitMs }: Binary,
  converted: Converted,
  options: { readonly sample: string; readonly sink: string },
  { agent, files, included }: Origin,
  parent: string,
): Promise<Recorded> {
  if (agent.trial === undefined) {
    throw new PenstockError(
      'PEN_USAGE',
      `\`--binary\` only supports ${agentsWithTrial}. Record the output of ${agent.title} for the sample, and pass it with \`--against OUTPUT\`.`,
    )
  }
  const folder = join(parent, 'old')
  mkdirSync(folder)
  const lines = resolve(options.sample)
  const sample: Sample = {
    lines,
    podLog: () =>
      writeGivenLog(parent, { namespace: 'default', container: sampleContainers[0] as string, file: lines }),
    podEvents: async (name) => {
      const file = join(parent, 'pods.ndjson')
      writeFileSync(file, await runOn(withSourceAlone(converted, name), lines, parent))
      return file
    },
  }
  const trial = await agent.trial({ files, included, sample, sink: options.sink, folder })
  for (const part of trial.leftOut) console.error(`${agent.title} runs without the ${part}.`)
  return {
    file: `the output of ${binary}`,
    text: withNodePaths(await runOldAgent(binary, trial, folder, lines, limitMs)),
  }
}

/** The Pipeline with only a pod source, printing its events. */
function withSourceAlone(converted: Converted, wanted: string): object {
  const pods = (converted.spec.sources ?? []).filter(({ type }) => type === orchestratorLogs.type)
  const source = pods.find(({ name }) => name === wanted) ?? pods[0]
  const sinks = [{ name: 'events', type: 'console', inputs: [source?.name], config: { encoding: { codec: 'json' } } }]
  return { ...converted, spec: { sources: [source], sinks } }
}

/** The name of the sink to compare. */
function sinkOf(pipelines: readonly Converted[], wanted: string | undefined): string {
  const sinks = new Set(pipelines.flatMap(({ spec }) => spec.sinks ?? []).map(({ name }) => name))
  const names = [...sinks].join(', ')
  if (wanted === undefined && sinks.size > 1) {
    throw new PenstockError('PEN_USAGE', `Select the sink to compare with \`--sink\`: the Pipeline has ${names}.`)
  }
  const found = [...sinks].find((name) => wanted === undefined || name === wanted)
  if (found !== undefined) return found
  throw new PenstockError('PEN_USAGE', `The Pipeline has no sink \`${wanted ?? ''}\`; its sinks are ${names}.`)
}

/** The Pipeline with only the compared sink, because the others would repeat the events. */
function withOneSink(converted: Converted, wanted: string): object {
  const { spec } = converted
  return { ...converted, spec: { ...spec, sinks: spec.sinks?.filter(({ name }) => name === wanted) } }
}

const maxOutputBytes = 256 << 20

/** The output of `penstock run` for a file; its messages if it fails. */
async function runOn(resource: object, sample: string, folder: string): Promise<string> {
  const pipeline = join(folder, 'pipeline.yaml')
  writeFileSync(pipeline, stringify(resource))
  const [, main = ''] = process.argv
  const words = ['run', pipeline, '--input', sample, '--print', '-o', 'json']
  const command = spawn(process.execPath, [...process.execArgv, main, ...words], { stdio: ['ignore', 'pipe', 'pipe'] })
  const printed: Buffer[] = []
  let bytes = 0
  command.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= maxOutputBytes) printed.push(chunk)
    else command.kill()
  })
  let messages = ''
  command.stderr.setEncoding('utf8').on('data', (text: string) => {
    messages = (messages + text).slice(-65_536)
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    command.on('error', reject)
    command.on('close', resolve)
  })
  if (bytes > maxOutputBytes) {
    throw new PenstockError(
      'PEN_USAGE',
      `The sample produces more than ${maxOutputBytes >> 20} MiB of events; use a smaller one.`,
    )
  }
  if (code !== 0)
    throw new PenstockError('PEN_USAGE', `The Pipeline does not run on the sample.\n${messages.trimEnd()}`)
  return Buffer.concat(printed).toString('utf8')
}

/** Each run writes its pod logs to a new folder; events get the folder of a node instead. */
function withNodePaths(text: string): string {
  return text.replaceAll(/"[^"\\]*\/penstock-run-\w+(?=\/pods\/)/g, '"/var/log')
}

/** Parses events: one object per line, or one list of objects, each of which may contain several events. */
function eventsIn(text: string, file: string): readonly EventFields[] {
  const isList = text.trimStart().startsWith('[')
  const texts = isList ? [text] : text.split('\n')
  return texts.flatMap((each, index) => {
    if (each.trim() === '') return []
    const line = isList ? 1 : index + 1
    let value: unknown
    try {
      value = JSON.parse(each, exact)
    } catch (error) {
      throw new PenstockError('PEN_USAGE', `${file}:${line} is not JSON: ${(error as Error).message}.`, {
        cause: error,
      })
    }
    const events = Array.isArray(value) ? value : [value]
    for (const event of events) {
      if (isTable(event)) continue
      throw new PenstockError(
        'PEN_USAGE',
        `${file}:${line} contains ${JSON.stringify(event)}, which is not an event: an event is a JSON object.`,
      )
    }
    return (events as EventFields[]).flatMap(recordedEvents)
  })
}

/** Integers that do not fit in JavaScript's numbers keep their text. */
function exact(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source ?? ''
  return typeof value === 'number' && /^-?\d+$/.test(source) && !Number.isSafeInteger(value) ? source : value
}

const maxShown = 10
const maxFields = 60

/**
 * @returns lines for people: the number of equal events, the differing fields with the first example of each, and events without a
 * counterpart
 */
function comparisonText(
  { pairs, equal, differences, onlyOld, onlyMade }: Comparison,
  old: readonly EventFields[],
  made: readonly EventFields[],
): string {
  const lines = [
    `For the same lines, the old agent produced ${counted(old.length, 'event')} and the Pipeline ${counted(made.length, 'event')}; ${equal} ${equal === 1 ? 'is' : 'are'} equal.`,
  ]
  if (pairs > equal) {
    lines.push('', `${counted(pairs - equal, 'event')} differ${pairs - equal === 1 ? 's' : ''}:`)
    for (const each of differences.slice(0, maxFields)) lines.push(`  ${differenceText(each)}`)
    if (differences.length > maxFields) lines.push(`  and ${differences.length - maxFields} further fields.`)
  }
  lines.push(...withoutCounterpart('Only the old agent made', onlyOld, old))
  lines.push(...withoutCounterpart('Only the Pipeline made', onlyMade, made))
  return lines.join('\n')
}

function differenceText({ path, how, count, old, made, oldAt, madeAt }: Difference): string {
  const times = counted(count, 'time')
  const where = `first in event ${oldAt + 1} of the old agent, ${madeAt + 1} of the Pipeline`
  if (how === 'only old') return `${path}: missing in the Pipeline, ${times}: ${shown(old)} (${where})`
  if (how === 'only new') return `${path}: added by the Pipeline, ${times}: ${shown(made)} (${where})`
  const what = how === 'other type' ? 'another type' : 'another value'
  return `${path}: ${what}, ${times}: ${shown(old)} -> ${shown(made)} (${where})`
}

function withoutCounterpart(title: string, positions: readonly number[], events: readonly EventFields[]): string[] {
  if (positions.length === 0) return []
  const rows = positions.slice(0, maxShown).map((at) => `  event ${at + 1}: ${shown(events[at], 400)}`)
  const more = positions.length > maxShown ? [`  and ${positions.length - maxShown} more.`] : []
  return ['', `${title} ${counted(positions.length, 'event')}:`, ...rows, ...more]
}

function shown(value: unknown, limit = 120): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > limit ? `${text.slice(0, limit)}…` : text
}
