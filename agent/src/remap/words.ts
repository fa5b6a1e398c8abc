// Splits identifiers into words, for the functions that convert between their styles.

import { defineFunction, type FunctionDeclaration } from './function.ts'
import { kinds } from './kind.ts'
import { originalCase } from './parameters.ts'

/** Word boundaries in an identifier without separators. */
export const wordBoundaries = [
  'lower_upper',
  'upper_lower',
  'acronym',
  'lower_digit',
  'upper_digit',
  'digit_lower',
  'digit_upper',
] as const

type Boundary = (typeof wordBoundaries)[number]

interface Style {
  readonly separators: string
  readonly boundaries: ReadonlySet<string>
}

// A lower-case letter after an upper-case one usually continues a word.
const allBoundaries = new Set<string>(wordBoundaries.filter((boundary) => boundary !== 'upper_lower'))
const nowhere = new Set<string>()

const styles: Readonly<Record<string, Style>> = {
  'kebab-case': { separators: '-', boundaries: nowhere },
  snake_case: { separators: '_', boundaries: nowhere },
  SCREAMING_SNAKE: { separators: '_', boundaries: nowhere },
  camelCase: { separators: '', boundaries: allBoundaries },
  PascalCase: { separators: '', boundaries: allBoundaries },
}

/** The words of a text in a style; in any style if undefined. */
export function splitWords(text: string, style: string | undefined, excluded: ReadonlySet<string> = nowhere): string[] {
  const { separators, boundaries } = styles[style ?? ''] ?? { separators: '-_ ', boundaries: allBoundaries }
  const characters = Array.from(text)
  const words: string[] = []
  let word = ''
  const end = (): void => {
    if (word !== '') words.push(word)
    word = ''
  }
  const ends = (boundary: Boundary): boolean => boundaries.has(boundary) && !excluded.has(boundary)
  for (let index = 0; index < characters.length; index++) {
    const character = characters[index] as string
    if (separators.includes(character)) {
      end()
      continue
    }
    if (word !== '') {
      const before = sort(characters[index - 1] as string)
      const now = sort(character)
      const after = characters[index + 1]
      if (
        (before === 'lower' && now === 'upper' && ends('lower_upper')) ||
        (before === 'upper' && now === 'lower' && ends('upper_lower')) ||
        (before === 'lower' && now === 'digit' && ends('lower_digit')) ||
        (before === 'upper' && now === 'digit' && ends('upper_digit')) ||
        (before === 'digit' && now === 'lower' && ends('digit_lower')) ||
        (before === 'digit' && now === 'upper' && ends('digit_upper')) ||
        (before === 'upper' && now === 'upper' && after !== undefined && sort(after) === 'lower' && ends('acronym'))
      ) {
        end()
      }
    }
    word += character
  }
  end()
  return words
}

function sort(character: string): 'upper' | 'lower' | 'digit' | 'other' {
  if (character >= '0' && character <= '9') return 'digit'
  const upper = character.toUpperCase()
  const lower = character.toLowerCase()
  if (upper === lower) return 'other'
  return character === upper ? 'upper' : 'lower'
}

export function capitalized(word: string): string {
  const first = String.fromCodePoint(word.codePointAt(0) ?? 0)
  return first.toUpperCase() + word.slice(first.length).toLowerCase()
}

/** A function that converts words; they differ only in how words are joined. */
export function caseFunction(
  name: string,
  style: string,
  example: string,
  join: (words: readonly string[]) => string,
): FunctionDeclaration {
  return defineFunction({
    name,
    category: 'String',
    summary: `Rewrites the words of a text in ${style}.`,
    parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }, originalCase],
    returns: kinds.string,
    fallible: 'never',
    pure: true,
    examples: [
      { source: `${name}("input_string value")`, result: `"${example}"` },
      { source: `${name}("gate-seven")`, result: `"${join(['gate', 'seven'])}"` },
      { source: `${name}("")`, result: '""' },
    ],
    compile: () => (value: string, original: string | undefined) => join(splitWords(value, original)),
  })
}
