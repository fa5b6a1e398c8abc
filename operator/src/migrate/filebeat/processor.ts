// The contract of a processor, the options that all processors have, and the rules by which processors fail.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { flagIn, type Mapping, type Part, type Report } from '../loki/context.ts'
import { isList, isMap, type Tree, textOf } from '../loki/tree.ts'
import { indent } from '../otel/text.ts'

/** Returns statements; or undefined, after reporting a gap, if the processor cannot be converted. */
type Built = readonly string[] | undefined
/**
 * `build` receives a statement to run where the processor fails, or an empty text. Filebeat skips the rest of a list below \`then\` or \`else\`
 * after a failure.
 */
export type Processor = Mapping<[Report, string], Built>

export const when = { when: '`if` around the statements, or a filter transform' } as const
/** Options of processors after whose failure the event continues unchanged. */
export const quiet = {
  ignore_missing: 'missing fields are ignored',
  fail_on_error: 'an event continues after a failed step',
  ignore_failure: 'an event continues after a failed step',
  tag: 'only names the processor',
  id: 'only names the processor',
} as const
/** Options of processors whose failure on one field undoes the whole step. */
export const failing = {
  ignore_missing: 'whether a missing field is a failure',
  fail_on_error: 'whether a failure undoes the whole step and sets `error.message`',
} as const
export const naming = { tag: 'only names the processor', id: 'only names the processor' } as const

/** Texts that Filebeat reads as booleans. */
export const trueTexts = ['1', 't', 'T', 'true', 'TRUE', 'True'] as const
export const falseTexts = ['0', 'f', 'F', 'false', 'FALSE', 'False'] as const

/** The work of a processor on one of its fields. */
export interface Attempt {
  /** The field that it reads. */
  readonly from: string
  /** An expression that is true if the work fails although the field exists. */
  readonly fails?: string
  readonly lines: readonly string[]
}

const isThere = (field: string) => `exists(${field})`

/** Sets the text of an error, as Filebeat does, unless the event has another value in its place. */
export const errorLine = (text: string): string =>
  `if !exists(.error) || is_object(.error) { .error.message = ${text} }`

/** Statements for all fields. By default, a failure on one of them undoes the step, and the event gets the text of the error. */
export function attempts(part: Part, all: readonly Attempt[], failed = ''): readonly string[] {
  const ignoresMissing = flagIn(part, 'ignore_missing') === true
  const undoes = flagIn(part, 'fail_on_error') !== false
  const mayFail = all.some(({ fails }) => fails !== undefined) || !ignoresMissing
  if (!undoes || !mayFail)
    return all.map(({ from, fails, lines }) =>
      block(fails === undefined ? isThere(from) : `${isThere(from)} && !(${fails})`, lines),
    )
  const steps = all.map(({ from, fails, lines }) => {
    const missing = ignoresMissing
      ? []
      : [[`!${isThere(from)}`, `could not fetch value for key: ${from.slice(1)}`] as const]
    const failed =
      fails === undefined ? [] : [[`${isThere(from)} && (${fails})`, `failed on ${from.slice(1)}`] as const]
    const tests = [...missing, ...failed].map(([test, text]) => `if ${test} { problem = ${textLiteral(text)} }`)
    return `${tests.join(' else ')} else if ${isThere(from)} {\n${indent(lines.join('\n'))}\n}`
  })
  const written = errorLine(`${textLiteral(`Failed to process fields in ${part.name} processor: `)} + problem`)
  const error = failed === '' ? written : `${written}; ${failed}`
  const [only] = steps
  if (all.length === 1 && only !== undefined) return ['problem = ""', only, `if problem != "" { ${error} }`]
  return [
    'before = .',
    'problem = ""',
    ...steps.map((step) => `if problem == "" {\n${indent(step)}\n}`),
    'if problem != "" {',
    '  . = before',
    `  ${error}`,
    '}',
  ]
}

/** The work of a processor that changes nothing if it fails on one of its fields. */
export interface Joint {
  readonly from: string
  readonly before: readonly string[]
  /** An expression that is true if the work succeeds. */
  readonly test: string
  readonly lines: readonly string[]
}

/** Statements for all fields. By default, a failure on one of them undoes the step; the event gets no error. */
export function together(part: Part, all: readonly Joint[], failed: string): readonly string[] {
  const undoes = flagIn(part, 'fail_on_error') !== false
  const ignoresMissing = flagIn(part, 'ignore_missing') === true
  if (all.length === 0) return []
  const otherwise = (tests: readonly string[]) =>
    failed === '' || !undoes ? '' : ` else if ${ignoresMissing ? tests.join(' || ') : 'true'} { ${failed} }`
  if (!undoes || all.length === 1)
    return all.flatMap(({ from, before, test, lines }) => [
      ...before,
      `${block(test, lines)}${otherwise([`exists(${from})`])}`,
    ])
  const succeed = all.map(({ from, test }) => (ignoresMissing ? `(!exists(${from}) || (${test}))` : test))
  return [
    ...all.flatMap(({ before }) => before),
    `if ${succeed.map((test) => (test.startsWith('(') ? test : `(${test})`)).join(' && ')} {`,
    ...all.map(({ test, lines }) => indent(ignoresMissing ? block(test, lines) : lines.join('\n'))),
    `}${otherwise(['true'])}`,
  ]
}

/** The statement for a failure, if a condition is true; none if there is no statement. */
export const failure = (test: string, failed: string): readonly string[] =>
  failed === '' ? [] : [`if ${test} { ${failed} }`]

/** Processors that write nothing to the fields that they name, and the one that writes times. */
const withoutTargets: ReadonlySet<string> = new Set(['timestamp', 'drop_fields', 'include_fields', 'fingerprint'])
/** Options that name fields to read. */
const sources: ReadonlySet<string> = new Set(['when', 'from', 'field', 'source', 'destination'])

const namesTime = (tree: Tree): boolean => {
  if (isList(tree)) return tree.value.some(namesTime)
  if (!isMap(tree)) return textOf(tree)?.includes('@timestamp') === true
  return [...tree.value].some(([name, item]) => name === '@timestamp' || (!sources.has(name) && namesTime(item)))
}

/** Statements after which the time of the event is still a time. Filebeat writes no other value there. */
export const withTime = (part: Part, lines: readonly string[]): readonly string[] =>
  withoutTargets.has(part.name) || !namesTime(part.tree)
    ? lines
    : ['own_time = .timestamp', ...lines, 'if !is_timestamp(.timestamp) { .timestamp = own_time }']

export const block = (test: string, lines: readonly string[]): string =>
  lines.length === 1 && !lines[0]?.includes('\n')
    ? `if ${test} { ${lines[0]} }`
    : `if ${test} {\n${indent(lines.join('\n'))}\n}`

/** Adds a text to the list of flags, as Filebeat does for events that it has changed or could not parse. */
export const flagLine = (flag: string): string =>
  `${fieldLiteral(['log', 'flags'])} = push(array(${fieldLiteral(['log', 'flags'])}) ?? [], ${textLiteral(flag)})`
