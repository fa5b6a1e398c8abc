// Function `parse_etld`.

import { parseSuffixes, type SuffixList, standardSuffixes } from '../../formats/public-suffix.ts'
import { GivenFileError, readGivenText } from '../../given-file.ts'
import { type CallSite, defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const parseEtld = defineFunction({
  name: 'parse_etld',
  category: 'Parse',
  summary: 'Returns the public suffix of a host name, such as `co.uk`.',
  description:
    'The comparison is case-sensitive, so letters must be lower-case. If no rule of the list matches, the last label counts as suffix, and `known_suffix` is false.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The host name.' },
    {
      name: 'plus_parts',
      kind: kinds.integer,
      required: false,
      default: 0,
      description: 'Number of labels before the suffix in `etld_plus`.',
    },
    {
      name: 'psl',
      kind: kinds.string,
      required: false,
      static: true,
      meaning: 'file',
      description: "Path of a list in the publicsuffix.org format; by default the agent's built-in list.",
    },
  ],
  returns: kinds.objectOf({ etld: kinds.string, etld_plus: kinds.string, known_suffix: kinds.boolean }),
  fallible: 'always',
  errors: ['The name is empty.'],
  pure: true,
  examples: [
    {
      source: 'parse_etld!("shop.example.co.uk", plus_parts: 1)',
      result: '{ "etld": "co.uk", "etld_plus": "example.co.uk", "known_suffix": true }',
    },
    {
      source: 'parse_etld!("a.github.io")',
      result: '{ "etld": "github.io", "etld_plus": "github.io", "known_suffix": true }',
    },
    {
      source: 'parse_etld!("db.internal")',
      result: '{ "etld": "internal", "etld_plus": "internal", "known_suffix": false }',
    },
  ],
  compile(call) {
    const path = call.constant('psl')
    const suffixes = typeof path === 'string' ? read(path, call) : standardSuffixes()
    return (name: string, plus: number | bigint): Result => {
      // A final dot marks a fully qualified name, and belongs to the last label.
      const labels = (name.endsWith('.') && name !== '.' ? name.slice(0, -1) : name).split('.')
      const known = name === '' || name === '.' ? 0 : suffixes(labels)
      if (name.endsWith('.')) labels[labels.length - 1] += '.'
      const count = Math.max(known, 1)
      if (name !== '.' && labels.at(-1) === '') return failure(`unable to determine eTLD for ${name}`)
      return {
        etld: labels.slice(-count).join('.'),
        etld_plus: labels.slice(-(count + Math.max(0, Number(plus)))).join('.'),
        known_suffix: known > 0,
      }
    }
  },
})

function read(path: string, call: CallSite): SuffixList {
  try {
    return parseSuffixes(readGivenText({ option: 'psl', path }))
  } catch (error) {
    if (!(error instanceof GivenFileError)) throw error
    return call.reject(`the list of public suffixes "${path}" cannot be read: ${error.reason}`)
  }
}
