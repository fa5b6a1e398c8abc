// The processor `redaction`, which removes attributes that are not allowed and masks values, also in bodies that are objects.

import { textLiteral } from '@penstock/agent/config'
import { openRead } from './field.ts'
import type { Context, Mapping, Part } from './mapping.ts'
import { fieldAt } from './record.ts'
import { indent, regexLiteral } from './text.ts'

/** The replacements of a match, by hash function. */
const masks: Readonly<Record<string, string>> = {
  '': '"****"',
  md5: 'md5(m.string)',
  sha1: 'sha1(m.string)',
  sha3: 'sha3(m.string, variant: "SHA3-256")',
}

/** The lines of a text, and an empty one, each of which a mask replaces. */
const everyLine = "r'(?m)[^\\n]+|^$'"

/** Levels of objects in bodies below which only values are masked, and not by key. */
const maxLevels = 4

const block = (head: string, lines: readonly string[], end = '}') => [head, ...lines.map(indent), end]

class Rules {
  readonly keepsAll: boolean
  readonly redactsAll: boolean
  readonly #part: Part
  readonly #mask: string

  constructor(part: Part, mask: string) {
    this.#part = part
    this.#mask = mask
    this.keepsAll = part.flag('allow_all_keys', false)
    this.redactsAll = part.flag('redact_all_types', false)
  }

  #names(option: string): string {
    return `[${this.#part.list(option).map(textLiteral).join(', ')}]`
  }

  #anyOf(option: string, text: string): string | undefined {
    const tests = this.#part.list(option).map((pattern) => `match(${text}, ${regexLiteral(pattern)})`)
    return tests.length === 0 ? undefined : tests.join(' || ')
  }

  /** Whether a key is ignored; undefined if none is. */
  ignored(key: string): string | undefined {
    const tests = [
      ...(this.#part.has('ignored_keys') ? [`includes(${this.#names('ignored_keys')}, ${key})`] : []),
      this.#anyOf('ignored_key_patterns', key),
    ].filter((test) => test !== undefined)
    return tests.length === 0 ? undefined : tests.join(' || ')
  }

  /** Whether a key is allowed or ignored. */
  allowed(key: string): string {
    return [`includes(${this.#names('allowed_keys')}, ${key})`, this.ignored(key)]
      .filter((test) => test !== undefined)
      .join(' || ')
  }

  blocked(key: string): string | undefined {
    return this.#anyOf('blocked_key_patterns', key)
  }

  allowedValue(text: string): string | undefined {
    return this.#anyOf('allowed_values', text)
  }

  get hasKeyRules(): boolean {
    return !this.keepsAll || this.#part.list('blocked_key_patterns').length > 0
  }

  get hasValues(): boolean {
    return this.#part.list('blocked_values').length > 0
  }

  /** An expression that replaces all matches in a text. */
  masked(text: string, regex: string): string {
    return this.#mask === masks['']
      ? `replace(${text}, ${regex}, ${this.#mask})`
      : `replace_with(${text}, ${regex}) -> |m| { ${this.#mask} }`
  }

  /** Statements that mask the values in `text`, and assign the result if it differs. */
  valueLines(target: string): readonly string[] {
    if (!this.hasValues) return []
    const lines = [
      'changed = text',
      ...this.#part
        .list('blocked_values')
        .map((pattern) => `changed = ${this.masked('changed', regexLiteral(pattern))}`),
      `if changed != text { ${target} = changed }`,
    ]
    const allowed = this.allowedValue('text')
    return allowed === undefined ? lines : block(`if !(${allowed}) {`, lines)
  }
}

/** Statements that redact the attributes at a path. */
function attributeLines(rules: Rules, path: readonly string[]): readonly string[] {
  const at = fieldAt(path)
  const kept = `${at} = filter(object(${openRead(path)}) ?? {}) -> |key, _value| { ${rules.allowed('key')} }`
  const blocked = rules.blocked('key')
  if (blocked === undefined && !rules.hasValues) return rules.keepsAll ? [] : [kept]
  const others = rules.redactsAll ? 'to_string(value) ?? encode_json(value)' : '""'
  const allowed = rules.allowedValue('text')
  const byKey =
    blocked === undefined
      ? []
      : block(
          `if (${blocked})${allowed === undefined ? '' : ` && !(${allowed})`} {`,
          [`value = ${rules.masked('text', everyLine)}`],
          rules.hasValues ? '} else {' : '}',
        )
  const byValue = rules.valueLines('value')
  const lines = [
    `text = if is_string(value) { string!(value) } else { ${others} }`,
    ...byKey,
    ...(blocked === undefined ? byValue : rules.hasValues ? [...byValue.map(indent), '}'] : []),
  ]
  const ignored = rules.ignored('key')
  return [
    ...(rules.keepsAll ? [] : [kept]),
    'made = {}',
    ...block(`for_each(object(${openRead(path)}) ?? {}) -> |key, value| {`, [
      ...(ignored === undefined ? lines : block(`if !(${ignored}) {`, lines)),
      'made = set!(made, [key], value)',
    ]),
    `${at} = made`,
  ]
}

/** Statements that mask a value that is neither an object nor a list. */
const scalarLines = (rules: Rules, at: string): readonly string[] =>
  rules.hasValues ? [`text = to_string(${at}) ?? ""`, ...rules.valueLines(at)] : []

/** Statements that redact the body or a part of it. */
function bodyLines(rules: Rules, at: string, level: number): readonly string[] {
  const scalar = scalarLines(rules, at)
  if (!rules.hasKeyRules || level > maxLevels) {
    if (!rules.hasValues) return []
    const inner = scalarLines(rules, 'inner')
    const deep = (kind: string) => [
      `${at} = map_values(${kind}!(${at}), recursive: true) -> |inner| {`,
      ...block('  if !is_object(inner) && !is_array(inner) {', inner.map(indent), '  }'),
      '  inner',
      '}',
    ]
    return [
      ...block(`if is_object(${at}) {`, deep('object'), `} else if is_array(${at}) {`),
      ...deep('array').map(indent),
      '} else {',
      ...scalar.map(indent),
      '}',
    ]
  }
  const [made, key, item] = [`made${level}`, `key${level}`, `item${level}`]
  const blocked = rules.blocked(key)
  const ignored = rules.ignored(key)
  const below = bodyLines(rules, item, level + 1)
  const byKey =
    blocked === undefined
      ? below
      : [
          ...block(`if ${blocked} {`, [`${item} = ${rules.masked(`string(${item}) ?? ""`, everyLine)}`], '} else {'),
          ...below.map(indent),
          '}',
        ]
  const inItem = ignored === undefined ? byKey : block(`if !(${ignored}) {`, byKey)
  const member = [...inItem, `${made} = set!(${made}, [${key}], ${item})`]
  return [
    `if is_object(${at}) {`,
    `  ${made} = {}`,
    ...block(
      `for_each(object!(${at})) -> |${key}, ${item}| {`,
      rules.keepsAll ? member : block(`if ${rules.allowed(key)} {`, member),
    ).map(indent),
    `  ${at} = ${made}`,
    `} else if is_array(${at}) {`,
    ...block(`${at} = map_values(array!(${at})) -> |${item}| {`, [...below, item]).map(indent),
    '} else {',
    ...scalar.map(indent),
    '}',
  ]
}

function maskOf(part: Part, context: Context): string {
  const name = part.text('hash_function') ?? ''
  const mask = Object.hasOwn(masks, name) ? masks[name] : undefined
  if (mask !== undefined) return mask
  context.gap(
    part.place(['hash_function']),
    `${part.id}: hash_function ${name}`,
    'a transform has no key for this hash function',
    'Asterisks replace the values. To keep hashes, set `hash_function` to `md5`, `sha1` or `sha3`.',
  )
  return masks[''] as string
}

/** Masks values, and removes keys that are not allowed. */
export const redaction: Mapping<readonly { readonly type: 'remap'; readonly text: string }[]> = {
  name: 'redaction',
  becomes: 'a remap transform, also for bodies that are objects or lists',
  options: {
    allow_all_keys: 'whether to keep all attributes',
    allowed_keys: 'the attributes to keep',
    ignored_keys: 'attributes to keep unchanged',
    ignored_key_patterns: 'attributes to keep unchanged, by pattern',
    blocked_values: '`replace` with asterisks or hashes',
    allowed_values: 'values to keep unchanged',
    blocked_key_patterns: `asterisks or hashes replace values of these keys; in bodies up to level ${maxLevels}`,
    redact_all_types: 'whether to mask values of all types in attributes, and not only texts',
    hash_function: '`md5`, `sha1` or `sha3` in place of asterisks',
  },
  itself: {
    summary: {
      how: 'no attribute lists the masked values',
      unless: /debug|info/,
      reason: 'no attribute counts or lists the masked values',
      nearest: 'Compare events with `penstock tap`.',
    },
  },
  build: (part, context) => {
    const rules = new Rules(part, maskOf(part, context))
    const text = [
      ...attributeLines(rules, ['resource', 'attributes']),
      ...attributeLines(rules, ['attributes']),
      ...bodyLines(rules, '.message', 1),
    ]
    return text.length === 0 ? [] : [{ type: 'remap', text: text.join('\n') }]
  },
}
