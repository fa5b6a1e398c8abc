// How payloads are compressed, and the numbers by which the protocol knows it.

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
    // Nothing is sent as it is: some readers take an empty block for a broken one.
    compress: (body) => (body.length === 0 ? body : codec.compress(body)),
    compressAside: (body) => (body.length === 0 ? undefined : codec.compressAside?.(body)),
    decompress: (payload) => (payload.length === 0 ? payload : codec.decompress(payload)),
  }
}

/** A block does not contain its size. */
function decompressLz4(block: Buffer): Buffer {
  for (let most = block.length * 4; ; most *= 4) {
    const data = decompressBlock(block, most)
    if (data !== undefined) return data
    if (most > block.length * 256) throw new Error('A block of LZ4 cannot be read back.')
  }
}
