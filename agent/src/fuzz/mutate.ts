// Mutated programs: valid programs with hostile changes, which remove, duplicate, swap or insert tokens and characters.

import { tokenize } from '../remap/lexer.ts'
import type { Random } from '../testing/random.ts'
import { examples, randomProgram } from './programs.ts'

const pieces: readonly string[] = [
  '(',
  ')',
  '{',
  '}',
  '[',
  ']',
  ',',
  ';',
  ':',
  '.',
  '%',
  '->',
  '=',
  '|=',
  '|',
  '_',
  '!',
  '+',
  '- 1',
  '??',
  '&&',
  '==',
  '\n',
  '\r\n',
  '"',
  "'",
  "s'",
  "r'(?<a'",
  "r'(a'",
  "t'",
  "t'2024-99-99'",
  '"{{',
  '"{{ }}"',
  '"\\u{d800}"',
  '"\\u{110000}"',
  '"\\q"',
  '#',
  'if',
  'else',
  'abort',
  'return',
  'null',
  '9223372036854775808',
  '-9223372036854775809',
  '1__2.',
  '.[9]',
  '.__proto__',
  '__proto__',
  'constructor',
  'toString!(',
  'hasOwnProperty(',
  'ok, err =',
  'for',
  '\u0000',
  '\ufeff',
  '\u2028',
  '😀',
  'é',
]

export function damagedProgram(random: Random): string {
  let source = random.chance(0.5) ? random.pick(examples) : randomProgram(random, false)
  const count = 1 + random.below(4)
  for (let index = 0; index < count; index++) source = damaged(source, random)
  // Sources are UTF-8, so they cannot contain a lone surrogate.
  return source.toWellFormed()
}

function damaged(source: string, random: Random): string {
  const tokens = tokensOf(source)
  const at = tokens.length === 0 ? 0 : random.below(tokens.length)
  const token = tokens[at] ?? { start: 0, end: 0 }
  const other = tokens.length === 0 ? token : random.pick(tokens)
  const text = source.slice(token.start, token.end)
  const replaced = (piece: string) => source.slice(0, token.start) + piece + source.slice(token.end)
  switch (random.below(7)) {
    case 0:
      return replaced('')
    case 1:
      return replaced(`${text} ${text}`)
    case 2:
      return replaced(source.slice(other.start, other.end))
    case 3:
      return replaced(random.pick(pieces))
    case 4: {
      const position = random.below(source.length + 1)
      return source.slice(0, position) + random.pick(pieces) + source.slice(position)
    }
    case 5:
      return source.slice(0, random.below(source.length + 1))
    default: {
      const position = random.below(source.length + 1)
      return source.slice(0, position) + source.slice(position + 1 + random.below(3))
    }
  }
}

/** The tokens of a program, or its words if it has none. */
function tokensOf(source: string): { start: number; end: number }[] {
  try {
    return tokenize(source).filter((token) => token.end > token.start)
  } catch {
    // Split text that the lexer rejects at blanks.
    return Array.from(source.matchAll(/\S+/g), (match) => ({ start: match.index, end: match.index + match[0].length }))
  }
}
