// Parses regular expressions in JavaScript syntax into trees, for patterns that one pass over the text can match. Back-references have
// no tree. A set always stands for one character; the engine itself decides its members, so both agree on classes.

export type RegexNode =
  | { readonly kind: 'set'; readonly set: CharacterSet }
  | { readonly kind: 'assertion'; readonly source: string; readonly flags: string; readonly look?: FarLook }
  | { readonly kind: 'sequence'; readonly items: readonly RegexNode[] }
  | { readonly kind: 'choice'; readonly options: readonly RegexNode[] }
  | { readonly kind: 'group'; readonly index: number; readonly body: RegexNode }
  | RepeatNode

/** The pattern of a look-around that reads more than `maxLook` characters or has captures. */
export interface FarLook {
  readonly tree: RegexTree
  /** Its groups: from the first number to the second, exclusive. */
  readonly groups: readonly [number, number]
}

export interface RepeatNode {
  readonly kind: 'repeat'
  readonly body: RegexNode
  readonly min: number
  readonly max: number
  readonly lazy: boolean
  /** Its groups: from the first number to the second, exclusive. */
  readonly groups: readonly [number, number]
}

export interface RegexTree {
  readonly root: RegexNode
  /** Including the whole match. */
  readonly groupCount: number
  readonly names: readonly (readonly [string, number])[]
  /** Whether the text is read by code points. */
  readonly unicode: boolean
  readonly sets: readonly CharacterSet[]
  readonly looks: readonly FarLook[]
}

/** The set of characters for a part of a pattern. */
export class CharacterSet {
  readonly source: string
  /** Membership of the ASCII characters. */
  readonly ascii = new Uint8Array(128)
  readonly #pattern: RegExp
  /** Cache of looked-up codes, doubled, plus 1 for members; each slot holds the last code. */
  #known: Uint32Array | undefined

  constructor(source: string, flags: string) {
    this.source = source
    this.#pattern = new RegExp(`^(?:${source})$`, flags)
    for (let code = 0; code < 128; code++) this.ascii[code] = this.#pattern.test(String.fromCharCode(code)) ? 1 : 0
  }

  has(code: number): boolean {
    if (code < 128) return this.ascii[code] === 1
    this.#known ??= new Uint32Array(1024)
    const place = code & 1023
    const known = this.#known[place] as number
    if (known >>> 1 === code) return (known & 1) === 1
    const member = this.#pattern.test(String.fromCodePoint(code))
    this.#known[place] = code * 2 + (member ? 1 : 0)
    return member
  }
}

/** Maximum length of a match of the node; may be Infinity. */
export function longest(node: RegexNode): number {
  switch (node.kind) {
    case 'set':
      return 1
    case 'assertion':
      return 0
    case 'sequence':
      return node.items.reduce((sum, item) => sum + longest(item), 0)
    case 'choice':
      return node.options.reduce((max, option) => Math.max(max, longest(option)), 0)
    case 'group':
      return longest(node.body)
    case 'repeat': {
      const once = longest(node.body)
      return once === 0 || node.max === 0 ? 0 : once * node.max
    }
  }
}

/** Whether the node can match without reading a character. */
export function nullable(node: RegexNode): boolean {
  switch (node.kind) {
    case 'set':
      return false
    case 'assertion':
      return true
    case 'sequence':
      return node.items.every(nullable)
    case 'choice':
      return node.options.some(nullable)
    case 'group':
      return nullable(node.body)
    case 'repeat':
      return node.min === 0 || nullable(node.body)
  }
}

/** Whether every match begins at the start of the text. */
export function anchored(node: RegexNode): boolean {
  switch (node.kind) {
    case 'set':
      return false
    case 'assertion':
      return node.source === '^' && !node.flags.includes('m')
    case 'sequence': {
      for (const item of node.items) {
        if (anchored(item)) return true
        if (item.kind !== 'assertion') return false
      }
      return false
    }
    case 'choice':
      return node.options.every(anchored)
    case 'group':
      return anchored(node.body)
    case 'repeat':
      return node.min > 0 && anchored(node.body)
  }
}

const maxLook = 64

/** Deeper nesting is rejected, so that recursion over a tree cannot overflow the stack. */
const maxDepth = 250

class Unsupported extends Error {}

/** The tree of a valid pattern; undefined if one pass over the text cannot match it. */
export function parseRegex(source: string, flags: string): RegexTree | undefined {
  try {
    return new Parser(source, flags).parse()
  } catch (error) {
    if (error instanceof Unsupported) return undefined
    throw error
  }
}

class Parser {
  readonly #source: string
  readonly #classFlags: string
  readonly #unicode: boolean
  readonly #nested: boolean
  readonly #sets = new Map<string, CharacterSet>()
  readonly #names: (readonly [string, number])[] = []
  readonly #looks: FarLook[] = []
  #insensitive: boolean
  #at = 0
  #groups = 1
  #depth = 0

  constructor(source: string, flags: string) {
    this.#source = source
    this.#classFlags = flags.replace(/[^msuv]/g, '')
    this.#unicode = /[uv]/.test(flags)
    this.#nested = flags.includes('v')
    this.#insensitive = flags.includes('i')
  }

  parse(): RegexTree {
    const root = this.#choice()
    if (this.#at < this.#source.length) throw new Unsupported()
    return {
      root,
      groupCount: this.#groups,
      names: this.#names,
      unicode: this.#unicode,
      sets: [...this.#sets.values()],
      looks: this.#looks,
    }
  }

  #choice(): RegexNode {
    if (++this.#depth > maxDepth) {
      throw new SyntaxError(`exceeded the maximum number of nested parentheses/brackets (${maxDepth})`)
    }
    const options: RegexNode[] = []
    for (;;) {
      options.push(this.#sequence())
      if (this.#source[this.#at] !== '|') break
      this.#at++
    }
    this.#depth--
    return options.length === 1 ? (options[0] as RegexNode) : { kind: 'choice', options }
  }

  #sequence(): RegexNode {
    const items: RegexNode[] = []
    while (this.#at < this.#source.length && this.#source[this.#at] !== '|' && this.#source[this.#at] !== ')') {
      const before = this.#groups
      let node = this.#atom()
      const quantifier = /^(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})(\??)/.exec(this.#source.slice(this.#at, this.#at + 50))
      if (quantifier !== null) {
        const [text, sign, from, comma, to, lazy] = quantifier
        this.#at += text.length
        node = {
          kind: 'repeat',
          body: node,
          min: sign === undefined ? Number(from) : sign === '+' ? 1 : 0,
          max:
            sign === undefined
              ? comma === undefined
                ? Number(from)
                : to === ''
                  ? Number.POSITIVE_INFINITY
                  : Number(to)
              : sign === '?'
                ? 1
                : Number.POSITIVE_INFINITY,
          lazy: lazy !== '',
          groups: [before, this.#groups],
        }
      }
      items.push(node)
    }
    return items.length === 1 ? (items[0] as RegexNode) : { kind: 'sequence', items }
  }

  #flags(): string {
    return this.#classFlags + (this.#insensitive ? 'i' : '')
  }

  #set(source: string): RegexNode {
    const key = `${this.#insensitive} ${source}`
    let set = this.#sets.get(key)
    if (set === undefined) {
      set = new CharacterSet(source, this.#flags())
      this.#sets.set(key, set)
    }
    return { kind: 'set', set }
  }

  #atom(): RegexNode {
    const from = this.#at
    const char = this.#source[from] as string
    if (char === '(') return this.#group()
    if (char === '^' || char === '$') {
      this.#at++
      return { kind: 'assertion', source: char, flags: this.#flags() }
    }
    if (char === '[') {
      let depth = 0
      for (; this.#at < this.#source.length; this.#at++) {
        const inside = this.#source[this.#at]
        if (inside === '\\') this.#at++
        else if (inside === '[' && (this.#nested || depth === 0)) depth++
        else if (inside === ']' && --depth === 0) break
      }
      this.#at++
      return this.#set(this.#source.slice(from, this.#at))
    }
    if (char === '\\') return this.#escape()
    this.#at += this.#unicode && (this.#source.codePointAt(from) as number) > 0xffff ? 2 : 1
    return this.#set(this.#source.slice(from, this.#at))
  }

  #escape(): RegexNode {
    const rest = this.#source.slice(this.#at, this.#at + 60)
    if (/^\\[1-9]|^\\k</.test(rest)) throw new Unsupported()
    const text = (
      this.#unicode
        ? /^\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|.)/su
        : /^\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|0[0-7]*|.)/s
    ).exec(rest)?.[0]
    if (text === undefined || text === '\\q') throw new Unsupported()
    this.#at += text.length
    if (text === '\\b' || text === '\\B') return { kind: 'assertion', source: text, flags: this.#flags() }
    return this.#set(text)
  }

  #group(): RegexNode {
    const from = this.#at
    const open = /^\((?:\?(?::|(?<look><?[=!])|<(?<name>[^>]*)>|(?<modifiers>-?i):))?/.exec(this.#source.slice(from))
    const { look, name, modifiers } = open?.groups ?? {}
    if (open === null || (open[0] === '(' && this.#source[from + 1] === '?')) throw new Unsupported()
    this.#at += open[0].length
    const before = this.#insensitive
    const groups = this.#groups
    let index: number | undefined
    if (open[0] === '(' || name !== undefined) {
      index = this.#groups++
      if (name !== undefined) this.#names.push([name, index])
    }
    if (modifiers !== undefined) this.#insensitive = modifiers === 'i'
    const body = this.#choice()
    this.#insensitive = before
    if (this.#source[this.#at] !== ')') throw new Unsupported()
    this.#at++
    const source = this.#source.slice(from, this.#at)
    if (look !== undefined && (longest(body) > maxLook || this.#groups > groups)) {
      // Tries one start position.
      const root: RegexNode = { kind: 'sequence', items: [{ kind: 'assertion', source: '^', flags: '' }, body] }
      const sets = [...this.#sets.values()]
      const tree = { root, groupCount: 1, names: [], unicode: this.#unicode, sets, looks: [] }
      const far: FarLook = { tree, groups: [groups, this.#groups] }
      this.#looks.push(far)
      return { kind: 'assertion', source, flags: this.#flags(), look: far }
    }
    // A group that contains only assertions is one assertion.
    if (look !== undefined || (index === undefined && isAssertion(body))) {
      return { kind: 'assertion', source, flags: this.#flags() }
    }
    return index === undefined ? body : { kind: 'group', index, body }
  }
}

function isAssertion(node: RegexNode): boolean {
  if (node.kind === 'assertion') return node.source !== '^' && node.source !== '$' && node.look === undefined
  if (node.kind === 'choice') return node.options.every(isAssertion)
  return node.kind === 'sequence' && node.items.length > 0 && node.items.every(isAssertion)
}
