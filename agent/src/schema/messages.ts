// Turns the violations of a schema into messages: the option, the expected value, the found value, and a suggestion.
// Messages never contain secrets or the credentials of an address.

import { meaningOf } from './meaning.ts'
import { closest } from './problems.ts'
import type { Violation } from './violations.ts'
import { aliasesOf, chosenVariant, isTable, membersOf, pathOf, type Schema, schemaBelow, variantsOf } from './walk.ts'

export interface Invalid {
  /** Path relative to the options, such as `batch.max_bytes`. */
  readonly path: string
  /** The same path as segments. */
  readonly segments: readonly (string | number)[]
  readonly message: string
  readonly help?: string
  /** True if the place is a key that should not exist. */
  readonly atKey?: boolean
}

/** Turns violations into problems for people. */
export function explained(errors: readonly Violation[], root: Schema): Invalid[] {
  const problems: Invalid[] = []
  const malformed = new Map<string, { segments: (string | number)[]; help: string[] }>()
  for (const error of relevant(errors)) {
    const problem = explain(error)
    const encoding = encodingAbove(root, problem.segments)
    if (encoding === undefined) {
      problems.push(problem)
      continue
    }
    // The requirements fix one message for any mistake in an `encoding`, so the details become its help.
    const text = pathOf(encoding)
    const entry = malformed.get(text) ?? { segments: [...problem.segments], help: [] }
    malformed.set(text, entry)
    const place = problem.segments.length > encoding.length ? `\`${problem.path}\`: ` : ''
    entry.help.push(`${place}${problem.message}${problem.help === undefined ? '' : `; ${problem.help}`}`)
  }
  for (const { segments, help } of malformed.values()) problems.push(malformedEncoding(segments, help))
  return problems
}

/** The message of every problem of an `encoding`. */
export const encodingMessage = 'data did not match any variant of untagged enum EncodingConfig'

/** The only problem that reports a malformed `encoding`. */
export function malformedEncoding(segments: readonly (string | number)[], help: readonly string[]): Invalid {
  return {
    path: pathOf(segments),
    segments,
    message: encodingMessage,
    help: help.join('\n'),
  }
}

function encodingAbove(root: Schema, segments: readonly (string | number)[]): (string | number)[] | undefined {
  let schema: Schema | undefined = root
  for (const [index, segment] of segments.entries()) {
    schema = schema === undefined ? undefined : schemaBelow(schema, segment)
    if (schema?.['x-encoding'] === true) return segments.slice(0, index + 1)
  }
  return undefined
}

/** Removes the errors of variants that the user did not mean. */
function relevant(errors: readonly Violation[]): Violation[] {
  const unions = errors
    .filter((error) => error.keyword === 'anyOf' || error.keyword === 'oneOf')
    .map((error) => ({ error, chosen: meantVariant(error.schema as Schema[], error.data) }))
  // For a value of the wrong type, the bounds in the same schema are irrelevant. Those of another variant may be the only useful error.
  const mistyped = new Set(errors.filter(({ keyword }) => keyword === 'type').map(placeOf))
  return errors.filter((error) => {
    if (bounds.has(error.keyword) && mistyped.has(placeOf(error))) return false
    for (const union of unions) {
      if (error === union.error) {
        // The errors of the chosen variant are more specific, and so is the error about a missing tag.
        const tag = tagOf(error.parentSchema as Schema)
        if (union.chosen >= 0 || (tag !== undefined && (error.data as Schema)?.[tag] === undefined)) return false
        continue
      }
      const below = `${union.error.schemaPath}/`
      const here = error.instancePath
      const at = union.error.instancePath
      if (!error.schemaPath.startsWith(below) || !(here === at || here.startsWith(`${at}/`))) continue
      if (Number.parseInt(error.schemaPath.slice(below.length), 10) !== union.chosen) return false
    }
    return true
  })
}

const placeOf = ({ instancePath, schemaPath }: Violation) =>
  `${instancePath} ${schemaPath.slice(0, schemaPath.lastIndexOf('/'))}`

const bounds: ReadonlySet<string> = new Set(['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'])

/** The variant with the most helpful errors; -1 if the error of the whole union is clearer, as for a number or one of several words. */
function meantVariant(variants: readonly Schema[], value: unknown): number {
  const chosen = chosenVariant(variants, value)
  const words = variants[chosen]?.['enum'] as readonly unknown[] | undefined
  const numeric = variants.some((variant) => variant['type'] === 'integer')
  return numeric && words !== undefined && !words.includes(value) ? -1 : chosen
}

function explain(error: Violation): Invalid {
  const segments = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part))
  const schema = (error.parentSchema ?? {}) as Schema
  const at = (message: string, help?: string): Invalid => ({
    path: pathOf(segments),
    segments,
    message,
    ...(help === undefined ? {} : { help }),
  })
  const name = segments.length === 0 ? 'the component' : `\`${nameOf(segments)}\``
  const found = describe(error.data, isSecret(schema))
  switch (error.keyword) {
    case 'required':
      return at(
        `missing field \`${error.params['missingProperty']}\``,
        expectation(schema, error.params['missingProperty'] as string),
      )
    case 'additionalProperties': {
      const unknown = error.params['additionalProperty'] as string
      const known = Object.keys(membersOf(schema))
      const all = [...segments, unknown]
      return {
        path: pathOf(all),
        segments: all,
        atKey: true,
        ...unknownField(unknown, known, Object.values(membersOf(schema)).flatMap(aliasesOf)),
      }
    }
    case 'type':
      return at(`${name} must be ${expected(schema)}, found ${found}`)
    case 'enum': {
      const words = error.params['allowedValues'] as string[]
      return at(
        `unknown variant ${typeof error.data === 'string' && !isSecret(schema) ? `\`${clipped(error.data)}\`` : found} of ${name}, expected ${alternatives(words)}`,
        refusal(schema, error.data) ?? suggestion(error.data, words),
      )
    }
    case 'anyOf':
    case 'oneOf':
      return union(error, segments, name, found, at)
    case 'minimum':
      return at(
        error.params['limit'] === 1 && (error.data as number) < 1
          ? `${name} must be greater than zero`
          : `${name} must be at least ${error.params['limit']}, found ${found}`,
      )
    case 'exclusiveMinimum':
      return at(
        error.params['limit'] === 0
          ? `${name} must be greater than zero`
          : `${name} must be greater than ${error.params['limit']}, found ${found}`,
      )
    case 'maximum':
      return at(`${name} must be at most ${error.params['limit']}, found ${found}`)
    case 'exclusiveMaximum':
      return at(`${name} must be less than ${error.params['limit']}, found ${found}`)
    case 'minItems':
      return at(
        error.params['limit'] === 1
          ? `${name} must not be empty`
          : `${name} must have at least ${error.params['limit']} items`,
      )
    case 'format':
      return at(`${name} must be an absolute URL with scheme http or https, found ${found}`)
    case 'const':
      return at(`${name} must be equal to constant, found ${found}`)
    default:
      return at(`${name} is not valid, found ${found}`)
  }
}

function union(
  error: Violation,
  segments: (string | number)[],
  name: string,
  found: string,
  at: (message: string, help?: string) => Invalid,
): Invalid {
  const schema = (error.parentSchema ?? {}) as Schema
  const variants = error.schema as Schema[]
  const tag = tagOf(schema)
  if (tag !== undefined && isTable(error.data)) {
    const words = tagWords(variants, tag)
    const given = error.data[tag]
    const all = [...segments, tag]
    const help = suggestion(given, words)
    return {
      path: pathOf(all),
      segments: all,
      message: `unknown variant ${typeof given === 'string' ? `\`${clipped(given)}\`` : describe(given, false)} of \`${tag}\`, expected ${alternatives(words)}`,
      ...(help === undefined ? {} : { help }),
    }
  }
  if (variants.some((variant) => variant['type'] === 'integer')) {
    return at(`invalid value ${found} of ${name}, expected ${expected(schema)}`)
  }
  return at(`${name} must be ${expected(schema)}, found ${found}`)
}

/** Message and help for an unknown field. */
export function unknownField(
  unknown: string,
  known: readonly string[],
  aliases: readonly string[] = [],
): { message: string; help?: string } {
  const sorted = known.toSorted()
  const list = sorted.length === 0 ? 'no fields are allowed here' : `expected ${alternatives(sorted)}`
  const near = closest(unknown, [...sorted, ...aliases])
  return {
    message: `unknown field \`${clipped(unknown)}\`, ${list}`,
    ...(near === undefined ? {} : { help: `did you mean \`${near}\`?` }),
  }
}

export function alternatives(words: readonly string[]): string {
  return words.length === 1 ? `\`${words[0]}\`` : `one of ${words.map((word) => `\`${word}\``).join(', ')}`
}

/** The reason why an option rejects a word that is valid elsewhere. */
function refusal(schema: Schema, given: unknown): string | undefined {
  const reasons = (schema['x-refused'] ?? {}) as Readonly<Record<string, string>>
  return typeof given === 'string' && Object.hasOwn(reasons, given) ? reasons[given] : undefined
}

function suggestion(given: unknown, words: readonly string[]): string | undefined {
  const near = typeof given === 'string' ? closest(given, words) : undefined
  return near === undefined ? undefined : `did you mean \`${near}\`?`
}

/** The member that distinguishes the variants of a union. */
function tagOf(schema: Schema): string | undefined {
  return (schema['discriminator'] as { propertyName?: string } | undefined)?.propertyName
}

function tagWords(variants: readonly Schema[], tag: string): string[] {
  return variants.map((variant) => String(membersOf(variant)[tag]?.['const']))
}

function nameOf(segments: readonly (string | number)[]): string {
  let from = segments.length - 1
  while (from > 0 && typeof segments[from] === 'number') from--
  return pathOf(segments.slice(from))
}

function expectation(schema: Schema, name: string): string | undefined {
  const variants = variantsOf(schema)
  if (variants !== undefined && tagOf(schema) === name) return `expected ${alternatives(tagWords(variants, name))}`
  const member = membersOf(schema)[name]
  if (member === undefined) return undefined
  const description = member['description']
  return typeof description === 'string' ? `${description.replace(/\.$/, '')}: ${expected(member)}` : undefined
}

/** Describes the values that a schema accepts. */
function expected(schema: Schema): string {
  const variants = variantsOf(schema)
  if (schema['discriminator'] !== undefined) return 'a table'
  if (variants !== undefined) {
    // Words come last, in quotes: `a positive integer, "adaptive", or "none"`.
    const parts = variants.flatMap((variant) =>
      Array.isArray(variant['enum']) ? variant['enum'].map((word) => `"${word}"`) : [expected(variant)],
    )
    return parts.length < 3 ? parts.join(' or ') : `${parts.slice(0, -1).join(', ')}, or ${parts.at(-1)}`
  }
  if (Array.isArray(schema['enum'])) return alternatives(schema['enum'] as string[])
  if (schema['const'] !== undefined) return `\`${schema['const']}\``
  switch (schema['type']) {
    case 'string':
      return 'a string'
    case 'integer':
      if (schema['x-unit'] === 'bytes') return 'a whole number of bytes'
      return (schema['minimum'] ?? 0) === 0 ? 'a whole number' : 'a positive integer'
    case 'number':
      return schema['x-unit'] === 'seconds' ? 'a number of seconds' : 'a number'
    case 'boolean':
      return '`true` or `false`'
    case 'array':
      return isTable(schema['items']) ? `a list (each item ${expected(schema['items'])})` : 'a list'
    case 'object':
      return 'a table'
    default:
      return 'a value'
  }
}

/** Describes the found value; for a secret, only its type. */
function describe(value: unknown, secret: boolean): string {
  if (value === undefined || value === null) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a table'
  if (secret) return `a ${typeof value}`
  return typeof value === 'string' ? JSON.stringify(clipped(value)) : String(value)
}

/** Shortens text for a message, and removes the credentials of an address. */
function clipped(text: string): string {
  const shown = text.replace(/\/\/[^/@\s]*@/g, '//…@')
  return shown.length > 60 ? `${shown.slice(0, 59)}…` : shown
}

/** Whether an option is declared as a secret. */
export function isSecret(schema: Schema): boolean {
  return meaningOf(schema).secret === true || (variantsOf(schema)?.some(isSecret) ?? false)
}
