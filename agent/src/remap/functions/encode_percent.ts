// Function `encode_percent`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

const controls = new Set<number>([0x7f])
for (let code = 0; code < 0x20; code++) controls.add(code)

const plus = (set: ReadonlySet<number>, more: string): Set<number> =>
  new Set([...set, ...[...more].map((character) => character.charCodeAt(0))])
const allBut = (kept: RegExp): Set<number> => {
  const set = new Set<number>()
  for (let code = 0; code < 0x80; code++) if (!kept.test(String.fromCharCode(code))) set.add(code)
  return set
}

// The sets of the URL Standard; some extend an earlier set.
const fragment = plus(controls, ' "<>`')
const query = plus(controls, ' "#<>')
const path = plus(query, '?`{}')
const userinfo = plus(path, '/:;=@[\\]^|')
const sets: Readonly<Record<string, ReadonlySet<number>>> = {
  NON_ALPHANUMERIC: allBut(/[0-9A-Za-z]/),
  CONTROLS: controls,
  FRAGMENT: fragment,
  QUERY: query,
  SPECIAL: plus(query, "'"),
  PATH: path,
  USERINFO: userinfo,
  COMPONENT: plus(userinfo, '$%&+,'),
  WWW_FORM_URLENCODED: allBut(/[0-9A-Za-z*._-]/),
}

export const encodePercent = defineFunction({
  name: 'encode_percent',
  category: 'Codec',
  summary: 'Encodes the characters of a set, and all non-ASCII characters, as `%` and two digits.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    {
      name: 'ascii_set',
      kind: kinds.string,
      required: false,
      default: 'NON_ALPHANUMERIC',
      enum: Object.keys(sets),
      description: 'The characters to encode.',
    },
  ],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'encode_percent("gate 7?")', result: '"gate%207%3F"' },
    { source: 'encode_percent("a/b c", ascii_set: "PATH")', result: '"a/b%20c"' },
    { source: 'encode_percent("é")', result: '"%C3%A9"' },
  ],
  compile(call) {
    const set = sets[call.constant('ascii_set') as string] as ReadonlySet<number>
    return (value: string) => {
      let text = ''
      for (const byte of Buffer.from(value)) {
        text +=
          byte >= 0x80 || set.has(byte)
            ? `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
            : String.fromCharCode(byte)
      }
      return text
    }
  },
})
