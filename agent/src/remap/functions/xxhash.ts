// Function `xxhash`.

import { type Bytes, integer, type Value } from '../../event/value.ts'
import { xxh3, xxh3Wide, xxh32, xxh64 } from '../../formats/hash.ts'
import { bytesOf } from '../byte-text.ts'
import { type CallKinds, defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

const variants: Readonly<Record<string, (bytes: Buffer) => Value>> = {
  XXH32: xxh32,
  XXH64: (bytes) => integer(BigInt.asIntN(64, xxh64(bytes))),
  'XXH3-64': (bytes) => integer(BigInt.asIntN(64, xxh3(bytes))),
  'XXH3-128': (bytes) => xxh3Wide(bytes).toString(),
}

/** The name of a variant, given in any letter case; undefined for any other text. */
function known(variant: string): string | undefined {
  const name = variant.toUpperCase()
  return Object.hasOwn(variants, name) ? name : undefined
}

function constantVariant(call: CallKinds): string | undefined {
  return known(String(call.constant('variant')))
}

export const xxhash = defineFunction({
  name: 'xxhash',
  category: 'Checksum',
  summary: 'Returns the xxHash of a string.',
  description: 'The result is an integer, signed for 64 bits, or decimal text for 128 bits.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
    {
      name: 'variant',
      kind: kinds.string,
      required: false,
      default: 'XXH32',
      description: `One of ${Object.keys(variants).join(', ')}, in any letter case.`,
    },
  ],
  // The language takes each result for a string.
  returns: kinds.string,
  nominal: (call) => constantVariant(call) !== 'XXH3-128',
  fallible: (call) => constantVariant(call) === undefined,
  valueOfFailure: () => '',
  errors: ['The variant is unknown.'],
  pure: true,
  examples: [
    { source: 'xxhash("penstock")', result: '2081285011' },
    { source: 'xxhash("penstock", variant: "XXH64")', result: '-6781507496950606221' },
    { source: 'xxhash("penstock", variant: "XXH3-128")', result: '"263951266390924667078200610246900022239"' },
  ],
  compile: () => (value: string | Bytes, variant: string) =>
    variants[known(variant) ?? '']?.(bytesOf(value)) ??
    failure("Variant must be either 'XXH32', 'XXH64', 'XXH3-64', or 'XXH3-128'"),
})
