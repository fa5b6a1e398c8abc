// Function `replace`.

import { Regex } from '../../event/value.ts'
import { defineFunction, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { compileReplacement, eachMatch } from '../matching.ts'
import { tooMuch } from '../meter.ts'
import { compileRegex } from '../regex.ts'

export const replace = defineFunction({
  name: 'replace',
  category: 'String',
  summary: 'Replaces the matches of a pattern.',
  description:
    'With a regular expression, the replacement may refer to groups: `$1`, `$name`, or with braces around the name; `$$` is a dollar sign. With a string, the replacement is literal.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'pattern', kind: kinds.string.or(kinds.regex), description: 'The text or pattern to replace.' },
    { name: 'with', kind: kinds.string, description: 'The replacement.' },
    {
      name: 'count',
      kind: kinds.integer,
      required: false,
      default: -1,
      description: 'Maximum number of replacements; -1 for all.',
    },
  ],
  returns: kinds.string,
  fallible: 'never',
  growth: 'product',
  pure: true,
  examples: [
    { source: 'replace("oxbow lock", "o", "0")', result: '"0xb0w l0ck"' },
    { source: 'replace("ada byron", r\'(?P<first>\\w+) (?P<last>\\w+)\', "$last, $first")', result: '"byron, ada"' },
    { source: 'replace("oxbow lock", "o", "0", count: 1)', result: '"0xbow lock"' },
  ],
  compile({ runtime: { maxBytes } }) {
    let template: string | undefined
    let regex: Regex | undefined
    let replacement: ((match: RegExpExecArray) => string) | undefined
    return (value: string, pattern: string | Regex, text: string, count: number | bigint): Result => {
      if (count === 0) return value
      const max = count < 0 ? Number.POSITIVE_INFINITY : Number(count)
      if (typeof pattern === 'string' && pattern !== '') {
        const parts = value.split(pattern)
        if (value.length + parts.length * text.length > maxBytes) return tooMuch
        if (max === Number.POSITIVE_INFINITY) return parts.join(text)
        const replaced = Math.min(max, parts.length - 1)
        return parts.slice(0, replaced + 1).join(text) + rest(parts, replaced, pattern)
      }
      const what = pattern instanceof Regex ? pattern : everywhere
      if (replacement === undefined || template !== text || regex !== what) {
        template = text
        regex = what
        replacement = pattern instanceof Regex ? compileReplacement(text, what) : () => text
      }
      const make = replacement
      let result = ''
      let at = 0
      let done = 0
      eachMatch(what, value, (match) => {
        result += value.slice(at, match.index) + make(match)
        at = match.index + match[0].length
        return ++done < max && result.length <= maxBytes
      })
      if (result.length > maxBytes) return tooMuch
      return done === 0 ? value : result + value.slice(at)
    }
  },
})

function rest(parts: readonly string[], replaced: number, pattern: string): string {
  return replaced + 1 === parts.length ? '' : pattern + parts.slice(replaced + 1).join(pattern)
}

const everywhere = compileRegex('') as Regex
