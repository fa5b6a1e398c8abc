// Finds constructions that make people read a sentence twice, in comments, texts, names and documents.
// `node --conditions=source agent/src/tools/plain-english.ts [PATH…]` prints them with file and line; by default, for the whole repository.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { parseSync, Visitor } from 'rolldown/utils'

/** A text that is read as a unit, and its position in the file. */
interface Passage {
  readonly text: string
  readonly start: number
}

export interface Finding {
  readonly path: string
  /** From 1. */
  readonly line: number
  readonly found: string
  readonly instead: string
}

interface Rule {
  readonly pattern: RegExp
  readonly instead: string
}

const words: readonly Rule[] = [
  { pattern: /(?<![a-z])(?:tell|tells|telling|told)(?![a-z])/gi, instead: 'report, log, show, return or distinguish' },
  { pattern: /(?<![a-z])shall(?![a-z])/gi, instead: 'must or will' },
  { pattern: /(?<![a-z])mend(?:s|ed|ing)?(?![a-z])/gi, instead: 'fix or repair' },
  { pattern: /\b(?:be|been|is|are|was|were) had\b/gi, instead: 'is available, or a verb that says how it is obtained' },
  { pattern: /\bfor want of\b/gi, instead: 'without, or because … is missing' },
  { pattern: /(?<![a-z])whom?ever(?![a-z])/gi, instead: 'the name of the actor' },
  { pattern: /\bat hand\b/gi, instead: 'current, or available' },
  { pattern: /\bnow and then\b/gi, instead: 'regularly, sometimes, or at intervals' },
  { pattern: /\btak(?:e|es|en|ing) note of\b/gi, instead: 'record' },
  { pattern: /\b(?:for|after|within) so (?:long|many)\b/gi, instead: 'for this long, after this many' },
  { pattern: /\banew\b/gi, instead: 'again, or new' },
  { pattern: /\b(?:tak(?:e|es|en|ing)|took)(?: it| them)? back\b/gi, instead: 'revert, roll back or return' },
  { pattern: /\b(?:go|goes|going|went) on\b(?! and on)/gi, instead: 'continue' },
  { pattern: /\b(?:be|been|is|are|was|were) said\b/gi, instead: 'report, show or state' },
  { pattern: /\bof before\b/gi, instead: 'previous' },
  { pattern: /(?<!\bthere )\b(?:is|are|was|were) none\b(?! of)/gi, instead: 'is not, with the noun' },
  {
    pattern: /(?<!\b(?:there|such) )\b(?:is|are|was|were) no (?!(?:longer|more|less|other|different)\b)(?=[a-z])/gi,
    instead: 'is not a, or has no',
  },
]

/** A sentence whose subject is a clause or a pronoun. Questions may begin this way. */
const opening: Rule = {
  pattern:
    /(?<=^\s*|[.:!?;](?:\s|\\n)+|^\s*(?:[-*>#|]+\s*)+)(?:What|Who|Whoever|Whatever|Whom|Whose|Ones? that)\b(?![^.!]*\?)/gm,
  instead: 'a noun as subject',
}

/** Words at the beginning of an identifier. */
const firstWords: readonly Rule[] = [
  { pattern: /^most\b/gi, instead: 'max' },
  { pattern: /^least\b/gi, instead: 'min' },
  { pattern: /^surroundings\b/gi, instead: 'context' },
  { pattern: /^onlookers?\b/gi, instead: 'observer' },
  { pattern: /^said\b/gi, instead: 'the content: output, message, report' },
]

const camelCase = /(?<=[a-z0-9])(?=[A-Z])/g

/** Splits prose into paragraphs, so that a sentence can span several lines. */
function paragraphs(text: string): Passage[] {
  const passages: Passage[] = []
  for (const match of text.matchAll(/(?:^(?!\s*$).*(?:\n|$))+/gm)) passages.push({ text: match[0], start: match.index })
  return passages
}

/** Merges comments on consecutive lines into one text. All characters keep their positions. */
function commentsOf(source: string, comments: readonly { type: string; start: number; end: number }[]): Passage[] {
  const passages: { text: string; start: number; end: number }[] = []
  for (const { type, start, end } of comments) {
    const raw = source.slice(start, end)
    const text =
      type === 'Line'
        ? raw.replace('//', '  ')
        : raw.replaceAll(/^\/\*+|\*\/$|^\s*\*(?!\/)/gm, (mark) => ' '.repeat(mark.length))
    const before = passages.at(-1)
    const between = before === undefined ? undefined : source.slice(before.end, start)
    if (before !== undefined && type === 'Line' && between !== undefined && /^\n[ \t]*$/.test(between)) {
      before.text += between + text
      before.end = end
    } else passages.push({ text, start, end })
  }
  return passages
}

function passagesOfProgram(path: string, source: string): { prose: Passage[]; names: Passage[] } {
  const { program, comments, errors } = parseSync(path, source)
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`)
  const prose = commentsOf(source, comments)
  const names = new Map<string, Passage>()
  const isTest = path.endsWith('.test.ts')
  const add = (text: string, start: number): void => {
    // Names of tests and of their cases are sentences without a capital letter.
    const isName = isTest && text.includes(' ')
    prose.push({ text: isName ? text.slice(0, 1).toUpperCase() + text.slice(1) : text, start: start + 1 })
  }
  new Visitor({
    Literal(node) {
      if (typeof node.value === 'string') add(node.value, node.start)
    },
    TemplateLiteral(node) {
      // Count each expression as one word.
      add(node.quasis.map(({ value }) => value.cooked ?? value.raw).join('…'), node.start)
    },
    Identifier(node) {
      if (!names.has(node.name)) names.set(node.name, { text: node.name.replaceAll(camelCase, ' '), start: node.start })
    },
    PrivateIdentifier(node) {
      if (!names.has(node.name)) names.set(node.name, { text: node.name.replaceAll(camelCase, ' '), start: node.start })
    },
  }).visit(program)
  return { prose, names: [...names.values()] }
}

/** For other languages: comments from `#` or `//` to the end of the line, and all other text unchanged. */
function passagesOfScript(source: string): Passage[] {
  return paragraphs(
    source.replaceAll(/^([ \t]*)(#+|\/\/)/gm, (_, space: string, mark: string) => space + ' '.repeat(mark.length)),
  )
}

export function readAloud(path: string, source: string): Finding[] {
  const extension = extname(path)
  const program = /^\.(?:ts|m?js)$/.test(extension) ? passagesOfProgram(path, source) : undefined
  const prose = program?.prose ?? (extension === '.md' ? paragraphs(source) : passagesOfScript(source))
  const findings: Finding[] = []
  const search = ({ text, start }: Passage, { pattern, instead }: Rule): void => {
    for (const match of text.matchAll(pattern)) {
      const line = source.slice(0, start + match.index).split('\n').length
      const found = text
        .slice(match.index, match.index + 70)
        .replaceAll(/\s+/g, ' ')
        .trim()
      findings.push({ path, line, found, instead })
    }
  }
  for (const passage of prose) for (const rule of [...words, opening]) search(passage, rule)
  for (const name of program?.names ?? []) for (const rule of [...words, ...firstWords]) search(name, rule)
  return findings.sort((a, b) => a.line - b.line)
}

/** Recordings and standards were written by others, and the test of this module contains findings on purpose. */
const foreign =
  /^e2e\/conformance\/|\/testdata\/|^agent\/src\/testing\/requirements\/|plain-english\.test\.ts$|package-lock|\.snap$/

/** Files of the repository that people read, as paths relative to the current folder. */
export function textFiles(paths: readonly string[] = [], cwd = process.cwd()): string[] {
  const listing = ['ls-files', '-co', '--exclude-standard', '--', ...paths]
  const tracked = execFileSync('git', listing, { encoding: 'utf8', cwd })
  const readable = /\.(?:ts|mjs|js|md|ya?ml|sh|inc|py|go|c|java|lua|tpl|txt)$|Dockerfile$|^\.ci\/(?:release|run)$/
  return tracked.split('\n').filter((path) => readable.test(path) && !foreign.test(path))
}

if (import.meta.main) {
  const findings = textFiles(process.argv.slice(2)).flatMap((path) => readAloud(path, readFileSync(path, 'utf8')))
  for (const { path, line, found, instead } of findings) console.log(`${path}:${line}: "${found}" (write ${instead})`)
  if (findings.length > 0) process.exitCode = 1
}
