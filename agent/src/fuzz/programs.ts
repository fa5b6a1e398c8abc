// Random programs. Expressions are generated for a required kind, so most of them compile. Statements that do not compile are removed
// one by one until the rest does.

import { Timestamp } from '../event/timestamp.ts'
import { checkProgram } from '../remap/check/checker.ts'
import type { FunctionDeclaration, Parameter } from '../remap/function.ts'
import { functions } from '../remap/functions.ts'
import { type Kind, kinds } from '../remap/kind.ts'
import { tokenize } from '../remap/lexer.ts'
import { textLiteral } from '../remap/literal.ts'
import { parseProgram } from '../remap/parser.ts'
import type { Random } from '../testing/random.ts'
import { anyNames, fewNames, floats, integers, strings } from './events.ts'

const wants = ['string', 'integer', 'float', 'boolean', 'timestamp', 'regex', 'null', 'array', 'object'] as const
type Want = (typeof wants)[number]

/** Guards: functions that accept any value and return the kind, or fail. */
const guards: Partial<Record<Want, string>> = {
  string: 'string',
  integer: 'int',
  float: 'float',
  boolean: 'bool',
  timestamp: 'timestamp',
  array: 'array',
  object: 'object',
}

/** Functions whose results do not depend only on their arguments, or that need the environment of an agent. */
const excluded = new Set([
  'now',
  'log',
  'uuid_v4',
  'uuid_v7',
  'random_bool',
  'random_bytes',
  'random_float',
  'random_int',
  'get_env_var',
  'get_hostname',
])

const regexes: readonly string[] = [
  'a',
  '(?P<x>\\w+)',
  '(?i)[a-z]+(?P<n>\\d)?',
  '^$',
  '',
  '(a+)+$',
  '(a|a)*b',
  '(?P<__proto__>a)(?P<constructor>.)?',
  '\\b',
  '[[:alpha:]&&[^b]]+',
  '\\p{Greek}|😀',
  '(.*)*,',
  '.{0,3}',
]

const tables = new Set(['get_enrichment_table_record', 'find_enrichment_table_records', 'validate_json_schema'])
const callable = functions.filter(
  (declaration) =>
    !excluded.has(declaration.name) &&
    !tables.has(declaration.name) &&
    declaration.form === undefined &&
    declaration.closure === undefined,
)
const byResult = new Map<Want, FunctionDeclaration[]>(
  wants.map((want) => [
    want,
    callable.filter(({ returns }) => typeof returns !== 'function' && returns.is(kinds[want])),
  ]),
)

/** String literals from the examples of a function, which are suitable inputs. */
const literalsOf = new Map<string, readonly string[]>(
  functions.map((declaration) => [
    declaration.name,
    declaration.examples.flatMap(({ source }) =>
      tokenize(source)
        .filter((token) => token.type === 'string' || token.type === 'raw-string')
        .map((token) => source.slice(token.start, token.end)),
    ),
  ]),
)

/** Functions that return objects with known fields, by the kinds of the fields. */
const parsersOf = new Map<Want, (readonly [source: string, field: string])[]>(wants.map((want) => [want, []]))
for (const declaration of callable) {
  const { returns, examples } = declaration
  if (typeof returns === 'function' || !returns.is(kinds.object)) continue
  for (const [field, kind] of returns.object?.known ?? []) {
    for (const want of wants) {
      if (!kind.is(kinds[want])) continue
      for (const { source } of examples) {
        if (!source.includes('\n') && source.startsWith(declaration.name)) {
          parsersOf.get(want)?.push([source, field])
        }
      }
    }
  }
}

/** Valid programs for mutation. */
export const examples: readonly string[] = functions
  .filter(({ name }) => !excluded.has(name))
  .flatMap(({ examples }) => examples.map(({ source }) => source))

/** @param core whether to use mainly assignments, operators, branches and closures, with few calls */
export function randomProgram(random: Random, core: boolean): string {
  return new Writer(random, core).program()
}

const runtime = {
  timezone: 'UTC',
  network: false,
  secret: () => undefined,
  setSecret: () => {},
  log: () => {},
  table: () => undefined,
  metrics: () => [],
  reach: 'everything' as const,
  maxBytes: 0x1fffffe8,
}

function compiles(source: string): boolean {
  return (
    checkProgram(source, parseProgram(source), { eventKind: kinds.object, readOnly: false, runtime }).errors.length ===
    0
  )
}

class Writer {
  readonly #random: Random
  readonly #core: boolean
  readonly #names: readonly string[]
  /** Variables and event fields whose kinds are known. */
  #known = new Map<string, Want>()
  #variables = 0
  #inClosure = false

  constructor(random: Random, core: boolean) {
    this.#random = random
    this.#core = core
    this.#names = core ? fewNames : anyNames
  }

  program(): string {
    const lines: string[] = []
    const count = 1 + this.#random.below(7)
    for (let index = 0; index < count; index++) {
      for (let attempt = 0; attempt < 4; attempt++) {
        const known = new Map(this.#known)
        const statement = this.#statement(3)
        if (compiles([...lines, statement].join('\n'))) {
          lines.push(statement)
          break
        }
        this.#known = known
      }
    }
    return lines.join('\n')
  }

  // Names and paths

  #segment(first: boolean): string {
    const random = this.#random
    if (!first && random.chance(0.25)) return `[${random.pick([0, 1, -1, 2, -2, 5, -7] as const)}]`
    const name = random.pick(this.#names)
    const bare = /^[@_A-Za-z][@_A-Za-z0-9]*$/.test(name) && name !== '_' && random.chance(0.9)
    return `${first ? '' : '.'}${bare ? name : textLiteral(name)}`
  }

  #below(): string {
    let path = ''
    while (this.#random.chance(0.35)) path += this.#segment(false)
    return path
  }

  #path(): string {
    const random = this.#random
    const root = random.chance(0.88) ? '.' : '%'
    if (random.chance(0.04) && root === '.') return `.[${random.pick([0, -1, 1] as const)}]${this.#below()}`
    return `${root}${this.#segment(true)}${this.#below()}`
  }

  #ofKind(want: Want): string[] {
    return [...this.#known].filter(([, kind]) => kind === want).map(([place]) => place)
  }

  #target(want: Want | undefined): string {
    const random = this.#random
    const roll = random.next()
    let place: string
    if (roll < 0.35) {
      const variables = [...this.#known.keys()].filter((name) => /^v\d+$/.test(name))
      place = variables.length > 0 && random.chance(0.4) ? random.pick(variables) : `v${this.#variables++}`
    } else if (roll < 0.45 && this.#known.size > 0) {
      const objects = this.#ofKind('object')
      place = objects.length > 0 ? `${random.pick(objects)}${this.#segment(false)}${this.#below()}` : this.#path()
    } else if (roll < 0.48 && want === 'object') place = '.'
    else place = this.#path()
    return place
  }

  #assigned(place: string, want: Want | undefined): void {
    // The kinds of parents and children have changed.
    for (const other of [...this.#known.keys()]) {
      if (place === '.' ? other.startsWith('.') : other.startsWith(place) || place.startsWith(other)) {
        this.#known.delete(other)
      }
    }
    if (want !== undefined) this.#known.set(place, want)
  }

  // Literals

  #literal(want: Want): string {
    const random = this.#random
    switch (want) {
      case 'string':
        return random.chance(0.1) ? "s'raw\\n{{ x }}'" : textLiteral(random.pick(strings))
      case 'integer':
        return String(random.chance(0.6) ? random.below(6) : random.pick(integers))
      case 'float': {
        const value = random.pick(floats.filter((float) => Math.abs(float) < 1e17))
        return Object.is(value, -0) ? '-0.0' : /^-?\d+$/.test(String(value)) ? `${value}.0` : value.toFixed(3)
      }
      case 'boolean':
        return random.pick(['true', 'false'] as const)
      case 'timestamp':
        return `t'${new Timestamp(random.pick([0, 1700000000123, -5] as const), 0)}'`
      case 'regex':
        return `r'${random.pick(regexes)}'`
      case 'null':
        return 'null'
      case 'array':
        return random.chance(0.3) ? '[]' : `[${this.#literal(this.#scalar())}, ${this.#literal(this.#scalar())}]`
      case 'object':
        return random.chance(0.3)
          ? '{}'
          : `{ ${textLiteral(random.pick(this.#names))}: ${this.#literal(this.#scalar())} }`
    }
  }

  #scalar(): Want {
    return this.#random.pick([
      'string',
      'string',
      'integer',
      'integer',
      'float',
      'boolean',
      'null',
      'timestamp',
    ] as const)
  }

  #want(): Want {
    return this.#random.pick([
      'string',
      'string',
      'string',
      'integer',
      'integer',
      'float',
      'boolean',
      'timestamp',
      'null',
      'array',
      'array',
      'object',
      'object',
    ] as const)
  }

  // Expressions

  /** An expression of any kind without unhandled failures. */
  #any(depth: number): string {
    const random = this.#random
    const roll = random.next()
    if (this.#core && depth > 0 && random.chance(0.15)) return this.#entangled(depth - 1)
    if (roll < 0.35) return this.#path()
    if (roll < 0.38) return '.'
    if (roll < 0.41) return '%'
    if (roll < 0.47) return `del(${this.#path()}${random.chance(0.3) ? ', compact: true' : ''})`
    if (roll < (this.#core ? 0.48 : 0.57) && depth > 0) return this.#call(random.pick(callable), depth - 1, true)
    if (roll < 0.62 && depth > 0) return `(${this.#any(depth - 1)} || ${this.#any(depth - 1)})`
    if (roll < 0.66 && depth > 0)
      return `{ ${textLiteral(random.pick(this.#names))}: ${this.#any(depth - 1)} }${this.#segment(false)}`
    if (roll < 0.7 && depth > 0)
      return `[${this.#any(depth - 1)}, ${this.#any(depth - 1)}][${random.pick([0, 1, -1, 4] as const)}]`
    if (roll < 0.74 && depth > 0) return `parse_json!(${this.#expr('string', depth - 1)})${this.#segment(false)}`
    const places = [...this.#known.keys()]
    if (roll < 0.8 && places.length > 0) return `${random.pick(places)}${this.#below()}`
    return this.#expr(this.#want(), depth)
  }

  /** Reads and writes one place in one expression. A later write must not change an earlier read. */
  #entangled(depth: number): string {
    const random = this.#random
    const places = [...this.#known.keys(), '.', '.a', '.o']
    const place = random.pick(places)
    const want = this.#known.get(place) ?? 'object'
    const below = place === '.' ? `.${random.pick(fewNames)}` : `${place}${this.#segment(false)}`
    const changes = [
      `(${place} = ${this.#expr(want, depth)})`,
      `(${below} = ${place})`,
      `(${below} = ${this.#any(depth)})`,
      `del(${below})`,
    ]
    const change = random.pick(changes)
    switch (random.below(6)) {
      case 0:
        return `[${place}, ${change}, ${place}]`
      case 1:
        return `(${place} == ${change})`
      case 2:
        return `({ "a": ${place}, "b": ${change}, "c": ${place} } | { "a": ${change} })`
      case 3:
        return want === 'boolean' ? `(${place} && (${place} = false))` : `(${place} || ${change})`
      case 4:
        return `({ ${change}; string(${place}) } ?? ${place})`
      default:
        return `push([${place}], ${change})`
    }
  }

  /** An expression of exactly this kind without unhandled failures. */
  #expr(want: Want, depth: number): string {
    const random = this.#random
    if (depth <= 0) {
      const places = this.#ofKind(want)
      return places.length > 0 && random.chance(0.5) ? random.pick(places) : this.#literal(want)
    }
    const roll = random.next()
    const places = this.#ofKind(want)
    if (roll < (this.#core ? 0.3 : 0.2)) return places.length > 0 ? random.pick(places) : this.#literal(want)
    if (roll < (this.#core ? 0.34 : 0.28)) return this.#literal(want)
    if (roll < 0.4 && guards[want] !== undefined) {
      const any = this.#any(depth - 1)
      return random.chance(0.5)
        ? `${guards[want]}!(${any})`
        : `(${guards[want]}(${any}) ?? ${this.#expr(want, depth - 1)})`
    }
    if (roll < 0.45) return `{ ${this.#scoped(() => `${this.#statement(depth - 1)}; ${this.#expr(want, depth - 1)}`)} }`
    if (roll < 0.5) {
      const place = this.#target(want)
      const value = this.#expr(want, depth - 1)
      this.#assigned(place, undefined)
      return `(${place} = ${value})`
    }
    if (roll < 0.56) {
      const predicate = this.#expr('boolean', depth - 1)
      const yes = this.#scoped(() => this.#expr(want, depth - 1))
      const no = this.#scoped(() => this.#expr(want, depth - 1))
      return `{ if ${predicate} { ${yes} } else { ${no} } }`
    }
    const parsers = parsersOf.get(want) ?? []
    if (!this.#core && roll < 0.57 && parsers.length > 0) {
      const [source, field] = random.pick(parsers)
      return `${source}.${textLiteral(field)}`
    }
    if (roll < 0.62) return `(${this.#fallible(want, depth - 1)} ?? ${this.#expr(want, depth - 1)})`
    const declarations = byResult.get(want) ?? []
    if (roll < (this.#core ? 0.64 : 0.78) && declarations.length > 0)
      return this.#call(random.pick(declarations), depth - 1, true)
    return this.#operation(want, depth - 1)
  }

  #operation(want: Want, depth: number): string {
    const random = this.#random
    const both = (kind: Want, operator: string) => `(${this.#expr(kind, depth)} ${operator} ${this.#expr(kind, depth)})`
    switch (want) {
      case 'string':
        if (random.chance(0.2)) return `(${this.#expr('string', depth)} * ${this.#expr('integer', depth)})`
        if (random.chance(0.25)) return `(${this.#expr('string', depth)} + null)`
        if (random.chance(0.3)) {
          const variables = this.#ofKind('string').filter((place) => /^v\d+$/.test(place))
          if (variables.length > 0) return `"<{{ ${random.pick(variables)} }}\\{{é{{${random.pick(variables)}}}>"`
        }
        if (random.chance(0.2)) return this.#closureCall('replace_with', depth)
        return both('string', '+')
      case 'integer':
        return both('integer', random.pick(['+', '-', '*'] as const))
      case 'float':
        if (random.chance(0.2)) return `(${this.#expr('integer', depth)} / ${random.pick([2, -1, 0.5, 7] as const)})`
        return random.chance(0.5)
          ? `(${this.#expr('float', depth)} ${random.pick(['+', '-', '*'] as const)} ${this.#expr('integer', depth)})`
          : both('float', random.pick(['+', '-', '*'] as const))
      case 'boolean': {
        const roll = random.next()
        if (roll < 0.2) return `!${this.#expr('boolean', depth)}`
        if (roll < 0.4) return both('boolean', random.pick(['&&', '||'] as const))
        if (roll < 0.45) return `(${this.#expr('null', depth)} && ${this.#expr('boolean', depth)})`
        if (roll < 0.55) return `exists(${this.#path()})`
        if (roll < 0.75) return `(${this.#any(depth)} ${random.pick(['==', '!='] as const)} ${this.#any(depth)})`
        const kind = random.pick(['integer', 'float', 'string', 'timestamp'] as const)
        return both(kind, random.pick(['<', '<=', '>', '>='] as const))
      }
      case 'array': {
        const roll = random.next()
        if (roll < 0.15) return this.#closureCall(random.pick(['filter', 'map_values'] as const), depth, 'array')
        if (roll < 0.2) return `unnest!(${this.#path()})`
        const items = Array.from({ length: random.below(4) }, () => this.#any(depth))
        return `[${items.join(', ')}]`
      }
      case 'object': {
        const roll = random.next()
        if (roll < 0.15) return both('object', '|')
        if (roll < 0.35) {
          return this.#closureCall(random.pick(['filter', 'map_values', 'map_keys'] as const), depth, 'object')
        }
        const fields = Array.from(
          { length: random.below(4) },
          () => `${textLiteral(random.pick(this.#names))}: ${this.#any(depth)}`,
        )
        return `{ ${fields.join(', ')} }`.replace('{  }', '{}')
      }
      default:
        return this.#literal(want)
    }
  }

  /** An expression that may fail, and otherwise has this kind. */
  #fallible(want: Want, depth: number): string {
    const random = this.#random
    const roll = random.next()
    if (roll < 0.3) {
      if (want === 'float') return `(${this.#expr('float', depth)} / ${this.#expr('integer', depth)})`
      if (want === 'boolean') {
        const operator = random.pick(['<', '<=', '>', '>=', '&&'] as const)
        return `(${this.#any(depth)} ${operator} ${this.#any(depth)})`
      }
      if (want === 'string') return `(${this.#expr('string', depth)} + ${this.#any(depth)})`
    }
    const failing = (byResult.get(want) ?? []).filter((declaration) => declaration.fallible === 'always')
    if (roll < 0.7 && failing.length > 0) return this.#call(random.pick(failing), depth, false)
    return `${guards[want] ?? 'string'}(${this.#any(depth)})`
  }

  #call(declaration: FunctionDeclaration, depth: number, handled: boolean): string {
    const random = this.#random
    let partial = false
    const args: string[] = []
    let keywords = false
    for (const parameter of declaration.parameters) {
      if (parameter.required === false && random.chance(0.65)) {
        keywords = true
        continue
      }
      let value: string
      if (
        parameter.query !== true &&
        parameter.enum === undefined &&
        parameter.static !== true &&
        random.chance(0.15)
      ) {
        value = this.#any(depth - 1)
        partial = true
      } else value = this.#argument(declaration, parameter, depth)
      args.push(keywords || random.chance(0.1) ? `${parameter.name}: ${value}` : value)
    }
    const text = (bang: string) => `${declaration.name}${bang}(${args.join(', ')})`
    if (!handled) return text('')
    return declaration.fallible === 'never' && !partial ? text('') : text('!')
  }

  #argument(declaration: FunctionDeclaration, parameter: Parameter, depth: number): string {
    const random = this.#random
    if (parameter.query === true) return this.#path()
    if (parameter.enum !== undefined) return textLiteral(random.pick(parameter.enum))
    const want = this.#wanted(parameter.kind)
    if (want === undefined) return this.#any(depth - 1)
    const literals = literalsOf.get(declaration.name) ?? []
    if (want === 'string' && literals.length > 0 && random.chance(0.6)) return random.pick(literals)
    return parameter.static === true ? this.#literal(want) : this.#expr(want, depth - 1)
  }

  /** One of the accepted kinds; undefined if all kinds are accepted. */
  #wanted(kind: Kind): Want | undefined {
    if (kind.contains(kinds.any.without(kinds.undefined))) return undefined
    const possible = wants.filter((want) => kind.overlaps(kinds[want]))
    return possible.length === 0 ? undefined : this.#random.pick(possible)
  }

  #closureCall(
    name: 'filter' | 'map_values' | 'map_keys' | 'for_each' | 'replace_with',
    depth: number,
    over?: Want,
  ): string {
    const random = this.#random
    const kind = over ?? random.pick(['array', 'object'] as const)
    const recursive = name.startsWith('map') && random.chance(0.3) ? ', recursive: true' : ''
    const input =
      name === 'replace_with' ? `${this.#expr('string', depth)}, r'${random.pick(regexes)}'` : this.#expr(kind, depth)
    const outer = this.#inClosure
    const body = this.#scoped(() => {
      this.#inClosure = true
      const parameters = name === 'filter' || name === 'for_each' ? ['k', 'v'] : name === 'map_keys' ? ['k'] : ['v']
      if (name === 'replace_with') this.#known.set('v', 'object')
      else {
        this.#known.delete('v')
        if (parameters[0] === 'k') this.#known.set('k', kind === 'object' ? 'string' : 'integer')
      }
      const statements: string[] = []
      while (random.chance(0.35)) statements.push(this.#statement(depth - 1))
      if (random.chance(0.05)) statements.push(`if ${this.#expr('boolean', 0)} { return ${this.#expr('boolean', 0)} }`)
      const results: Record<string, () => string> = {
        filter: () => this.#expr('boolean', depth - 1),
        map_values: () => (random.chance(0.5) ? 'v' : this.#any(depth - 1)),
        map_keys: () => this.#expr('string', depth - 1),
        for_each: () => this.#any(depth - 1),
        replace_with: () => (random.chance(0.5) ? 'upcase(v.string)' : this.#expr('string', depth - 1)),
      }
      statements.push((results[name] as () => string)())
      return `|${parameters.map((parameter) => (random.chance(0.1) ? '_' : parameter)).join(', ')}| { ${statements.join('\n')} }`
    })
    this.#inClosure = outer
    return `${name}(${input}${recursive}) -> ${body}`
  }

  /** Code inside a block, whose variables are not visible after it. */
  #scoped(write: () => string): string {
    const outer = this.#known
    this.#known = new Map(outer)
    const text = write()
    const inner = this.#known
    this.#known = new Map([...outer].filter(([place, kind]) => inner.get(place) === kind))
    return text
  }

  // Statements

  #statement(depth: number): string {
    const random = this.#random
    const roll = random.next()
    if (roll < 0.4) {
      if (random.chance(0.3)) {
        const value = this.#any(depth)
        const place = this.#target(undefined)
        this.#assigned(place, undefined)
        return `${place} = ${value}`
      }
      const want = this.#want()
      const value = this.#expr(want, depth)
      const place = this.#target(want)
      this.#assigned(place, want)
      return `${place} = ${value}`
    }
    if (roll < 0.52) {
      const want = this.#want()
      const value = this.#fallible(want, depth)
      const place = random.chance(0.9) ? this.#target(want) : '_'
      const error = random.chance(0.9) || place === '_' ? this.#target(undefined) : '_'
      this.#assigned(place, want)
      this.#assigned(error, undefined)
      return `${place}, ${error} = ${value}`
    }
    if (roll < 0.64) {
      const predicate = this.#expr('boolean', depth - 1)
      const block = () => this.#scoped(() => this.#statements(depth - 1))
      const otherwise = random.chance(0.5) ? ` else { ${block()} }` : ''
      return `if ${predicate} { ${block()} }${otherwise}`
    }
    if (roll < 0.72) return this.#closureCall('for_each', depth - 1)
    if (roll < 0.8) {
      const path = random.chance(0.8)
        ? this.#path()
        : `${random.pick([...this.#known.keys(), '.a'])}${this.#segment(false)}`
      for (const place of [...this.#known.keys()]) {
        if (place.startsWith(path) || path.startsWith(place)) this.#known.delete(place)
      }
      return `del(${path}${random.chance(0.3) ? `, compact: ${random.pick(['true', 'false'] as const)}` : ''})`
    }
    if (roll < 0.83) {
      const objects = this.#ofKind('object')
      if (objects.length > 0) return `${random.pick(objects)} |= ${this.#expr('object', depth - 1)}`
    }
    if (roll < 0.85) {
      const message = random.chance(0.5) ? ` ${this.#expr('string', 0)}` : ''
      return `if ${this.#expr('boolean', depth - 1)} { abort${message} }`
    }
    if (roll < 0.86) return `set_secret(${this.#expr('string', 0)}, ${this.#expr('string', 0)})`
    if (roll < 0.87 && !this.#inClosure) return `if ${this.#expr('boolean', 0)} { return ${this.#any(0)} }`
    return random.chance(0.5) ? this.#any(depth) : this.#expr(this.#want(), depth)
  }

  #statements(depth: number): string {
    const statements = [this.#statement(depth)]
    while (this.#random.chance(0.3)) statements.push(this.#statement(depth))
    return statements.join('\n')
  }
}
