// Function `shannon_entropy`.

import { type Bytes, float } from '../../event/value.ts'
import { bytesOf } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

// Created on first use, which takes ten milliseconds.
let segmenter: Intl.Segmenter | undefined

function graphemes(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  return segmenter
}

export const shannonEntropy = defineFunction({
  name: 'shannon_entropy',
  category: 'String',
  summary: 'Returns the Shannon entropy of a text in bits.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The text.' },
    {
      name: 'segmentation',
      kind: kinds.string,
      required: false,
      default: 'byte',
      enum: ['byte', 'codepoint', 'grapheme'],
      description: 'The unit to count.',
    },
  ],
  returns: kinds.float,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'shannon_entropy("ab")', result: '1' },
    { source: 'shannon_entropy("Supercalifragilisticexpialidocious")', result: '3.7369879306358205' },
    { source: 'shannon_entropy("aaaa")', result: '0' },
    { source: 'shannon_entropy("aé", segmentation: "codepoint")', result: '1' },
  ],
  compile: () => (value: string | Bytes, segmentation: string) => {
    const text = String(value)
    const counts = segmentation === 'byte' ? byteCounts(bytesOf(value)) : new Map<string, number>()
    if (counts instanceof Map) {
      const parts = segmentation === 'codepoint' ? text : Array.from(graphemes().segment(text), (part) => part.segment)
      for (const part of parts) counts.set(part, (counts.get(part) ?? 0) + 1)
    }
    let total = 0
    for (const count of counts.values()) total += count
    let entropy = 0
    for (const count of counts.values()) if (count > 0) entropy -= (count / total) * Math.log2(count / total)
    return float(entropy === 0 ? 0 : entropy)
  },
})

/** Number of occurrences by byte value: the order matters for sums of floats. */
function byteCounts(bytes: Buffer): Uint32Array {
  const counts = new Uint32Array(256)
  for (const byte of bytes) counts[byte] = (counts[byte] as number) + 1
  return counts
}
