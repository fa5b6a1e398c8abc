// The stage `multiline`. A source joins lines before all stages, so the stages that come before `multiline` and read the line get its first
// line only. Below `match`, the stage joins the lines of some streams: several sources read the files, each with its own rules, and their
// programs drop the events of the others.

import { multilineProblems } from '@penstock/agent/config'
import { type Part, type Report, textIn } from './context.ts'
import { colours, translateRegex } from './regex.ts'
import { selectorCondition } from './selector.ts'
import { partsOf } from './stage.ts'
import { isMap, millisecondsOf, type Tree } from './tree.ts'

/** The option `multiline` of an `orchestrator_logs` source. A `file` source has the same with other names. */
export interface Joined {
  readonly start: string
  readonly timeoutMs: number
  /** Whether a stage parses the lines of the container runtime before they are joined. */
  readonly isAfterRuntime: boolean
}

/** The stages for the events of one source. */
export interface Variant {
  readonly joined: Joined | undefined
  readonly list: Tree | undefined
}

const multilineOptions = {
  firstline: '`multiline.custom.start`',
  max_wait_time: '`multiline.custom.timeoutMs`',
  max_lines: 'a program that makes several events of one with more lines; 128 by default',
} as const
/** For the guide only: the stage becomes an option of the source. */
export const multilineStage = {
  name: 'multiline',
  becomes: '`multiline` of the source; below `match`, a source of its own for the streams that match',
  options: multilineOptions,
  itself: {
    trim_newlines: 'lines have no line feeds at their ends',
  },
} as const

/** The name of an item that keeps only the events of a selector. Stages of users have no such name. */
export const onlyName = 'match: only'

const runtimes = ['cri', 'docker']
const changing = ['replace', 'output', 'decolorize', 'pack', 'drop', 'sampling', 'limit', 'truncate', 'luhn']
const reading = ['regex', 'json', 'logfmt', 'pattern']
const below = (part: Part): Tree | undefined => (isMap(part.tree) ? part.tree.value.get('stages') : undefined)

/** The stages of a list with those below `match`. */
export const allOf = (parts: readonly Part[]): readonly Part[] =>
  parts.flatMap((part) => [part, ...(part.name === 'match' ? allOf(partsOf(below(part))) : [])])

/** Whether a stage of a pipeline parses the lines of the container runtime. */
export const parsesRuntime = (list: Tree | undefined): boolean =>
  allOf(partsOf(list)).some(({ name }) => runtimes.includes(name))

/** Whether a stage changes or drops single lines. */
const changes = (part: Part) =>
  (changing.includes(part.name) && !(part.name === 'replace' && (textIn(part, 'source') ?? '') !== '')) ||
  (part.name === 'match' && textIn(part, 'action') === 'drop')

/** Whether a stage reads the line. */
const reads = (part: Part) => {
  if (reading.includes(part.name)) return (textIn(part, 'source') ?? '') === ''
  if (part.name === 'template') return textIn(part, 'template')?.includes('.Entry') === true
  return part.name === 'match' && /\}\s*(?:\|=|\|~|!=|!~)/.test(textIn(part, 'selector') ?? '')
}

/** Whether stages get other lines, or drop others, if lines are joined before them. */
export const seesLines = (list: Tree | undefined): boolean =>
  allOf(partsOf(list)).some((part) => reads(part) || changes(part))

/** Whether the stages before `multiline` must get the first line of joined lines only. */
export function readsFirstLine(before: readonly Part[]): boolean {
  const all = allOf(before)
  return all.some(reads) && !all.some(changes)
}

/** The rules of a source for a stage, if possible. */
function rulesOf(part: Part, before: readonly Part[], report: Report, alreadyJoins: boolean): Joined | undefined {
  report.options(part, multilineStage)
  const earlier = allOf(before)
  const changed = earlier.filter(changes)
  const given = textIn(part, 'firstline') ?? ''
  const [, flags = '', anchored] = /^((?:\(\?[a-z]+\))*)\^([^|]*)$/.exec(given) ?? []
  const isColoured = anchored !== undefined && changed.length > 0 && changed.every(({ name }) => name === 'decolorize')
  if (isColoured) {
    report.replaced(
      part,
      'stage multiline: decolorize',
      'the source joins lines before their colours are removed, so the first line may begin with colours',
      'Colours between the characters that `firstline` matches are not skipped.',
    )
  } else if (changed.length > 0) {
    report.gap(
      part,
      'stage multiline',
      `the stages before it (${changed.map(({ name }) => name).join(', ')}) receive joined lines now, because the source joins them`,
      'Compare a few events with `penstock run`.',
    )
  }
  const regex = translateRegex(isColoured ? `${flags}^(?:${colours})*${anchored}` : given)
  const start = regex.ok ? regex.text.replaceAll('\\x27', "'") : ''
  const wait = millisecondsOf(textIn(part, 'max_wait_time') ?? '3s') ?? 3000
  const timeoutMs = Math.max(1, Math.round(wait))
  const found = { start, timeoutMs, isAfterRuntime: earlier.some(({ name }) => runtimes.includes(name)) }
  const [problem] = multilineProblems({ ...fileMultiline(found) })
  if (!regex.ok || start === '' || problem !== undefined || alreadyJoins) {
    const reason = regex.ok ? (problem?.message ?? 'a source joins lines with one set of rules') : regex.reason
    report.gap(part, 'stage multiline', reason, 'Set `multiline.custom` of the source: start, condition and mode.')
    return undefined
  }
  report.replaced(
    part,
    'stage multiline',
    'the source joins lines, separately for each container and stream or for each file',
    'An event ends before the next first line, after the timeout, or at the size limit of the source.',
  )
  return found
}

/** The stage `multiline` of a pipeline as an option of the source, if possible. */
function joinedBy(parts: readonly Part[], report: Report): Joined | undefined {
  let joined: Joined | undefined
  for (const [index, part] of parts.entries()) {
    if (part.name === 'multiline') joined ??= rulesOf(part, parts.slice(0, index), report, joined !== undefined)
  }
  return joined
}

/** The sources that a pipeline needs: one, or one more for each `match` that joins lines. */
export function variantsOf(list: Tree | undefined, report: Report): readonly Variant[] {
  const parts = partsOf(list)
  const joining = parts.flatMap((part, index) => (joinsBelow(part) ? [index] : []))
  const joined = joinedBy(parts, report)
  if (list === undefined || joining.length === 0 || parts.some(({ name }) => name === 'multiline'))
    return [{ joined, list }]
  const found = joining.flatMap((index) => {
    const part = parts[index] as Part
    const inner = partsOf(below(part))
    const at = inner.findIndex(({ name }) => name === 'multiline')
    const rules = rulesOf(inner[at] as Part, [...parts.slice(0, index), ...inner.slice(0, at)], report, false)
    return rules === undefined ? [] : [{ index, rules }]
  })
  if (found.length === 0) return [{ joined, list }]
  if (found.length > 1) {
    report.replaced(
      parts[found[0]?.index ?? 0] as Part,
      'stage multiline',
      'a stream that several `match` stages join gets the rules of the first',
      'Let each stream match one of them only.',
    )
  }
  const dropped = (index: number): Tree => itemOf(parts[index] as Part, 'match', [['action', 'drop']])
  const others = parts.map((part, index) =>
    found.some((each) => each.index === index) ? dropped(index) : asItem(part),
  )
  const variants = found.map(({ index, rules }, position): Variant => {
    const part = parts[index] as Part
    const value = parts.flatMap((each, at): readonly Tree[] => {
      if (at !== index) {
        const isEarlier = found.slice(0, position).some((one) => one.index === at)
        return [isEarlier ? dropped(at) : asItem(each)]
      }
      return [itemOf(part, onlyName, []), asItem(part)]
    })
    return { joined: rules, list: { ...list, value } }
  })
  return [...variants, { joined: undefined, list: { ...list, value: others } }]
}

/** Whether a part is a `match` by labels that joins lines once, not below another `match`. */
function joinsBelow(part: Part): boolean {
  if (part.name !== 'match' || reads(part) || !selectorCondition(textIn(part, 'selector') ?? '').ok) return false
  return partsOf(below(part)).filter(({ name }) => name === 'multiline').length === 1
}

const asItem = ({ file, line, name, tree }: Part): Tree => ({ file, line, value: new Map([[name, tree]]) })

/** An item with the selector of a `match` and other options. */
function itemOf(part: Part, name: string, options: readonly (readonly [string, string])[]): Tree {
  const { file, line } = part
  const selector = isMap(part.tree) ? part.tree.value.get('selector') : undefined
  const given = options.map(([key, value]) => [key, { file, line, value }] as const)
  const members = new Map<string, Tree>([
    ...(selector === undefined ? [] : [['selector', selector] as const]),
    ...given,
  ])
  return { file, line, value: new Map([[name, { file, line, value: members }]]) }
}

export function podMultiline({ start, timeoutMs }: Joined): Readonly<Record<string, unknown>> {
  return { custom: { start, condition: start, mode: 'halt_before', timeoutMs } }
}

export function fileMultiline({ start, timeoutMs }: Pick<Joined, 'start' | 'timeoutMs'>) {
  return { start_pattern: start, condition_pattern: start, mode: 'halt_before', timeout_ms: timeoutMs } as const
}
