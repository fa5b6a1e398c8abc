// The compression of payloads, and its numbers in the protocol.

import { type CompressionPlatform, compileCompression } from '../../delivery/compression.ts'
import type { Codec } from '../../delivery/request.ts'
import { compressBlock, decompressBlock } from '../../formats/lz4.ts'

export const brokerCompressions = ['none', 'lz4', 'snappy', 'zlib', 'zstd'] as const
export type BrokerCompression = (typeof brokerCompressions)[number]

const numbers = { none: 0, lz4: 1, zlib: 2, zstd: 3, snappy: 4 } as const satisfies Record<BrokerCompression, number>

export type BrokerCodec = Codec & { readonly number: number }

/** The last two parameters are those of `compileCompression`. */
export function brokerCodec(name: BrokerCompression, cpus?: number, platform?: CompressionPlatform): BrokerCodec {
  const codec: Codec =
    name === 'lz4' ? { compress: compressBlock, decompress: decompressLz4 } : compileCompression(name, cpus, platform)
  return {
    number: numbers[name],
    // An empty payload stays uncompressed, because some readers reject an empty compressed block.
    compress: (body) => (body.length === 0 ? body : codec.compress(body)),
    compressOnPool: (body) => (body.length === 0 ? undefined : codec.compressOnPool?.(body)),
    decompress: (payload) => (payload.length === 0 ? payload : codec.decompress(payload)),
  }
}

/** A block does not contain its decompressed size. */
function decompressLz4(block: Buffer): Buffer {
  for (let max = block.length * 4; ; max *= 4) {
    const data = decompressBlock(block, max)
    if (typeof data !== 'string') return data
    if (max > block.length * 256) throw new Error('Could not read back an LZ4 block.')
  }
}
