// Compiles OTTL statements and conditions to programs. A failing statement changes nothing; a failing condition is false.

import { textLiteral } from '@penstock/agent/config'
import { severityNumber } from '../record.ts'
import { decimal } from '../text.ts'
import { Fields, type Kind, Lines, type Value } from './code.ts'
import { converters } from './converters.ts'
import { withTimes } from './durations.ts'
import { editors } from './editors.ts'
import { type ContextName, guardOf, idDigits, type Location, locate } from './paths.ts'
import { type Call, type Node, parseCondition, parseStatement, type Statement, Unconvertible } from './syntax.ts'

interface Note {
  readonly reason: string
  readonly nearest: string
}

/** A condition as code, whose value is null if a part of it fails. */
interface Test {
  readonly code: string
  readonly mayBeNull: boolean
}

/** A condition that may be null, in a variable. */
function named(lines: Lines, code: string): Test {
  const name = lines.newName('test')
  lines.add(`${name} = ${code}`)
  return { code: name, mayBeNull: true }
}

/** Whether a comparison of a missing value has the result of one that fails. */
function isSameForAbsent(operator: string, other: Node, whenFailing: boolean | null): boolean {
  if (operator !== '==' && operator !== '!=') return whenFailing === false
  const isConstant = ['nil', 'literal', 'number', 'name'].includes(other.type)
  return isConstant && ((operator === '==') === (other.type === 'nil')) === whenFailing
}

/** A program under construction. Statements of one group share their cache and the known kinds of fields. */
export class Program {
  readonly context: ContextName
  readonly fields = new Fields('.')
  readonly #cache = new Fields('cache')
  /** Whether a statement makes floats of integers. */
  hasFloats = false
  /** Whether a part of a statement can fail. */
  canFail = false
  /** Differences from the collector that the statements since the last call of `takeNotes` have. */
  #notes: Note[] = []
  readonly #lines: string[] = []
  #number = 0
  #usesCache = false

  constructor(context: ContextName) {
    this.context = context
  }

  newLines(): Lines {
    return new Lines(
      () => ++this.#number,
      () => {
        this.canFail = true
      },
    )
  }

  /** Reports a difference that not every record has. */
  note(reason: string, nearest: string): void {
    this.#notes.push({ reason, nearest })
  }

  takeNotes(): readonly Note[] {
    const taken = this.#notes
    this.#notes = []
    return taken
  }

  /** Adds the lines of a statement; throws `Unconvertible` and adds none if it has no counterpart. */
  statement(text: string): void {
    this.run(parseStatement(text), text)
  }

  /** Adds the lines of a parsed statement. */
  run({ editor, where }: Statement, text: string): void {
    const definition = Object.hasOwn(editors, editor.name) ? editors[editor.name] : undefined
    if (definition === undefined) throw new Unconvertible(`the function \`${editor.name}\` is unknown`)
    const lines = this.newLines()
    if (where !== undefined) lines.open(this.condition(where, lines))
    definition.run(this, lines, argumentsOf(editor, definition.parameters))
    this.#lines.push(`# ${text.replace(/\s+/g, ' ').trim()}`, ...lines.text())
  }

  /** The program text. With conditions, it runs only for events for which at least one is true. */
  text(conditions: readonly string[] = []): string {
    const cache = this.#usesCache ? ['cache = {}'] : []
    if (conditions.length === 0) return [...cache, ...this.#lines].join('\n')
    const lines = this.newLines()
    const tests = conditions.map((text) => this.condition(parseCondition(text), lines))
    return [
      ...lines.text(),
      `if ${tests.join(' || ')} {`,
      ...[...cache, ...this.#lines].map((line) => `  ${line}`),
      '}',
    ].join('\n')
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0
  }

  // --- conditions ---

  /** The text of a condition, which is false if a part of it fails. */
  condition(node: Node, lines: Lines): string {
    return this.#test(node, lines, false).code
  }

  /** @param whenFailing the result if a part of the condition fails, or null to distinguish it from true and false; `not` inverts it */
  #test(node: Node, lines: Lines, whenFailing: boolean | null): Test {
    if (node.type === 'both') return this.#both(node, lines, whenFailing)
    if (node.type === 'not') {
      const inner = this.#test(node.value, lines, whenFailing === null ? null : !whenFailing)
      if (!inner.mayBeNull) return { code: `!${inner.code}`, mayBeNull: false }
      return named(lines, `if ${inner.code} == null { null } else { ${inner.code} == false }`)
    }
    const own = this.newLines()
    const test =
      node.type === 'compare'
        ? this.#comparison(node.operator, node.left, node.right, own, whenFailing)
        : this.#truth(node, own)
    if (!own.isOpen) {
      lines.add(...own.text())
      return { code: test, mayBeNull: false }
    }
    const name = lines.newName('test')
    lines.add(`${name} = ${whenFailing}`)
    own.add(`${name} = ${test}`)
    lines.add(...own.text())
    return { code: name, mayBeNull: whenFailing === null }
  }

  /** `and` or `or`. If the left side fails, so does the condition, whatever the right side is. */
  #both({ operator, left, right }: Node & { type: 'both' }, lines: Lines, whenFailing: boolean | null): Test {
    const isAnd = operator === 'and'
    const sign = isAnd ? '&&' : '||'
    // A left side that is false (`and`) or true (`or`) decides alone, as one that fails does.
    const a = this.#test(left, lines, whenFailing === !isAnd ? whenFailing : null)
    const b = this.#test(right, lines, whenFailing)
    if (!a.mayBeNull && !b.mayBeNull) return { code: `(${a.code} ${sign} ${b.code})`, mayBeNull: false }
    if (whenFailing === null) {
      const decides = `${a.code} == ${isAnd}`
      return named(lines, `if ${decides} { ${b.code} } else { ${a.code} }`)
    }
    const reached = `(${a.code} == ${isAnd} && ${b.code})`
    return { code: `(${a.code} == ${whenFailing ? 'null' : !isAnd} || ${reached})`, mayBeNull: false }
  }

  #truth(node: Node, lines: Lines): string {
    const { code, kind } = this.value(node, lines)
    if (kind === 'boolean') return code
    return `(${code} == true)`
  }

  #comparison(operator: string, left: Node, right: Node, lines: Lines, whenFailing: boolean | null): string {
    const read = (node: Node, other: Node) =>
      this.value(node, lines, isSameForAbsent(operator, other, whenFailing) ? 'or absent' : 'only')
    const [a, b] = [read(left, right), read(right, left)]
    if (operator === '==' || operator === '!=') return `(${a.code} ${operator} ${b.code})`
    if (a.kind === 'boolean' || b.kind === 'boolean') throw new Unconvertible('booleans cannot be ordered')
    const numbers: readonly Kind[] = ['integer', 'float']
    const isSure =
      (numbers.includes(a.kind) && numbers.includes(b.kind)) ||
      (a.kind === b.kind && ['text', 'time', 'duration'].includes(a.kind))
    const [first, second] = [lines.keep(a), lines.keep(b)]
    return isSure
      ? `(${first.code} ${operator} ${second.code})`
      : `((${first.code} ${operator} ${second.code}) ?? false)`
  }

  // --- values ---

  /** @param readable whether the lines may continue with null for a path that the collector cannot read */
  value(node: Node, lines: Lines, readable: 'only' | 'or absent' = 'only'): Value {
    switch (node.type) {
      case 'nil':
        return { code: 'null', kind: 'null' }
      case 'literal':
        return typeof node.value === 'string'
          ? { code: textLiteral(node.value), kind: 'text' }
          : { code: String(node.value), kind: 'boolean' }
      case 'number':
        return node.isFloat
          ? { code: decimal(node.value), kind: 'float' }
          : { code: String(node.value), kind: 'integer' }
      case 'name':
        return enumOf(node.name)
      case 'path': {
        const member = this.member(node, lines)
        if (member !== undefined) return { code: `(get(${member.map}, [${member.key}]) ?? null)`, kind: 'any' }
        const location = this.locate(node)
        const guard = guardOf(location, (path) => this.read({ ...location, path, kind: 'any' }).code)
        if (guard !== undefined) lines.require(guard, readable === 'only')
        return this.read(location)
      }
      case 'list':
        return { code: `[${node.items.map((item) => this.value(item, lines).code).join(', ')}]`, kind: 'list' }
      case 'map': {
        const members = node.members.map(([key, below]) => `${textLiteral(key)}: ${this.value(below, lines).code}`)
        return { code: members.length === 0 ? '{}' : `{ ${members.join(', ')} }`, kind: 'map' }
      }
      case 'math':
        return this.#math(node.operator, node.left, node.right, lines)
      case 'call':
        return this.#call(node, lines)
      default:
        throw new Unconvertible('a condition cannot be a value')
    }
  }

  #math(operator: string, left: Node, right: Node, lines: Lines): Value {
    const [a, b] = [this.value(left, lines), this.value(right, lines)]
    const ofTimes = withTimes(operator, a, b, lines)
    if (ofTimes !== undefined) return ofTimes
    if (operator === '/' && a.kind !== 'float' && b.kind !== 'float') return quotient(a, b, lines)
    const isKnown = a.kind !== 'any' && b.kind !== 'any' && operator !== '/'
    const code = `${a.code} ${operator} ${b.code}`
    const kind =
      a.kind === 'integer' && b.kind === 'integer'
        ? 'integer'
        : a.kind === 'float' || b.kind === 'float'
          ? 'float'
          : 'any'
    return isKnown ? { code: `(${code})`, kind } : lines.fallible(code, 'any')
  }

  #call(call: Call, lines: Lines): Value {
    const definition = Object.hasOwn(converters, call.name) ? converters[call.name] : undefined
    if (definition === undefined) {
      const nearest = Object.hasOwn(nearestFunctions, call.name) ? nearestFunctions[call.name] : undefined
      throw new Unconvertible(`the function \`${call.name}\` has no counterpart`, nearest)
    }
    const result = definition.run(this, lines, argumentsOf(call, definition.parameters))
    if (call.keys.length === 0) return result
    const keys = call.keys.map((key) => JSON.stringify(key)).join(', ')
    const below = typeof call.keys[0] === 'number' ? 'list' : 'map'
    if (result.kind !== 'any' && result.kind !== below) {
      throw new Unconvertible(`\`${call.name}\` does not return a ${below}, but \`[${keys}]\` follows it`)
    }
    const whole = lines.keep(result)
    const base = lines.as(whole, below)
    return { code: `(get(${base.code}, [${keys}]) ?? null)`, kind: 'any' }
  }

  /** The object and the key of a path whose last key is computed; undefined for other paths. */
  member(node: Node, lines: Lines): { location: Location; map: string; key: string } | undefined {
    if (node.type !== 'path') return undefined
    const { computed, ...last } = node.parts.at(-1) ?? { name: '', keys: [] }
    if (computed === undefined) return undefined
    const location = locate([...node.parts.slice(0, -1), last], this.context)
    const map = lines.as(lines.keep(this.read({ ...location, kind: 'any' })), 'map').code
    return { location, map, key: lines.as(this.value(computed, lines), 'text').code }
  }

  locate(node: Node): Location {
    if (node.type !== 'path') throw new Unconvertible('a path is required here')
    return locate(node.parts, this.context)
  }

  read({ base, path, kind, isNanoseconds }: Location): Value {
    if (base === 'cache') {
      this.#usesCache = true
      return path.length === 0 ? { code: 'cache', kind: 'map' } : { code: this.#cache.read(path), kind: 'any' }
    }
    const code = this.fields.read(path)
    if (kind === 'any') return { code, kind }
    if (isNanoseconds === true) {
      return { code: `to_unix_timestamp(timestamp(${code}) ?? now(), unit: "nanoseconds")`, kind: 'integer' }
    }
    if (kind === 'text' && path.length === 1 && path[0] === 'message') {
      return { code: `(to_string(${code}) ?? encode_json(${code}))`, kind }
    }
    const absent: Partial<Record<Kind, string>> = {
      text: `(string(${code}) ?? ${textLiteral(absentText(path))})`,
      integer: `(int(${code}) ?? 0)`,
      time: `(timestamp(${code}) ?? now())`,
      map: `(object(${code}) ?? {})`,
    }
    return { code: absent[kind] ?? code, kind }
  }

  /** The statement that assigns a value to a location. */
  assign({ base, path }: Location, value: Value): string {
    if (base === 'event') return this.fields.assign(path, value)
    this.#usesCache = true
    return this.#cache.assign(path, value)
  }

  /** The statement that removes a location. */
  remove({ base, path }: Location): string {
    if (base === 'event') return this.fields.remove(path)
    this.#usesCache = true
    return this.#cache.remove(path)
  }
}

/** The text of a field that a record lacks. The digits of a missing id are zeros. */
const absentText = (path: Location['path']) => '0'.repeat(idDigits[String(path[0])] ?? 0)

/** The collector divides integers to an integer. */
function quotient(a: Value, b: Value, lines: Lines): Value {
  const [over, under] = [lines.opaque(a), lines.opaque(b)]
  const whole = lines.newName('whole')
  lines.add(`${whole} = is_integer(${over}) && is_integer(${under})`)
  const rest = lines.fallible(`{ if ${whole} { mod(${over}, ${under}) } else { 0 } }`, 'any').code
  const made = lines.fallible(`(${over} - ${rest}) / ${under}`, 'any').code
  return { code: `({ if ${whole} { to_int(round(${made})) } else { ${made} } })`, kind: 'any' }
}

/** The nearest equivalents of converters that have other results. */
const nearestFunctions: Readonly<Record<string, string>> = {
  ParseXML:
    'Use `parse_xml` in a remap transform: names of elements become keys, and names of attributes keys with `@`.',
  ParseSimplifiedXML: 'Use `parse_xml` in a remap transform, with `include_attr: false` and `parse_number: false`.',
  UserAgent: 'Use `parse_user_agent` in a remap transform, which names the parts differently.',
  Murmur3Hash: 'Use `xxhash` or `sha2` in a remap transform, whose hashes differ.',
  FNV: 'Use `xxhash` or `sha2` in a remap transform, whose hashes differ.',
  XXH3: 'Use `xxhash` in a remap transform, with `variant: "XXH3-64"`.',
}

function enumOf(name: string): Value {
  const severity = /^SEVERITY_NUMBER_(\w+)$/.exec(name)?.[1]
  const number = severity === 'UNSPECIFIED' ? 0 : severityNumber(severity ?? '')
  if (number === undefined) throw new Unconvertible(`\`${name}\` is unknown`)
  return { code: String(number), kind: 'integer' }
}

/** The collector accepts `toCase` and `to_case` for the same parameter. */
const plain = (name: string) => name.replaceAll('_', '').toLowerCase()

/** The arguments of a call by parameter name. */
function argumentsOf(call: Call, parameters: readonly string[]): ReadonlyMap<string, Node> {
  const found = new Map<string, Node>()
  for (const [index, { name, value }] of call.values.entries()) {
    const key = name === undefined ? parameters[index] : parameters.find((each) => plain(each) === plain(name))
    if (key === undefined) {
      throw new Unconvertible(
        `\`${call.name}\` has no parameter ${name === undefined ? index + 1 : `\`${name}\``} here`,
      )
    }
    found.set(key, value)
  }
  return found
}
