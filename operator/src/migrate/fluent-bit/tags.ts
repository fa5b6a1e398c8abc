// Tags of records. Events have no tags, so the converter decides which sections match, with samples of the tags that an input produces. A
// pattern that matches only some of them becomes a filter on the tag, which a program builds from the file of the record or its pod.

import { lastValue, listOf, type Section } from './sections.ts'
import { globPattern, hostText, pattern } from './text.ts'

export interface Tag {
  /** The tag as written, with placeholders for parts that depend on the record. */
  readonly text: string
  /** Example tags that differ as much as possible; a single one if all records have the same tag. */
  readonly samples: readonly string[]
  /** Lines that set the variable `tag`; undefined if a program cannot determine the tag. */
  readonly program: readonly string[] | undefined
  /** Whether `*` in the text is the path of the log of a pod. */
  readonly isOfPods?: boolean
}

export const fixedTag = (text: string): Tag => ({
  text,
  samples: [text],
  program: [`tag = ${hostText(text)}`],
})

/** An expression for the path of a pod's log under which the kubelet links it. */
export const podLogPath = (root: '.' | '%') =>
  `"/var/log/containers/" + (string(${root}orchestrator.pod_name) ?? "") + "_" + (string(${root}orchestrator.pod_namespace) ?? "") + "_" + (string(${root}orchestrator.container_name) ?? "") + "-" + replace(string(${root}orchestrator.container_id) ?? "", r'^.*://', "") + ".log"`

/** Lines that set the variables of a condition: the path under which the kubelet links the log of a pod, and the path of the file itself. */
export const withPaths = (condition: string): string =>
  [
    ...(/\(name,/.test(condition) ? [`name = ${podLogPath('.')}`] : []),
    ...(/\(path,/.test(condition) ? ['path = string(.file) ?? ""'] : []),
    condition,
  ].join('\n')

/** The variable of `withPaths` for the files of a glob. */
export const variableOf = (glob: string): 'name' | 'path' => (glob.startsWith('/var/log/containers/') ? 'name' : 'path')

/** The variable for a pattern, which applies to the paths that other patterns find unless it begins with a path. */
const variableAmong = (glob: string, found: readonly string[]): 'name' | 'path' => {
  const isOfLinks = found.length > 0 && found.every((each) => variableOf(each) === 'name')
  return !glob.startsWith('/') && isOfLinks ? 'name' : variableOf(glob)
}

/** An expression for the path under which an agent finds the log of a pod: the link of the kubelet, if its patterns name links. */
export const foundPath = (globs: readonly string[]): string =>
  globs.length > 0 && globs.every((glob) => variableOf(glob) === 'name') ? podLogPath('.') : '.file'

export const isPodLog = (path: string) => /^\/var\/log\/(containers|pods)\//.test(path)

export const isAllPods = (glob: string) => /^\/var\/log\/(containers|pods)\/[*/]+(\.log)?$/.test(glob)

/**
 * Whether a pod's log is one of these files.
 * @param found the patterns that find files
 */
export const isAmong = (globs: readonly string[], found: readonly string[] = []): string =>
  globs
    .map((glob) => `is_object(parse_grok(${variableAmong(glob, found)}, ${pattern(globPattern(glob))}) ?? null)`)
    .join(' || ')

/** A condition that selects pods by the paths of their logs; undefined if it takes all. */
export function podsAt(wanted: readonly string[], unwanted: readonly string[]): string | undefined {
  const tests = [
    ...(wanted.length === 0 || wanted.some(isAllPods) ? [] : [`(${isAmong(wanted)})`]),
    ...(unwanted.length === 0 ? [] : [`!(${isAmong(unwanted, wanted)})`]),
  ]
  return tests.length === 0 ? undefined : withPaths(tests.join(' && '))
}

const names = [`a-1_b_c-${'0123456789abcdef'.repeat(4)}`, `zz-9_yy_xx-${'fedcba9876543210'.repeat(4)}`]

/** Whether the tags of an input contain the path of the file. */
export const isOfFile = (section: Section) =>
  (lastValue(section, 'tag') ?? '').includes('*') || lastValue(section, 'tag_regex') !== undefined

export function tagOf(input: Section): Tag {
  const text = lastValue(input, 'tag') ?? `${lastValue(input, 'name')}.0`
  if (!isOfFile(input)) return fixedTag(text)
  const globs = listOf(input, 'path')
  const files = (globs.length === 0 ? ['*'] : globs).flatMap((glob) => names.map((name) => glob.replaceAll('*', name)))
  const isOfPods = globs.every((glob) => glob.startsWith('/var/log/containers/'))
  const path = `path = ${isOfPods ? podLogPath('%') : 'string(%file) ?? ""'}`
  const regex = lastValue(input, 'tag_regex')
  return regex === undefined ? { ...ofPath(text, files, path), isOfPods } : ofRegex(text, files, path, regex)
}

function ofPath(text: string, files: readonly string[], path: string): Tag {
  const [before = '', after = ''] = text.split('*')
  const parts = [...literal(before), 'replace(replace(path, r\'^/\', ""), "/", ".")', ...literal(after)]
  return {
    text,
    samples: files.map((file) => text.replace('*', () => file.replace(/^\//, '').replaceAll('/', '.'))),
    program: [path, `tag = ${parts.join(' + ')}`],
  }
}

const literal = (text: string) => (text === '' ? [] : [hostText(text)])

/** A tag with the placeholder `<name>` for a group of an expression that matches the path. */
function ofRegex(text: string, files: readonly string[], path: string, regex: string): Tag {
  const like = new RegExp(rubyLike(regex))
  // The expression may match only files with other names than the samples. Then its groups are unknown, and differ.
  const samples = files.map((file, index) => {
    const groups = like.exec(file)?.groups
    return text.replace(/<(\w+)>/g, (_, name: string) =>
      groups === undefined ? `${index}-${name}` : (groups[name] ?? ''),
    )
  })
  const parts = text
    .split(/(<\w+>)/)
    .flatMap((part) => (/^<\w+>$/.test(part) ? [`(string(parts.${part.slice(1, -1)}) ?? "")`] : literal(part)))
  return {
    text,
    samples,
    program: [path, `parts = object(parse_grok(path, ${pattern(regex)}) ?? null) ?? {}`, `tag = ${parts.join(' + ')}`],
  }
}

export type Matched = 'all' | 'some' | 'none'

/** Whether a filter or an output matches all, some or none of the records of a tag. */
export function matchedBy(section: Section, tag: Tag): Matched {
  const match = lastValue(section, 'match')
  const regex = lastValue(section, 'match_regex')
  if (match === undefined && regex === undefined) return 'none'
  const test = new RegExp(match === undefined ? rubyLike(regex ?? '') : globPattern(match))
  const taken = tag.samples.filter((sample) => test.test(sample)).length
  if (taken === tag.samples.length) {
    // A sample shows only some of the values of an unknown part. If an expression also depends on that part, the program tests it.
    const isCertain = match !== undefined || tag.samples.length === 1 || tag.program === undefined
    return isCertain || isOpen(regex ?? '', sharedStart(tag.samples)) ? 'all' : 'some'
  }
  if (tag.samples.length === 1) return 'none'
  if (taken > 0) return 'some'
  // A pattern with another prefix matches none of them; otherwise it may match some.
  const fixed = sharedStart(tag.samples)
  const start = match === undefined ? startOf(regex ?? '') : (match.split('*')[0] ?? '')
  return start.startsWith(fixed) || fixed.startsWith(start) ? 'some' : 'none'
}

/** Sections, and whether they match all records of a tag. */
export type Matches = ReadonlyMap<Section, Exclude<Matched, 'none'>>

export function matchesOf(tag: Tag, sections: readonly Section[]): Matches {
  return new Map(
    sections.flatMap((section) => {
      const taken = matchedBy(section, tag)
      return taken === 'none' ? [] : [[section, taken] as const]
    }),
  )
}

/** Whether an expression matches all texts with a beginning. */
const isOpen = (given: string, start: string) => {
  // An expression that ends in any text matches all ends.
  const regex = given.replace(/\.\*(\)?)\$$/, '.*$1')
  return !/\\[zZbB]|\(\?[=!<]|\$/.test(regex) && new RegExp(rubyLike(regex)).test(start)
}

/** The text with which all matches of an expression begin; empty if it is unknown. */
function startOf(regex: string): string {
  const plain = regex.replace(/^\/(.*)\/$/s, '$1')
  if (!plain.startsWith('^')) return ''
  let depth = 0
  for (const [sign] of plain.matchAll(/\\.|\[(?:\\.|[^\]\\])*\]|[()|]/gs)) {
    if (sign === '(') depth++
    else if (sign === ')') depth--
    else if (sign === '|' && depth === 0) return ''
  }
  const literal = /^\^((?:(?:[\w-]|\\[./-])(?![*?{+]))*)/.exec(plain)?.[1] ?? ''
  return literal.replaceAll('\\', '')
}

function sharedStart(texts: readonly string[]): string {
  const [first = ''] = texts
  let length = 0
  while (length < first.length && texts.every((text) => text[length] === first[length])) length++
  return first.slice(0, length)
}

/** A condition on the variable `tag`. */
export function tagTest(section: Section): string {
  const match = lastValue(section, 'match')
  const regex = match === undefined ? (lastValue(section, 'match_regex') ?? '') : globPattern(match)
  return `is_object(parse_grok(tag, ${pattern(regex)}) ?? null)`
}

/** Converts a Ruby expression to JavaScript, as far as tags need it. */
export function rubyLike(text: string): string {
  const plain = text
    .replace(/^\/(.*)\/[a-z]*$/s, '$1')
    .replaceAll('\\A', '^')
    .replace(/\\[zZ]/g, '$')
    .replaceAll('\\h', '[0-9a-fA-F]')
  try {
    new RegExp(plain)
    return plain
  } catch {
    // An invalid expression matches no sample, and the program of its filter becomes a gap.
    return '(?!)'
  }
}
