// Settings with line numbers. YAML files and Alloy files are read into the same form.

export interface Place {
  readonly file: string
  /** From 1. */
  readonly line: number
}

export type Scalar = string | number | boolean | null

export interface Tree extends Place {
  readonly value: Scalar | readonly Tree[] | ReadonlyMap<string, Tree>
  /** Whether the text is a number of YAML, with the digits that it has there. */
  readonly isNumber?: true
}

export function isMap(tree: Tree | undefined): tree is Tree & { readonly value: ReadonlyMap<string, Tree> } {
  return tree?.value instanceof Map
}

export function isList(tree: Tree | undefined): tree is Tree & { readonly value: readonly Tree[] } {
  return Array.isArray(tree?.value)
}

/** The value at a path of names; undefined if there is none. */
export function below(tree: Tree | undefined, ...names: readonly string[]): Tree | undefined {
  let current = tree
  for (const name of names) current = isMap(current) ? current.value.get(name) : undefined
  return current
}

/** A scalar as text; otherwise undefined. */
export function textOf(tree: Tree | undefined): string | undefined {
  const value = tree?.value
  return value === undefined || value === null || typeof value === 'object' ? undefined : String(value)
}

export function itemsOf(tree: Tree | undefined): readonly Tree[] {
  return isList(tree) ? tree.value : []
}

/** The texts of a list. A single text is a list with one item. */
export function textsOf(tree: Tree | undefined): readonly string[] {
  if (isList(tree)) return tree.value.flatMap((item) => textOf(item) ?? [])
  const text = textOf(tree)
  return text === undefined ? [] : [text]
}

/** Names with their texts; empty if a name has no text. */
export function pairsOf(tree: Tree | undefined): readonly (readonly [string, string, Tree])[] {
  return isMap(tree) ? [...tree.value].map(([name, item]) => [name, textOf(item) ?? '', item] as const) : []
}

export function flagOf(tree: Tree | undefined): boolean | undefined {
  const text = textOf(tree)?.toLowerCase()
  return text === undefined ? undefined : text === 'true' || text === 'yes' || text === 'on'
}

/** Parses a Go duration, such as `1h30m`, to milliseconds; undefined if it is not valid. */
export function millisecondsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d+$/.test(text)) return text === '0' ? 0 : undefined
  const units: Readonly<Record<string, number>> = {
    ns: 1e-6,
    us: 1e-3,
    µs: 1e-3,
    ms: 1,
    s: 1000,
    m: 60_000,
    h: 3_600_000,
    d: 86_400_000,
    w: 604_800_000,
    y: 31_536_000_000,
  }
  if (!/^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d|w|y))+$/.test(text)) return undefined
  let sum = 0
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|[smhdwy])/g)) {
    sum += Number(number) * (units[unit ?? ''] ?? 0)
  }
  return sum
}

/** Parses a size, such as `8kb` or `1MiB`, to bytes; undefined if it is not valid. */
export function bytesOf(text: string | undefined): number | undefined {
  const found = /^(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?$/i.exec(text?.trim() ?? '')
  if (found === null) return undefined
  return Math.round(Number(found[1]) * 1024 ** ' kmgt'.indexOf(found[2]?.toLowerCase() || ' '))
}

/** A tree without line numbers. */
export function plain(tree: Tree): unknown {
  if (isList(tree)) return tree.value.map(plain)
  return isMap(tree) ? Object.fromEntries([...tree.value].map(([key, item]) => [key, plain(item)])) : tree.value
}
