// Tag patterns, which decide the elements that events reach. Tags of pods differ from pod to pod. A pattern that matches only some of
// them becomes a condition on the names that make up the tag.

import { textLiteral } from '@penstock/agent/config'
import { podLogPath } from '../fluent-bit/tags.ts'

/** A tag: fixed, or with `*` for the part that comes from the path of a file. */
export interface Tag {
  readonly text: string
  /** Whether `*` is the path of a pod log. */
  readonly isOfPods: boolean
  /** Whether `*` is the path of a file, which records keep in `%file`. */
  readonly isOfFile?: boolean | undefined
  /** Examples of what `*` stands for, if they differ from paths of links to pod logs. */
  readonly samples?: readonly string[] | undefined
  /** Whether records keep the tag in `%tag`, and its parts in `%tag_parts`. */
  readonly isKept?: true
}

/** A tag that nothing is known about, and that records keep. */
export const anyTag: Tag = { text: '*', isOfPods: false, isKept: true }

/** Whether a program can build the tag. */
export const isKnown = ({ text, isOfPods, isOfFile, isKept }: Tag) =>
  !text.includes('*') || isOfPods || isOfFile === true || isKept === true

/** Space-separated patterns as one regular expression. */
export function patternOf(patterns: string): string {
  const words = patterns.trim().split(/\s+/)
  return `^(?:${words.map(wordPattern).join('|')})$`
}

const expression = /^\/(.+)\/$/

function wordPattern(word: string): string {
  const regex = expression.exec(word)?.[1]
  if (regex !== undefined) return `(?:${regex})`
  let text = ''
  for (let at = 0; at < word.length; at++) {
    const rest = word.slice(at)
    const isFirst = at === 0 || word[at - 1] === '.'
    if (rest.startsWith('.**') && (rest.length === 3 || rest[3] === '.')) {
      text += '(?:\\..*)?'
      at += 2
    } else if (isFirst && rest.startsWith('**.')) {
      text += '(?:.*\\.)?'
      at += 2
    } else if (rest.startsWith('**')) {
      text += '.*'
      at++
    } else if (word[at] === '*') text += '[^.]*'
    else if (word[at] === '{') text += '(?:'
    else if (word[at] === '}') text += ')'
    else if (word[at] === ',') text += '|'
    else text += (word[at] as string).replace(/[\\^$.+?()[\]|/]/g, '\\$&')
  }
  return text
}

/** Sample paths for `*` that differ as much as possible. */
const linkSamples = [
  'var.log.containers.a-1_b_c-0123456789abcdef.log',
  'var.log.containers.zz-9_yy_xx-fedcba9876543210.log',
]

/** The same for the files behind these links. */
export const podFileSamples: readonly string[] = [
  'var.log.pods.b_a-1_01234567-89ab-cdef-0123-456789abcdef.c.0.log',
  'var.log.pods.yy_zz-9_fedcba98-7654-3210-fedc-ba9876543210.xx.7.log',
]

export type Match = 'all' | 'none' | 'some'

/** The expression for patterns; undefined if it is one of Ruby that JavaScript cannot read. */
function regexOf(patterns: string): RegExp | undefined {
  try {
    return new RegExp(patternOf(patterns))
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Whether a pattern matches all, some or no events of a tag. */
export function matchOf(tag: Tag, patterns: string): Match {
  const regex = regexOf(patterns)
  // A program reads the dialect of Ruby.
  if (regex === undefined) return 'some'
  if (!tag.text.includes('*')) return regex.test(tag.text) ? 'all' : 'none'
  const { samples = linkSamples } = tag
  const found = samples.filter((sample) => regex.test(tag.text.replace('*', sample))).length
  if (found === samples.length) return 'all'
  const fixed = tag.text.split('*')[0] as string
  const isNear = patterns
    .trim()
    .split(/\s+/)
    .some((word) => {
      if (expression.test(word)) return true
      const start = word.split(/[*{]/)[0] as string
      return start.startsWith(fixed) || fixed.startsWith(start)
    })
  return isNear ? 'some' : 'none'
}

/** A program that puts the tag of an event into the variable `tag`. */
export function tagProgram(tag: Tag): string {
  const [before = '', after = ''] = tag.text.split('*')
  if (tag.isKept) return 'tag = string(%tag) ?? ""'
  const path = tag.isOfPods ? podLogPath('%') : 'string(%file) ?? ""'
  const name = `replace(replace(${path}, r'^/', ""), "/", ".")`
  if (!tag.text.includes('*')) return `tag = ${textLiteral(tag.text)}`
  return `tag = ${[...(before === '' ? [] : [textLiteral(before)]), name, ...(after === '' ? [] : [textLiteral(after)])].join(' + ')}`
}
