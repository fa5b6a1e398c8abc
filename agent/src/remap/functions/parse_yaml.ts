// Function `parse_yaml`.

import type { Bytes } from '../../event/value.ts'
import { parseYaml } from '../../formats/yaml-value.ts'
import { defineFunction, failure } from '../function.ts'
import { jsonKind } from '../json-kind.ts'
import { kinds } from '../kind.ts'

export const parseYamlFunction = defineFunction({
  name: 'parse_yaml',
  category: 'Parse',
  summary: 'Parses a YAML document.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The document.' }],
  returns: jsonKind,
  fallible: 'always',
  errors: ['The text is not YAML.'],
  pure: true,
  examples: [
    { source: 'parse_yaml!("a: 1\\nb: [x, 2.5, true, null]")', result: '{ "a": 1, "b": ["x", 2.5, true, null] }' },
    { source: 'parse_yaml!("- 1\\n- two")', result: '[1, "two"]' },
    {
      source:
        '[parse_yaml!("- !!str 5\\n- !!float 5\\n- !!null ~"), parse_yaml("!!int x") ?? "no", parse_yaml("!own 5") ?? "no"]',
      result: '[["5", 5, null], "no", "no"]',
    },
    { source: 'parse_yaml("a: [") ?? "no YAML"', result: '"no YAML"' },
  ],
  compile: () => (text: string | Bytes) => {
    if (typeof text !== 'string') return failure('unable to parse yaml: the text is not UTF-8')
    const result = parseYaml(text)
    return 'value' in result ? result.value : failure(`unable to parse yaml: ${result.problem}`)
  },
})
