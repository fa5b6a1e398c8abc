// Function `crc`.

import type { Bytes } from '../../event/value.ts'
import { crcNames, findCrc } from '../../formats/crc.ts'
import { bytesOf } from '../byte-text.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const crc = defineFunction({
  name: 'crc',
  category: 'Checksum',
  summary: 'Returns the cyclic redundancy check of a string as decimal text.',
  description: `Algorithms: ${crcNames.map((name) => `\`${name}\``).join(', ')}.`,
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
    {
      name: 'algorithm',
      kind: kinds.string,
      required: false,
      default: 'CRC_32_ISO_HDLC',
      description: 'Name of the algorithm, in any letter case.',
    },
  ],
  returns: kinds.string,
  fallible: (call) => findCrc(String(call.constant('algorithm')).toUpperCase()) === undefined,
  errors: ['The algorithm is unknown.'],
  pure: true,
  examples: [
    { source: 'crc("123456789")', result: '"3421780262"' },
    { source: 'crc("123456789", algorithm: "crc_16_xmodem")', result: '"12739"' },
    { source: 'crc("")', result: '"0"' },
  ],
  compile: () => (value: string | Bytes, algorithm: string) =>
    findCrc(algorithm.toUpperCase())?.(bytesOf(value)).toString() ??
    failure(`Invalid CRC algorithm: ${algorithm.toUpperCase()}`),
})
