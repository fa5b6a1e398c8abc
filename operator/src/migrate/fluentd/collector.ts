// The collector of the logging-operator, which is Fluent Bit: those of its settings that decide which lines Fluentd gets, and in which form.

import type { Gap, Step } from '../draft.ts'
import { filters as bitFilters } from '../fluent-bit/filters.ts'
import { Context } from '../fluent-bit/plugin.ts'
import type { Entry } from '../fluent-bit/sections.ts'
import { isPodLog } from '../fluent-bit/tags.ts'
import { below, flagOf, isMap, itemsOf, type Place, pairsOf, plain, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { listOf } from './element.ts'

type Options = readonly (readonly [string, string])[]

export interface Collector {
  /** Options of the source of a flow. */
  readonly tail: Options
  /** The parser of the lines of the container runtime. */
  readonly parse: Options
  /** The field with the line, if the files state it. */
  readonly key: string | undefined
  /** The filters of the collector. */
  readonly steps: readonly Step[]
}

interface Resource {
  readonly kind: string
  readonly tree: Tree
}

/** Settings that change records, or select lines. The others are for the pods of the collector. */
const used = 'inputTail filterKubernetes filterModify filterGrep filterAws parser customParsers customConfigSecret'
  .split(' ')
  .concat('enableDockerParserCompatibilityForCRI', 'disableKubernetesFilter')

function specsOf({ kind, tree }: Resource): readonly Tree[] {
  const spec = below(tree, 'spec')
  const all =
    kind === 'Logging'
      ? [
          below(spec, 'fluentbit'),
          ...itemsOf(below(spec, 'nodeAgents')).map((each) => below(each, 'nodeAgentFluentbit')),
        ]
      : [kind === 'FluentbitAgent' ? spec : kind === 'NodeAgent' ? below(spec, 'nodeAgentFluentbit') : undefined]
  return all.filter((each) => each !== undefined)
}

/** The collector that the resources describe. If there are several, all flows get what the first of them reads. */
export function collectorOf(resources: readonly Resource[], start: Place, gaps: Gap[]): Collector {
  const specs = resources.flatMap(specsOf)
  const [spec] = specs
  const gap = (place: Place, subject: string, reason: string, nearest: string) =>
    gaps.push({ file: place.file, line: place.line, subject, reason, nearest })
  const settingsOf = (each: Tree | undefined) =>
    JSON.stringify(used.map((name) => plain(below(each, name) ?? { ...start, value: null })))
  const other = specs.find((each) => settingsOf(each) !== settingsOf(spec))
  if (other !== undefined) {
    const reason = 'the collectors have different inputs or filters, and the sources have those of the first one'
    gap(
      other,
      'fluentbit',
      reason,
      'Convert the resources of each collector separately, with a `selector` for its pods.',
    )
  }
  const secret = below(spec, 'customConfigSecret')
  if (secret !== undefined) {
    const reason = 'the configuration of the collector is in a Secret'
    gap(secret, 'fluentbit: customConfigSecret', reason, 'Convert that configuration, and add its filters.')
  }
  const { parse, key, first } = lineOf(spec, gap)
  return { tail: tailOf(spec, gap), parse, key, steps: [...first, ...filterSteps(spec, start, key, gaps)] }
}

type Report = (place: Place, subject: string, reason: string, nearest: string) => void

interface Line {
  readonly parse: Options
  readonly key: string | undefined
  /** Steps that add fields of the parser. */
  readonly first: readonly Step[]
}

const inLog: Options = [
  ['@type', 'regexp'],
  ['expression', '/^(?<time>[^ ]+) (?<stream>stdout|stderr) (?<logtag>[^ ]*) (?<log>.*)$/'],
]
const inMessage: Options = [
  ['@type', 'cri'],
  ['keep_time_key', 'false'],
]

/** How the collector reads a line of the container runtime. */
function lineOf(spec: Tree | undefined, gap: Report): Line {
  const joined = below(spec, 'inputTail', 'multiline.parser')
  if (joined !== undefined) {
    const names = textsOf(joined).flatMap(listOf)
    for (const name of names.filter((each) => each !== 'cri' && each !== 'docker')) {
      const reason = `the collector joins lines by the rules \`${name}\``
      gap(joined, `fluentbit: multiline.parser ${name}`, reason, 'Set `multiline` of the sources.')
    }
    const step: Step = { type: 'remap', text: '._p = "F"' }
    const parse: Options = [
      ['@type', 'docker'],
      ['keep_time_key', 'true'],
    ]
    return { parse, key: 'log', first: names.includes('cri') ? [step] : [] }
  }
  const stated = below(spec, 'inputTail', 'Parser') ?? below(spec, 'parser')
  const name = textOf(stated)
  if (name === 'docker') return { parse: [['@type', 'docker']], key: 'log', first: [] }
  const isLikeDocker = flagOf(below(spec, 'enableDockerParserCompatibilityForCRI')) === true
  if (name === undefined || name === 'cri')
    return isLikeDocker
      ? { parse: inLog, key: 'log', first: [] }
      : { parse: inMessage, key: name === undefined ? undefined : 'message', first: [] }
  if (name === 'cri-log-key') return { parse: inLog, key: 'log', first: [] }
  const own = customParser(textOf(below(spec, 'customParsers')) ?? '', name)
  const key = /\(\?<(log|message)>/.exec(own?.regex ?? '')?.[1]
  if (own === undefined || key === undefined || stated === undefined) {
    if (stated !== undefined)
      gap(
        stated,
        `fluentbit: Parser ${name}`,
        'the files do not contain its fields',
        'Rename the fields after the sources.',
      )
    return { parse: inMessage, key: undefined, first: [] }
  }
  const parse: Options = [
    ['@type', 'regexp'],
    ['expression', `/${own.regex}/`],
    ['keep_time_key', String(own.keepsTime)],
  ]
  return { parse, key, first: [] }
}

/** A parser in a file of Fluent Bit. */
function customParser(text: string, name: string): { readonly regex: string; readonly keepsTime: boolean } | undefined {
  for (const part of text.split(/^\s*\[parser\].*$/im)) {
    const read = (key: string) => new RegExp(`^\\s*${key}\\s+(\\S.*?)\\s*$`, 'im').exec(part)?.[1]
    const regex = read('regex')
    if (read('name') === name && regex !== undefined)
      return { regex, keepsTime: /^(?:on|true|yes)$/i.test(read('time_keep') ?? '') }
  }
  return undefined
}

const tailNames: Readonly<Record<string, string>> = {
  Exclude_Path: 'exclude_path',
  Ignore_Older: 'limit_recently_modified',
  Path: 'path',
  Path_Key: 'path_key',
  Read_From_Head: 'read_from_head',
}

/** Options of `inputTail` without a counterpart, and the reasons. */
const tailGaps: Readonly<Record<string, string>> = {
  Multiline: 'the collector joins lines',
  Parser_Firstline: 'the collector joins lines',
  Parser_N: 'the collector joins lines',
  Tag: 'filters and routes of the operator expect tags of their own',
  Tag_Regex: 'filters and routes of the operator expect tags of their own',
}

function tailOf(spec: Tree | undefined, gap: Report): Options {
  return pairsOf(below(spec, 'inputTail')).flatMap(([name, text, at]): Options => {
    const to = Object.hasOwn(tailNames, name) ? tailNames[name] : undefined
    const reason = Object.hasOwn(tailGaps, name) ? tailGaps[name] : undefined
    if (text === '' || /^(?:off|false)$/i.test(text)) return []
    if (reason !== undefined && !(name === 'Tag' && text === 'kubernetes.*'))
      gap(at, `fluentbit: ${name}`, reason, 'Set `multiline` or `selector` of the sources.')
    if (name === 'Path' && !listOf(text).every(isPodLog)) {
      gap(
        at,
        'fluentbit: Path',
        'the sources of flows read the logs of pods alone',
        'Add a `file` source for these files.',
      )
      return []
    }
    return to === undefined ? [] : [[to, text]]
  })
}

const quoted = (text: string) => `"${text.replace(/(["\\])/g, '\\$1')}"`

/** A rule or a condition of `filterModify`: its name, and a field with a value. */
function operationsOf(list: Tree | undefined): readonly (Entry & { readonly words: string })[] {
  return itemsOf(list).flatMap((item) =>
    (isMap(item) ? [...item.value] : []).map(([key, pair]) => {
      const words = ['key', 'value'].flatMap((part) => textOf(below(pair, part)) ?? []).map(quoted)
      return { file: pair.file, line: pair.line, key, value: '', words: words.join(' ') }
    }),
  )
}

/** The filters of the collector: first the one for metadata, which it always has. */
function filterSteps(spec: Tree | undefined, start: Place, key: string | undefined, gaps: Gap[]): readonly Step[] {
  const context = new Context([], gaps)
  const built = (name: string, { file, line }: Place, options: readonly Entry[]): readonly Step[] => {
    const plugin = bitFilters.find((each) => each.name === name)
    if (plugin === undefined) throw new TypeError(`There is no filter ${name}.`)
    const section = { file, line, kind: 'filter', entries: [{ file, line, key: 'name', value: name }, ...options] }
    context.reportOptions(section, plugin)
    return plugin.build(section, context)
  }
  const facts = below(spec, 'filterKubernetes')
  const given = pairsOf(facts).flatMap(([name, value, at]): Entry[] =>
    value === '' ? [] : [{ file: at.file, line: at.line, key: name.toLowerCase(), value }],
  )
  const merging = { ...start, key: 'merge_log', value: 'On' }
  // Fluent Bit merges the members of a line in the field `log` alone.
  const own = key === 'log' ? [merging, ...given] : given.filter(({ key: name }) => !/^(?:merge|keep)_/.test(name))
  const aws = below(spec, 'filterAws')
  if (aws !== undefined) {
    context.gap(
      aws,
      'filterAws',
      'Penstock does not look up metadata of the machine',
      'Set fields in a remap transform.',
    )
  }
  const rules = itemsOf(below(spec, 'filterModify')).flatMap((filter) =>
    built('modify', filter, [
      ...operationsOf(below(filter, 'rules')).map(({ words, ...each }) => ({
        ...each,
        key: each.key.toLowerCase(),
        value: words,
      })),
      ...operationsOf(below(filter, 'conditions')).map(({ words, ...each }) => ({
        ...each,
        key: 'condition',
        value: `${each.key} ${words}`,
      })),
    ]),
  )
  const grep = below(spec, 'filterGrep')
  const tests = Object.entries({ Regex: 'regex', Exclude: 'exclude', LogicalOp: 'logical_op' }).flatMap(
    ([name, to]) => {
      const at = below(grep, name)
      return textsOf(at).map((value): Entry => ({ file: start.file, line: at?.line ?? 1, key: to, value }))
    },
  )
  const isWithoutFacts = flagOf(below(spec, 'disableKubernetesFilter')) === true
  return [
    ...(isWithoutFacts ? [] : built('kubernetes', facts ?? start, own)),
    ...rules,
    ...(grep === undefined ? [] : built('grep', grep, tests)),
  ]
}
