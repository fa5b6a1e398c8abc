// The compression of payloads, and its numbers in the protocol.

import { compileCompression } from '../../delivery/compression.ts'
import type { Codec } from '../../delivery/request.ts'
import { compressBlock, decompressBlock } from '../../formats/lz4.ts'

export const brokerCompressions = ['none', 'lz4', 'snappy', 'zlib', 'zstd'] as const
export type BrokerCompression = (typeof brokerCompressions)[number]

const numbers = { none: 0, lz4: 1, zlib: 2, zstd: 3, snappy: 4 } as const satisfies Record<BrokerCompression, number>

export function brokerCodec(name: BrokerCompression): Codec & { readonly number: number } {
  const codec: Codec =
    name === 'lz4' ? { compress: compressBlock, decompress: decompressLz4 } : compileCompression(name)
  return {
    number: numbers[name],
    // An empty payload stays uncompressed, because some readers reject an empty compressed block.
    compress: (body) => (body.length === 0 ? body : codec.compress(body)),
    compressAside: (body) => (body.length === 0 ? undefined : codec.compressAside?.(body)),
    decompress: (payload) => (payload.length === 0 ? payload : codec.decompress(payload)),
  }
}

/** A block does not contain its decompressed size. */
function decompressLz4(block: Buffer): Buffer {
  for (let most = block.length * 4; ; most *= 4) {
    const data = decompressBlock(block, most)
    if (data !== undefined) return data
    if (most > block.length * 256) throw new Error('Could not read back an LZ4 block.')
  }
}
