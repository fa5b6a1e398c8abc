// In a file of its own, because it needs all chunks of the kernel.

import { expect, test } from 'vitest'
import { chunkPool, compileDelimiter, type Slab } from '../tailing/slab.ts'
import { chunkBytes } from './chunks.ts'
import { theKernel } from './kernel.ts'

const delimiter = compileDelimiter(Buffer.from('\n'))

test('lines that wait do not keep chunks that other files need to be read', () => {
  const pool = chunkPool()
  const maxChunks = theKernel().at('maxChunks')
  const waiting: Slab[] = []
  const returns: (() => void)[] = []
  const full = () => {
    const slab = pool.take()
    slab.split(0, Buffer.from(`${'x'.repeat(chunkBytes / 2)}\n`).copy(slab.buffer), delimiter, chunkBytes)
    return slab
  }
  for (let back = full(), give = back.lend(); give !== undefined; back = full(), give = back.lend()) {
    waiting.push(back)
    returns.push(give)
  }
  expect(waiting.length).toBeGreaterThan(maxChunks / 2)
  expect(waiting.length).toBeLessThan(maxChunks)
  const next = full()
  expect(theKernel().placeOf(next.buffer)).toBeDefined()
  returns.pop()?.()
  const lent = next.lend()
  expect(lent).toBeDefined()
  for (const give of [...returns, lent]) give?.()
})
