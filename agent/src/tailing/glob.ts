// Glob patterns for paths: `*` and `?` within one name, `**` over any number of folders, `[a-z]`, `{a,b}`. Besides
// matching a path, a pattern knows its starting folder and whether a folder can lead to a match.
// picomatch is not used, because it does not provide that last check.

export interface Glob {
  /** The deepest folder without a wildcard. */
  readonly base: string
  matches(path: string): boolean
  /** Whether this folder may contain a match at any depth. */
  leadsThrough(directory: string): boolean
}

/** Compiles a pattern; undefined if it has an unclosed bracket or brace. */
export function compileGlob(pattern: string): Glob | undefined {
  const alternatives: Alternative[] = []
  for (const text of expandBraces(pattern) ?? ['[']) {
    const alternative = compileAlternative(text)
    if (alternative === undefined) return undefined
    alternatives.push(alternative)
  }
  const first = alternatives[0] as Alternative
  let base = first.base
  for (const other of alternatives) base = commonFolder(base, other.base)
  return {
    base,
    matches: (path) => alternatives.some((alternative) => alternative.whole.test(path)),
    leadsThrough: (directory) => alternatives.some((alternative) => leads(alternative, directory)),
  }
}

interface Alternative {
  readonly base: string
  readonly whole: RegExp
  /** One test for each name; null stands for `**`. */
  readonly names: readonly (RegExp | null)[]
}

function compileAlternative(text: string): Alternative | undefined {
  const names: (RegExp | null)[] = []
  const parts = text.split('/')
  const fixed: string[] = []
  let wild = false
  let whole = ''
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index] as string
    const last = index === parts.length - 1
    if (part === '**') {
      wild = true
      names.push(null)
      whole += last ? '.*' : '(?:.*/)?'
      continue
    }
    const source = nameSource(part)
    if (source === undefined) return undefined
    if (/[*?[]/.test(part)) wild = true
    if (!wild && !last) fixed.push(part)
    names.push(new RegExp(`^${source}$`, 's'))
    whole += last ? source : `${source}/`
  }
  return { base: fixed.join('/') || (text.startsWith('/') ? '/' : '.'), whole: new RegExp(`^${whole}$`, 's'), names }
}

function leads(alternative: Alternative, directory: string): boolean {
  const parts = directory.split('/')
  for (let index = 0; index < parts.length; index++) {
    const name = alternative.names[index]
    if (name === null) return true
    // The last name of the pattern names the file.
    if (name === undefined || index === alternative.names.length - 1 || !name.test(parts[index] as string)) return false
  }
  return true
}

function nameSource(part: string): string | undefined {
  let source = ''
  for (let at = 0; at < part.length; at++) {
    const char = part[at] as string
    if (char === '*') {
      while (part[at + 1] === '*') at++
      source += '[^/]*'
    } else if (char === '?') source += '[^/]'
    else if (char === '\\' && at + 1 < part.length) source += escaped(part[++at] as string)
    else if (char === '[') {
      const close = part.indexOf(']', at + 2)
      if (close < 0) return undefined
      const body = part.slice(at + 1, close).replace(/[\\\]^]/g, '\\$&')
      source += `[${body.replace(/^(?:!|\\\^)/, '^')}]`
      at = close
    } else source += escaped(char)
  }
  return source
}

function escaped(char: string): string {
  return char.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
}

/** Limit for the number of braces, and for the number of expanded patterns. */
export const maxAlternatives = 1000
const maxBraces = 64

/** The pattern without braces, once for each choice; undefined if a brace is unclosed, or there are too many. */
function expandBraces(pattern: string): string[] | undefined {
  let braces = 0
  for (let at = 0; at < pattern.length; at++) if (pattern.charCodeAt(at) === 0x7b) braces++
  return braces > maxBraces ? undefined : expandFirst(pattern, { left: maxAlternatives })
}

function expandFirst(pattern: string, budget: { left: number }): string[] | undefined {
  const open = pattern.indexOf('{')
  if (open < 0) return --budget.left < 0 ? undefined : [pattern]
  let depth = 0
  let from = open + 1
  const choices: string[] = []
  for (let at = open; at < pattern.length; at++) {
    const char = pattern[at]
    if (char === '{') depth++
    else if (char === ',' && depth === 1) {
      choices.push(pattern.slice(from, at))
      from = at + 1
    } else if (char === '}' && --depth === 0) {
      choices.push(pattern.slice(from, at))
      const expanded: string[] = []
      for (const choice of choices) {
        const rest = expandFirst(pattern.slice(0, open) + choice + pattern.slice(at + 1), budget)
        if (rest === undefined) return undefined
        expanded.push(...rest)
      }
      return expanded
    }
  }
  return undefined
}

function commonFolder(left: string, right: string): string {
  const a = left.split('/')
  const b = right.split('/')
  let same = 0
  while (same < a.length && same < b.length && a[same] === b[same]) same++
  return a.slice(0, same).join('/') || (left.startsWith('/') ? '/' : '.')
}
