// Checks of option values that a schema cannot express: templates, field paths, deprecated options, and members of an `encoding` that
// depend on each other.

import { isAbsolute } from 'node:path'
import { parsePath, pathText } from '../event/path.ts'
import { decodingCodecs, framingMethods, screenCodecs } from '../schema/groups.ts'
import { isInline, type Meaning } from '../schema/meaning.ts'
import { malformedEncoding } from '../schema/messages.ts'
import { aliasesOf, chosenVariant, isTable, membersOf, type Schema, variantsOf } from '../schema/walk.ts'
import { placeholdersOf, secretStandIn } from '../secrets/placeholders.ts'
import { templateProblem } from '../template.ts'
import type { ProblemFacts } from './place.ts'
import type { Segments } from './syntax.ts'

export interface ValueFinding extends ProblemFacts {
  readonly segments: Segments
}

/**
 * @param value the parsed value, with defaults
 * @param given the value that the user wrote
 */
export function checkValues(schema: Schema, value: unknown, given: unknown): ValueFinding[] {
  const findings: ValueFinding[] = []
  walk(schema, value, given, [], findings)
  return findings
}

function walk(schema: Schema, value: unknown, given: unknown, segments: Segments, findings: ValueFinding[]): void {
  if (typeof value === 'string') {
    const finding = textFinding(schema, value)
    if (finding !== undefined) findings.push({ ...finding, segments })
  }
  const variants = variantsOf(schema)
  if (variants !== undefined) {
    const chosen = variants[chosenVariant(variants, value)]
    if (chosen !== undefined) walk(chosen, value, given, segments, findings)
    return
  }
  if (Array.isArray(value)) {
    const items = schema['items'] as Schema | undefined
    if (items === undefined) return
    for (const [index, item] of value.entries()) {
      walk(items, item, Array.isArray(given) ? given[index] : undefined, [...segments, index], findings)
    }
    return
  }
  if (!isTable(value)) return
  if (schema['x-encoding'] === true) encodingFindings(value, segments, findings)
  const members = membersOf(schema)
  if (members['only_fields'] !== undefined && members['except_fields'] !== undefined) {
    exclusionFindings(value, segments, findings)
  }
  findings.push(...uselessFindings(members, value, given, segments))
  findings.push(...choiceFindings(members, value, given, segments))
  const others = schema['additionalProperties']
  for (const [name, inner] of Object.entries(value)) {
    const below = Object.hasOwn(members, name) ? members[name] : isTable(others) ? others : undefined
    if (below === undefined || inner === undefined) continue
    const written = isTable(given) ? [name, ...aliasesOf(below)].find((each) => Object.hasOwn(given, each)) : undefined
    if (written !== undefined && typeof below['x-deprecated'] === 'string') {
      findings.push({
        segments: [...segments, written],
        atKey: true,
        severity: 'warning',
        message: `\`${written}\` is deprecated`,
        help: below['x-deprecated'],
      })
    }
    walk(
      below,
      inner,
      written === undefined ? undefined : (given as Record<string, unknown>)[written],
      [...segments, written ?? name],
      findings,
    )
  }
}

function textFinding(schema: Schema, text: string): ProblemFacts | undefined {
  if (schema['format'] === 'template') {
    const problem = templateProblem(text)
    return problem === undefined ? undefined : { message: problem }
  }
  if (schema['format'] === 'field-path' && text !== '' && parsePath(text) === undefined) {
    return {
      message: `Invalid field path ${JSON.stringify(text)}`,
      help: 'expected a path such as `a.b`, `.a[0]` or `."with spaces"`',
    }
  }
  return relativePathFinding(schema, text)
}

/** Warns about a relative path. The text may be a secret, so the message does not contain it. */
function relativePathFinding(schema: Schema, text: string): ProblemFacts | undefined {
  const file = (schema['x-means'] as Meaning | undefined)?.file
  if (file?.absolute !== true || isAbsolute(text) || isInline(file.inline, text)) return undefined
  if (text === secretStandIn || placeholdersOf(text).length > 0) return undefined
  return {
    severity: 'warning',
    message: 'the path is not absolute',
    help: 'Write an absolute path: the agent resolves a relative path in the directory in which it was started.',
  }
}

function encodingFindings(encoding: Record<string, unknown>, segments: Segments, findings: ValueFinding[]): void {
  const codec = encoding['codec']
  const wanted = codec === 'csv' ? 'csv.fields' : codec === 'avro' ? 'avro.schema' : undefined
  if (wanted === undefined || encoding[codec as string] !== undefined) return
  findings.push({
    ...malformedEncoding(segments, [`missing field \`${wanted}\`, which codec \`${codec}\` needs`]),
    segments,
  })
}

/** Codecs and methods that have a table of options with the same name. */
const choices: ReadonlySet<string> = new Set([...screenCodecs, ...decodingCodecs, ...framingMethods])

/** The finding that an option, the last of `segments`, has no effect with the chosen codec, method or type. */
function ineffective(segments: Segments, choice: string, chosen: string, help: string): ValueFinding {
  const message = `\`${segments.at(-1)}\` has no effect with ${choice} \`${chosen}\``
  return { segments, atKey: true, severity: 'warning', message, help }
}

/** Finds tables of options for a codec or method that was not chosen, which have no effect. */
function uselessFindings(
  members: Readonly<Record<string, Schema>>,
  value: Record<string, unknown>,
  given: unknown,
  segments: Segments,
): ValueFinding[] {
  if (!isTable(given)) return []
  const findings: ValueFinding[] = []
  for (const choice of ['codec', 'method']) {
    const chosen = value[choice]
    if (members[choice]?.['enum'] === undefined || typeof chosen !== 'string') continue
    for (const name of Object.keys(members)) {
      if (name === chosen || given[name] === undefined || !choices.has(name)) continue
      findings.push(ineffective([...segments, name], choice, chosen, `Set \`${choice}: ${name}\`, or remove it.`))
    }
  }
  return findings
}

/** Finds options that have an effect only with certain choices, but were set with another one. */
function choiceFindings(
  members: Readonly<Record<string, Schema>>,
  value: Record<string, unknown>,
  given: unknown,
  segments: Segments,
): ValueFinding[] {
  if (!isTable(given)) return []
  const findings: ValueFinding[] = []
  for (const [name, member] of Object.entries(members)) {
    const onlyWith = member['x-only-with'] as Readonly<Record<string, readonly string[]>> | undefined
    if (onlyWith === undefined || given[name] === undefined) continue
    for (const [choice, words] of Object.entries(onlyWith)) {
      const chosen = value[choice]
      if (typeof chosen !== 'string' || words.includes(chosen)) continue
      findings.push(
        ineffective(
          [...segments, name],
          choice,
          chosen,
          `The option has an effect only with ${choice} ${words.map((word) => `\`${word}\``).join(' or ')}.`,
        ),
      )
    }
  }
  return findings
}

function exclusionFindings(table: Record<string, unknown>, segments: Segments, findings: ValueFinding[]): void {
  const kept = fieldTexts(table['only_fields'])
  const both = [...fieldTexts(table['except_fields'])].filter((path) => kept.has(path))
  if (both.length === 0) return
  findings.push({
    segments,
    message: '`except_fields` and `only_fields` should be mutually exclusive.',
    help: `both list ${both.join(', ')}`,
  })
}

function fieldTexts(paths: unknown): Set<string> {
  const texts = new Set<string>()
  for (const text of Array.isArray(paths) ? paths : []) {
    const path = parsePath(text)
    if (path !== undefined) texts.add(pathText(path))
  }
  return texts
}
