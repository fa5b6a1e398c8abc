// Filters and matches that join lines. A source joins lines before any other step, so their rules become those of a source. If they are for
// some of the tags only, several sources read the same files, and each keeps the events of its own tags.

import { fieldLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { bare, type Joined, joinedBy, languages, problemOf, reportStates } from '../fluent-bit/joining.ts'
import type { Context } from '../fluent-bit/plugin.ts'
import { lastValue } from '../fluent-bit/sections.ts'
import { pattern } from '../fluent-bit/text.ts'
import { reportEarlier } from './before-joins.ts'
import { isOn, listOf, type Plugged } from './element.ts'
import { joinedBy as beginningWith, secondsOf } from './inputs.ts'
import { recordPath } from './ruby.ts'
import { anyTag, isKnown, matchOf, patternOf, type Tag, tagProgram } from './tags.ts'

/** The lines of a source. */
export interface Lines {
  readonly tag: Tag
  /** The text between two lines of an event. */
  readonly between: string
  /** An expression for a parsed line; empty for other parsers, and undefined if the record is the line alone. */
  readonly parser: string | undefined
}

/** How a source joins lines, and the condition on the tags of its events; undefined if it reads events with any tag. */
export interface Joining {
  readonly joined: Joined | undefined
  readonly condition: string | undefined
}

/** Patterns that a tag must match, and patterns that it must not match. */
interface Reach {
  readonly all: readonly string[]
  readonly none: readonly string[]
  /** Filters that events pass before. */
  readonly before: readonly Plugged[]
}

/** Maximum number of labels that follow one another. */
const maxLabels = 8

/** Reads the elements by label, and remembers those whose rules a source has. */
export class Joins {
  readonly #labels: ReadonlyMap<string, readonly Plugged[]>
  readonly #context: Context
  readonly #taken = new Set<Plugged>()

  constructor(labels: ReadonlyMap<string, readonly Plugged[]>, context: Context) {
    this.#labels = labels
    this.#context = context
  }

  /** One item for each source that reads the lines. */
  of(label: string, lines: Lines): readonly Joining[] {
    const rules = [...this.#reached(label, lines.tag, { all: [], none: [], before: [] }, 0)].flatMap(
      ({ section, reach }) => {
        const joined = this.#joined(section, lines)
        return joined === undefined ? [] : [{ joined, section, reach }]
      },
    )
    const end = rules.findIndex(({ reach }) => isAny(reach))
    const used = end < 0 ? rules : rules.slice(0, end + 1)
    for (const { section, reach } of used) {
      if (!this.#taken.has(section)) reportEarlier(section, reach.before, this.#context)
      this.#taken.add(section)
    }
    const [first] = used
    if (first === undefined) return [{ joined: undefined, condition: undefined }]
    if (isAny(first.reach)) return [{ joined: first.joined, condition: undefined }]
    const reason = 'it joins the lines of some tags, so several sources read the files, each with rules of its own'
    const nearest = 'To read each file once, select its pods in the sources.'
    for (const { section } of used)
      this.#context.replaced(section, `${section.type} ${section.pattern}`, reason, nearest)
    const tests = used.map(({ reach }) => testOf(reach))
    const before = (index: number) => tests.slice(0, index).map((test) => `!(${test})`)
    const conditions = [
      ...tests.map((test, index) => [...before(index), ...(test === '' ? [] : [`(${test})`])]),
      before(tests.length),
    ]
    const all = [...used.map(({ joined }) => joined), ...(end < 0 ? [undefined] : [])]
    return all.map((joined, index) => ({
      joined,
      condition: `${tagProgram(lines.tag)}\n${(conditions[index] ?? []).join(' && ')}`,
    }))
  }

  /** Reports a filter or match whose rules no source has. */
  report(section: Plugged): void {
    if (this.#taken.has(section) || isOfParts(section)) return
    this.#taken.add(section)
    const reason = 'the tags of its events depend on earlier steps, and a source joins lines before them'
    this.#context.gap(section, section.type, reason, 'Set `multiline` of the source, or of a source of its own.')
  }

  *#reached(label: string, given: Tag, start: Reach, depth: number): Generator<{ section: Plugged; reach: Reach }> {
    let { all, none, before } = start
    let tag = given
    for (const section of this.#labels.get(label) ?? []) {
      const match = matchOf(tag, section.pattern)
      if (match === 'none') continue
      // Behind a step that sets the tag, only patterns for all tags are known to match.
      if (tag !== given && match === 'some') {
        if (section.kind === 'match') return
        continue
      }
      if (section.type === 'tag_normaliser' && match === 'all') {
        tag = anyTag
        continue
      }
      const reach = { all: match === 'all' ? all : [...all, section.pattern], none, before }
      const isJoin = section.type === (section.kind === 'filter' ? 'concat' : 'detect_exceptions')
      if (isJoin && !isOfParts(section)) yield { section, reach }
      if (section.kind === 'filter') {
        if (section.type !== 'concat') before = [...before, section]
        continue
      }
      if (section.type === 'relabel' && depth < maxLabels)
        yield* this.#reached(lastValue(section, '@label') ?? '', tag, reach, depth + 1)
      if (match === 'all') return
      none = [...none, section.pattern]
    }
  }

  #joined(section: Plugged, lines: Lines): Joined | undefined {
    if (lines.parser !== undefined) {
      this.#taken.add(section)
      // A filter passes records without its field on unchanged.
      const key = lastValue(section, section.kind === 'filter' ? 'key' : 'message') ?? 'message'
      if (lines.parser !== '' && !lines.parser.includes(`(?<${key}>`)) return undefined
      const reason = 'its rules are for a field, and the source joins whole lines before they are parsed'
      this.#context.gap(section, section.type, reason, 'Set `multiline` of the source to rules for whole lines.')
      return undefined
    }
    if (!isKnown(lines.tag) && matchOf(lines.tag, section.pattern) !== 'all') return undefined
    const joined =
      section.kind === 'filter' ? ofConcat(section, lines, this.#context) : ofExceptions(section, this.#context)
    // A gap has been reported.
    if (joined === undefined) this.#taken.add(section)
    return joined
  }
}

const isAny = ({ all, none }: Reach) => all.length === 0 && none.length === 0

function testOf({ all, none }: Reach): string {
  const fits = (text: string) => `is_object(parse_grok(tag, ${pattern(patternOf(text))}) ?? null)`
  return [...all.map(fits), ...none.map((text) => `!${fits(text)}`)].join(' && ')
}

/** Whether a filter joins the parts of a line that the container runtime has split. */
const isOfParts = (section: Plugged) =>
  section.entries.some(({ key }) => key.includes('partial')) || lastValue(section, 'multiline_end_regexp') === '/\\n$/'

/** The step of a filter that joins parts: it removes the field that marks a part. */
export function stepsOfParts(section: Plugged): readonly Step[] {
  const key =
    lastValue(section, 'partial_key') ??
    (isOn(lastValue(section, 'use_partial_cri_logtag'), false)
      ? (lastValue(section, 'partial_cri_logtag_key') ?? 'logtag')
      : undefined)
  const path = recordPath(key ?? '')
  if (path === undefined || isOn(lastValue(section, 'keep_partial_key'), false)) return []
  return [{ type: 'remap', text: `del(${fieldLiteral(path)})` }]
}

function ofConcat(section: Plugged, { between }: Lines, context: Context): Joined | undefined {
  const start = lastValue(section, 'multiline_start_regexp')
  const further = lastValue(section, 'continuous_line_regexp')
  const separator = lastValue(section, 'separator')
  if (start === undefined) {
    const reason = 'a source needs a pattern for the first line of a message'
    context.gap(section, 'concat', reason, 'Set `multiline.custom` of the source.')
    return undefined
  }
  if (separator !== undefined && ![between, '\n'].includes(separator)) {
    const reason = 'the source puts a line feed between joined lines'
    context.replaced(section, 'concat: separator', reason, 'Replace the line feeds in a remap transform.')
  }
  if (!isOn(lastValue(section, 'use_first_timestamp'), false)) {
    const reason =
      'the plugin gives a joined event the time of the line that ends it; the source, that of its first line'
    const nearest = 'Nothing, unless you compare times with those of Fluentd.'
    context.replaced(section, 'concat: use_first_timestamp', reason, nearest)
  }
  const timeoutMs = timeoutOf(section, 'flush_interval', 60_000, context)
  if (further !== undefined) return continued(start, further, timeoutMs, section, context)
  return beginningWith(start, timeoutMs, section, context)
}

/** The longest time for which a source waits for a further line. */
const longestWaitMs = 3_600_000

/** The time after which an event without further lines is complete. Zero means that the plugin waits without a limit. */
function timeoutOf(section: Plugged, option: string, byDefault: number, context: Context): number {
  const given = lastValue(section, option)
  const seconds = secondsOf(given)
  if (given !== undefined && seconds !== 0) {
    return seconds === undefined ? byDefault : Math.max(1, Math.round(1000 * seconds))
  }
  if (given === undefined) return byDefault
  const reason = 'the plugin waits for further lines without a limit, and the source waits for up to an hour'
  context.replaced(section, `${section.type}: ${option}`, reason, 'Set `timeoutMs` of `multiline` to a longer time.')
  return longestWaitMs
}

/** Joins a line that matches one pattern with following lines that match another pattern. */
function continued(
  start: string,
  further: string,
  timeoutMs: number,
  section: Plugged,
  context: Context,
): Joined | undefined {
  const machine = { starts: [bare(start)], others: [bare(further)], isExact: true, timeoutMs }
  const problem = problemOf(machine)
  if (problem === undefined) return joinedBy([machine])
  context.gap(section, 'concat', problem, 'Set `multiline.custom` of the source.')
  return undefined
}

function ofExceptions(section: Plugged, context: Context): Joined | undefined {
  const named = listOf(lastValue(section, 'languages')).map((name) => name.toLowerCase().replace(/^:/, ''))
  const names = named.length === 0 || named.includes('all') ? Object.keys(languages) : named
  const machines = [...new Set(names.flatMap((name) => languages[name] ?? []))]
  reportStates(section, 'detect_exceptions', context)
  for (const entry of section.entries.filter(({ key, value }) => /^max_(?:lines|bytes)$/.test(key) && value !== '0')) {
    const unit = entry.key === 'max_lines' ? 'lines' : 'bytes'
    const reason = `the plugin ends an event after ${entry.value} ${unit} and begins another; the source joins all of its lines`
    const nearest = 'To limit the text, use `truncate` in a remap transform.'
    context.replaced(entry, `detect_exceptions: ${entry.key}`, reason, nearest)
  }
  const byDefault = Math.max(0, ...machines.map(({ timeoutMs }) => timeoutMs))
  const timeoutMs = timeoutOf(section, 'multiline_flush_interval', byDefault, context)
  return joinedBy(machines.map((machine) => ({ ...machine, timeoutMs })))
}
