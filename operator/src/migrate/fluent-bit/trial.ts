// Runs Fluent Bit on recorded lines: file inputs read the sample from its beginning, the output prints JSON, and filters that send requests
// are left out. The configuration is written in the classic syntax, with all included files.

import { PenstockError } from '@penstock/agent/errors'
import type { NamedText } from '../draft.ts'
import { sinkNamed, type Trial, type TrialRequest } from '../trial.ts'
import { nameOf, pluginOf } from './names.ts'
import { load } from './read.ts'
import { type Entry, lastValue, type Section } from './sections.ts'
import { shipped } from './shipped.ts'
import { isPodLog } from './tags.ts'

/** Filters that send requests to the API server or another service. */
const needingNetwork: ReadonlySet<string> = new Set(['kubernetes', 'aws', 'ecs', 'nightfall'])

/** Options of `tail` that the trial sets itself, or that concern other files. */
const ofFiles = /^(?:path|exclude_path|db(?:\..*)?|storage\..*|read_from_head|ignore_older|exit_on_eof)$/

export async function fluentBitTrial({ files, included, sample, sink, folder }: TrialRequest): Promise<Trial> {
  const sections = load(files, included, [])
  const ofKind = (kind: string) => sections.filter((section) => section.kind === kind)
  const chosen = sinkNamed(ofKind('output'), nameOf, sink)
  if (chosen === undefined) {
    throw new PenstockError(
      'PEN_USAGE',
      `The configuration has no output that became \`${sink}\`. Pass the events of the old agent with \`--against OUTPUT\`.`,
    )
  }
  const leftOut: string[] = []
  const isKept = (section: Section, isKnown: boolean): boolean => {
    if (!isKnown) leftOut.push(`${section.kind} ${pluginOf(section)} (${section.file}:${section.line})`)
    return isKnown
  }
  const inputs: string[] = []
  for (const section of ofKind('input').filter((each) => isKept(each, pluginOf(each) === 'tail'))) {
    const isPods = (lastValue(section, 'path') ?? '').split(',').every((path) => isPodLog(path.trim()))
    const own = section.entries.filter(({ key }) => !ofFiles.test(key)).map((entry) => (isPods ? ofPods(entry) : entry))
    inputs.push(
      written('INPUT', [
        ...own,
        { key: 'path', value: isPods ? await sample.podLog() : sample.lines },
        { key: 'read_from_head', value: 'on' },
      ]),
    )
  }
  const filters = ofKind('filter').filter((section) => isKept(section, !needingNetwork.has(pluginOf(section))))
  // Outputs that write JSON also write the time.
  const dates = chosen.entries.filter(({ key }) => key.startsWith('json_date_'))
  const isJson = ['stdout', 'http', 'file'].includes(pluginOf(chosen))
  const matches = chosen.entries.filter(({ key }) => key === 'match' || key === 'match_regex')
  const parsers = [...shippedParsers(ofKind('parser')), ...ofKind('parser')]
  const main = [
    written('SERVICE', [
      { key: 'flush', value: '1' },
      { key: 'grace', value: '1' },
      { key: 'log_level', value: 'error' },
      { key: 'parsers_file', value: `${folder}/parsers.conf` },
    ]),
    ...inputs,
    ...filters.map(({ entries }) => written('FILTER', entries)),
    written('OUTPUT', [
      { key: 'name', value: 'stdout' },
      ...matches,
      { key: 'format', value: 'json_lines' },
      ...(isJson ? dates : [{ key: 'json_date_key', value: 'false' }]),
    ]),
  ]
  const definitions = [
    ...parsers.map(({ entries }) => written('PARSER', entries)),
    ...ofKind('multiline_parser').map(({ entries }) => written('MULTILINE_PARSER', entries)),
  ]
  const texts: NamedText[] = [
    { file: 'fluent-bit.conf', text: main.join('') },
    { file: 'parsers.conf', text: definitions.join('') },
  ]
  return { files: texts, words: ['--quiet', '--config', `${folder}/fluent-bit.conf`], leftOut }
}

/** The sample of a pod is in the format of containerd. */
function ofPods({ key, value, ...place }: Entry): Entry {
  const isRuntime = key === 'parser' && /^docker$/i.test(value)
  return { ...place, key, value: isRuntime ? 'containerd' : value }
}

const place = { file: 'parsers.conf', line: 1 }
const runtime: Section = {
  ...place,
  kind: 'parser',
  entries: Object.entries({
    name: 'containerd',
    format: 'regex',
    regex: '^(?<time>[^ ]+) (?<stream>stdout|stderr) (?<logtag>[^ ]*) (?<log>.*)$',
    time_key: 'time',
    time_format: '%Y-%m-%dT%H:%M:%S.%L%z',
  }).map(([key, value]) => ({ ...place, key, value })),
}

/** Parsers from the file that Fluent Bit ships, except those that the configuration defines. */
function shippedParsers(own: readonly Section[]): readonly Section[] {
  const names = new Set(own.map((section) => lastValue(section, 'name')))
  return [runtime, ...shipped.values()].filter((section) => !names.has(lastValue(section, 'name')))
}

function written(kind: string, entries: readonly Pick<Entry, 'key' | 'value'>[]): string {
  const lines = entries.map(({ key, value }) => {
    if (!value.includes('\n')) return `    ${key} ${value}\n`
    throw new PenstockError(
      'PEN_USAGE',
      `The option \`${key}\` has several lines, which the classic syntax does not allow. Pass the events of the old agent with \`--against OUTPUT\`.`,
    )
  })
  return `[${kind}]\n${lines.join('')}`
}
